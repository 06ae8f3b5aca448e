"""Energies with known modes or moments, and truth by quadrature in one or two dimensions."""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.nearest import nearest_centers
from isotherm.potentials.energy import EnergyPotential
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


def modes25_energy(position: Any) -> Array:
    """0.2 |x|^2 - 2 (cos 2 pi x_1 + cos 2 pi x_2), plus |x|^2 - 20 where that is positive."""
    square = jnp.sum(position**2)
    wells = 0.2 * square - 2.0 * jnp.sum(jnp.cos(2 * jnp.pi * position))
    return wells + jnp.maximum(square - 20.0, 0.0)


@functools.cache
def modes25() -> Target:
    """25 modes in the box [-2.5, 2.5]^2, one in every unit cell. Chains start uniformly in [-1, 1]^2."""
    return in_the_plane("modes25", modes25_energy, np.array(list(itertools.product(range(-2, 3), repeat=2)), float))


def in_the_plane(name: str, energy: Callable[[Any], Array], modes: np.ndarray) -> Target:
    """A target in the box [-2.5, 2.5]^2, with starts uniform in [-1, 1]^2."""
    box = (-2.5, 2.5)
    init = lambda key: jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0)  # noqa: E731
    return Target(name, EnergyPotential(energy), energy, init, 2, box, box, modes)


@dataclasses.dataclass(frozen=True)
class GaussianEnergy:
    """U(x) = sum of lambda_i (x_i - m_i)^2 / 2, with variances tau / lambda_i at temperature tau."""

    precisions: tuple[float, ...]
    means: tuple[float, ...]

    def __call__(self, position: Any) -> Array:
        return 0.5 * jnp.sum(jnp.asarray(self.precisions) * (position - jnp.asarray(self.means)) ** 2)


def gaussian(precisions: tuple[float, ...] = (1.0, 4.0), means: tuple[float, ...] = (1.0, -2.0)) -> Target:
    """An anisotropic Gaussian away from the origin. Chains start at zero."""
    reach = 8 / min(precisions) ** 0.5
    span = (min(means) - reach, max(means) + reach)
    return from_zero("gaussian", GaussianEnergy(precisions, means), len(precisions), span, np.asarray(means)[None])


@dataclasses.dataclass(frozen=True)
class BananaEnergy:
    """U(x) = x_1^2 / (2 s^2) + (x_2 - b (x_1^2 - s^2))^2 / 2, a Gaussian bent along a parabola, with mean 0."""

    spread: float
    bend: float

    def __call__(self, position: Any) -> Array:
        first, second = position[0], position[1]
        straight = second - self.bend * (first**2 - self.spread**2)
        return 0.5 * (first / self.spread) ** 2 + 0.5 * straight**2

    @property
    def variances(self) -> tuple[float, float]:
        """At temperature 1: s^2 and 1 + 2 b^2 s^4."""
        return self.spread**2, 1 + 2 * self.bend**2 * self.spread**4


def banana(spread: float = 1.5, bend: float = 0.3) -> Target:
    """A bent Gaussian in the plane. Chains start at zero."""
    return from_zero("banana", BananaEnergy(spread, bend), 2, (-20.0, 20.0), np.zeros((1, 2)))


def from_zero(name: str, energy: Any, dimension: int, span: tuple[float, float], modes: np.ndarray) -> Target:
    """A target in all of space, with starts at zero."""
    init = lambda key: jnp.zeros(dimension)  # noqa: E731
    return Target(name, EnergyPotential(energy), energy, init, dimension, None, span, modes)
