"""Energies with known modes or moments, and their targets."""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.potentials.energy import EnergyPotential
from isotherm.targets.target import Target


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
