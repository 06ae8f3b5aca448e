"""Potentials with known answers, and truth by quadrature in one or two dimensions."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.nearest import nearest_centers
from isotherm.potentials.potential import Potential


class Grid(NamedTuple):
    """Midpoints of a grid, shape (size, dimension), and the probabilities of their cells."""

    points: np.ndarray
    probabilities: np.ndarray

    def expectation(self, function: Callable[[Any], Any]) -> np.ndarray:
        """Mean of `function` of a point."""
        values = np.asarray(jax.vmap(function)(jnp.asarray(self.points)), np.float64)
        return np.tensordot(self.probabilities, values, 1)

    def mode_masses(self, centers: np.ndarray) -> np.ndarray:
        """Probability of the points nearest to each center."""
        return np.bincount(nearest_centers(self.points, centers)[0], self.probabilities, minlength=len(centers))


def integrate(
    energy: Callable[[Any], Any], low: float, high: float, dimension: int, *, temperature: float = 1.0, size: int = 0
) -> Grid:
    """Probabilities of exp(-energy / temperature) on a cube, by the midpoint rule with `size` points a side."""
    size = size or (200_000 if dimension == 1 else 1_000)
    side = low + (high - low) / size * (np.arange(size) + 0.5)
    axes = [side] if dimension == 1 else np.meshgrid(side, side, indexing="ij")
    points = np.stack([axis.reshape(-1) for axis in axes], axis=-1)
    energies = np.asarray(jax.vmap(energy)(jnp.asarray(points)), np.float64)
    mass = np.exp(-(energies - energies.min()) / temperature)
    return Grid(points, mass / mass.sum())


@dataclasses.dataclass(frozen=True, eq=False)
class Target:
    """A potential with its start, box and modes, and with truth by quadrature.

    Attributes:
        name: label in tables.
        potential: what to sample.
        energy: exact energy of a position.
        init: function from a key to a start.
        dimension: of a position.
        box: (low, high) of the cube to which the density is restricted; None for all of space.
        span: (low, high) of the cube of the quadrature.
        modes: centers of the modes, shape (num_modes, dimension).
    """

    name: str
    potential: Potential
    energy: Callable[[Any], Any]
    init: Callable[[Any], Any]
    dimension: int
    box: tuple[float, float] | None
    span: tuple[float, float]
    modes: np.ndarray

    @functools.cached_property
    def truth(self) -> Grid:
        """Quadrature at temperature 1."""
        return integrate(self.energy, *self.span, self.dimension)

    @functools.cached_property
    def mode_masses(self) -> np.ndarray:
        """True probabilities of the modes, each of the points nearest to its center."""
        return self.truth.mode_masses(self.modes)

    @functools.cached_property
    def half_distances(self) -> np.ndarray:
        """Distances from the centers within which half the mass of each mode lies."""
        points, mass = self.truth
        nearest, distance = nearest_centers(points, self.modes)
        halves = []
        for number in range(len(self.modes)):
            own = np.flatnonzero(nearest == number)
            own = own[np.argsort(distance[own])]
            running = np.cumsum(mass[own])
            halves.append(distance[own][np.searchsorted(running, 0.5 * running[-1])])
        return np.array(halves)

    def total_variation(self, masses: np.ndarray) -> float:
        """Half the absolute difference between estimated and true masses of the modes: 0 is exact, 1 disjoint."""
        return float(0.5 * np.abs(np.asarray(masses) - self.mode_masses).sum())
