"""Truth by quadrature on a grid, for targets in one or two dimensions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.nearest import nearest_centers


class Grid(NamedTuple):
    """Midpoints of a grid, shape (size, dimension), and the probabilities of their cells."""

    points: np.ndarray
    probabilities: np.ndarray

    def expectation(self, function: Callable[[Any], Any]) -> np.ndarray:
        """The mean of `function` of a point."""
        values = np.asarray(jax.vmap(function)(jnp.asarray(self.points)), np.float64)
        return np.tensordot(self.probabilities, values, 1)

    def mode_masses(self, centers: np.ndarray) -> np.ndarray:
        """The probability of the points nearest to each center."""
        return np.bincount(nearest_centers(self.points, centers)[0], self.probabilities, minlength=len(centers))


def integrate(
    energy: Callable[[Any], Any], low: float, high: float, dimension: int, *, temperature: float = 1.0, size: int = 0
) -> Grid:
    """Probabilities of exp(-energy / temperature) on a cube, by the midpoint rule with `size` points a side."""
    size = size or (200_000 if dimension == 1 else 1_000)
    width = (high - low) / size
    side = low + width * (np.arange(size) + 0.5)
    points = side[:, None] if dimension == 1 else _square(side)
    energies = np.asarray(jax.vmap(energy)(jnp.asarray(points)), np.float64)
    mass = np.exp(-(energies - energies.min()) / temperature)
    return Grid(points, mass / mass.sum())


def _square(side: np.ndarray) -> np.ndarray:
    first, second = np.meshgrid(side, side, indexing="ij")
    return np.stack([first.reshape(-1), second.reshape(-1)], axis=-1)
