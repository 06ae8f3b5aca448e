"""Truth about contour samplers by quadrature: masses of energy bins, trial energies, multipliers."""

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.contour import Contour, Partition
from isotherm.targets import Target


def bin_masses(target: Target, partition: Partition) -> np.ndarray:
    """True probabilities of the energy bins."""
    bins = np.asarray(partition.index(jnp.asarray(energies_on_grid(target))))
    return np.bincount(bins, target.truth.probabilities, minlength=partition.num_bins)


def energies_on_grid(target: Target) -> np.ndarray:
    """Energies at the points of the target's quadrature."""
    return np.asarray(jax.vmap(target.energy)(jnp.asarray(target.truth.points)), np.float64)


def log_psi(energies: np.ndarray, theta: np.ndarray, partition: Partition) -> np.ndarray:
    """Log Psi of energies, with backward slopes: linear between the edges, constant in the open bins."""
    return np.interp(energies, partition.edges, np.log(np.maximum(theta[:-1], 1e-30)))


def multiplier_on_bins(theta: np.ndarray, contour: Contour, temperature: float = 1.0) -> np.ndarray:
    """The multiplier in every bin, within its bounds, for backward slopes."""
    steps = np.diff(np.log(np.maximum(theta, 1e-30)), prepend=0.0)
    excess = contour.multiplier.excess(jnp.asarray(steps), jnp.arange(len(theta)), jnp.asarray(temperature))
    return 1.0 + np.asarray(excess)
