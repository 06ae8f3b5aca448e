"""Estimates in the energy: its law, the density of states, normalising constants, and other temperatures."""

from typing import NamedTuple

import numpy as np

from isotherm.errors import check_integer, check_real
from isotherm.sampling.estimates import normalised_weights


class Histogram(NamedTuple):
    """Cells of the energy and a value for each.

    Attributes:
        edges: one more than the cells.
        values: of the cells.
    """

    edges: np.ndarray
    values: np.ndarray


def energy_histogram(energies: np.ndarray, log_weights: np.ndarray, num_cells: int) -> Histogram:
    """The weighted probability of cells of equal width."""
    check_integer("num_cells", num_cells, 1, "Give a number of cells.")
    weights = normalised_weights(log_weights)
    is_used = weights > 0
    values, edges = np.histogram(energies[is_used], num_cells, weights=weights[is_used])
    return Histogram(edges, values)


def log_density_of_states(histogram: Histogram, temperature: float) -> Histogram:
    """Log of the volume per energy, up to a constant: log p(u) + u / temperature; -inf where no draw was."""
    check_real("temperature", temperature, "Give the temperature of the draws.", above=0.0)
    middle = 0.5 * (histogram.edges[1:] + histogram.edges[:-1])
    density = histogram.values / np.diff(histogram.edges)
    with np.errstate(divide="ignore"):
        logs = np.log(density) + middle / temperature
    return Histogram(histogram.edges, logs - np.max(logs))


def log_tilt(energies: np.ndarray, temperature: float, to: float) -> np.ndarray:
    """What the log weight of a draw gains when it is to represent another temperature."""
    check_real("temperature", temperature, "Give the temperature of the draws.", above=0.0)
    check_real("to", to, "Give the temperature that is wanted.", above=0.0)
    return (1.0 / temperature - 1.0 / to) * np.asarray(energies, np.float64)


def log_z_ratio(energies: np.ndarray, log_weights: np.ndarray, temperature: float, to: float) -> float:
    """Log Z(to) - log Z(temperature), where Z is the integral of exp(-U / T)."""
    weights = normalised_weights(log_weights)
    is_used = weights > 0
    tilt = log_tilt(energies[is_used], temperature, to)
    highest = tilt.max()
    return float(highest + np.log(np.sum(weights[is_used] * np.exp(tilt - highest))))


def log_z_ratio_of_bins(theta: np.ndarray, edges: np.ndarray, temperature: float, to: float) -> float:
    """The same from the masses of energy bins alone, as contour samplers learn them. Energies count as uniform in a bin.

    Args:
        theta: masses of the bins at `temperature`, shape (m,). The first bin counts as one of the usual width, the top one at its
            edge.
        edges: between the bins, shape (m - 1,).
        temperature: of the masses.
        to: the other temperature.
    """
    masses = np.asarray(theta, np.float64) / np.sum(theta)
    slope = 1.0 / temperature - 1.0 / to
    half = 0.5 * (edges[1] - edges[0])
    spread = np.sinh(slope * half) / (slope * half) if slope else 1.0
    middles = np.append(edges - half, edges[-1])
    factors = np.exp(slope * middles) * np.append(np.full(len(edges), spread), 1.0)
    return float(np.log(np.sum(masses * factors)))
