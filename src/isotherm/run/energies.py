"""Distribution of the energy, density of states, normalizing constants, and reweighting to other temperatures."""

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from isotherm.foundation import checks
from isotherm.foundation.checks import Check
from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.run.bias import Bias
from isotherm.run.estimates import Estimate, effective_sample_size, errors_over, normalized_weights
from isotherm.run.standard_errors import checks_of, tail_that_matters

if TYPE_CHECKING:
    from isotherm.run.run import Run

# The square of its exponential is finite.
_MAX_EXPONENT = 300.0


class Histogram(NamedTuple):
    """Cells of the energy and a value for each.

    Attributes:
        edges: of the cells, one more than there are cells.
        values: of the cells.
    """

    edges: np.ndarray
    values: np.ndarray


def energy_histogram(run: "Run", num_cells: int = 50) -> Histogram:
    """The weighted distribution of the energy in cells of equal width."""
    check_integer("num_cells", num_cells, 1, "Give a number of cells.")
    weights = normalized_weights(run.log_weights)
    is_used = weights > 0
    values, edges = np.histogram(np.asarray(run.energies)[is_used], num_cells, weights=weights[is_used])
    return Histogram(edges, values)


def log_density_of_states(run: "Run", num_cells: int = 50) -> Histogram:
    """Log of the volume per energy, up to a constant: log p(u) + u / T; -inf for empty cells."""
    refuse_jacobians(run)
    edges, values = energy_histogram(run, num_cells)
    with np.errstate(divide="ignore"):
        logs = np.log(values / np.diff(edges)) + 0.5 * (edges[1:] + edges[:-1]) / run.temperature
    return Histogram(edges, logs - np.max(logs))


def refuse_jacobians(run: "Run") -> None:
    """Refuse runs whose energies contain the Jacobian of a constraint."""
    # Runs of earlier versions had no constraint without a Jacobian.
    if run.config.get("has_jacobian", run.config.get("is_constrained")):
        remedy = "The Jacobian depends on the temperature: sample again, with `constrain(..., temperature=...)`."
        refuse("run", "one of free parameters", "energies that hold a Jacobian", remedy)


def log_tilt(energies: np.ndarray, temperature: float, to: float) -> np.ndarray:
    """What reweighting to another temperature adds to the log weights."""
    check_real("to", to, "Give the temperature to reweight to.", above=0.0)
    return (1.0 / temperature - 1.0 / to) * np.asarray(energies, np.float64)


class OverlapWarning(UserWarning):
    """Few draws represent the temperature that they are reweighted to."""


def check_noise(error: float | None, slope: float) -> list[Check]:
    """The check of a ratio of normalizing constants for energy noise, from the error left in log weights; None if unknown."""
    if error is None:
        text = f"Noise s of the energies is not corrected: normal noise adds about {slope**2 / 2:.3g} s^2."
        return [checks.Z_NOISE.found(text)]
    if error < checks.Z_NOISE.limit:
        return []
    text = f"Energies are too noisy for this temperature: the error of log Z is up to about {error:.2g}."
    remedy = "Use larger batches, a smaller `zeta`, or a run at a closer temperature."
    return [checks.Z_NOISE.found(text, remedy, error=error)]


def log_z_ratio(
    log_weights: np.ndarray, tilt: np.ndarray, temperature: float, to: float, bias: Bias | None, shares_noise: bool
) -> Estimate:
    """Log Z(to) - log Z(temperature): the logarithm of the mean of exp(tilt), where tilt = (1 / temperature - 1 / to) U(x)."""
    weights = np.asarray(log_weights, np.float64)
    tilt = np.where(np.isfinite(weights), tilt, 0.0)
    tilted = weights + tilt
    ratio = float(np.asarray(scipy.special.logsumexp(tilted))) - float(np.asarray(scipy.special.logsumexp(weights)))
    # Relative to the mean, in double precision: tilts may span hundreds of nats.
    relative = np.exp(np.minimum(tilt - ratio, _MAX_EXPONENT))
    errors = errors_over(lambda piece: piece[:, None], relative, weights, shares_noise)
    effective, number = effective_sample_size(tilted), int(np.isfinite(weights).sum())
    found = list(checks_of(errors))
    shape = tail_that_matters(tilted)
    reason = ""
    if effective < max(0.01 * number, 30.0):
        reason = f"Few draws represent the temperature {to:g}: {effective:.0f} effective ones out of {number}"
    elif shape > checks.HEAVY_TAIL.limit:
        limit = f"tail shape {shape:.2f}, above {checks.HEAVY_TAIL.limit:g}"
        reason = f"A few draws carry the weight at the temperature {to:g} ({limit})"
    if to != temperature and reason:
        remedy = "Add a run at a temperature in between, or flatten further (`zeta`)."
        found.append(checks.OVERLAP.found(f"{reason}.", remedy, effective_draws=effective))
        warnings.warn(str(found[-1]), OverlapWarning, stacklevel=3)
    off, off_error = np.nan, np.nan
    if bias is not None:
        there = np.exp(np.minimum(log_tilt(bias.energies, temperature, to) - ratio, _MAX_EXPONENT))
        (off,), (off_error,) = bias.of(there[..., None])
    return Estimate(
        mean=np.asarray(ratio),
        std_error=(errors.std_error / errors.mean)[0],
        effective_draws=np.asarray(effective),
        spread=(errors.spread / errors.mean)[0],
        r_hat=errors.r_hat[0],
        degrees=errors.degrees[0],
        checks=tuple(found),
        bias=np.asarray(off / errors.mean[0]),
        bias_error=np.asarray(off_error / errors.mean[0]),
    )
