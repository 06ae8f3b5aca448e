"""Densities with one mode and known moments."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.potentials.energy import EnergyPotential
from isotherm.targets.target import Target


@dataclasses.dataclass(frozen=True)
class GaussianEnergy:
    """U(x) = sum of lambda_i (x_i - m_i)^2 / 2, whose variances at temperature tau are tau / lambda_i."""

    precisions: tuple[float, ...]
    means: tuple[float, ...]

    def __call__(self, position: Any) -> Array:
        return 0.5 * jnp.sum(jnp.asarray(self.precisions) * (position - jnp.asarray(self.means)) ** 2)


@dataclasses.dataclass(frozen=True)
class BananaEnergy:
    """U(x) = x_1^2 / (2 s^2) + (x_2 - b (x_1^2 - s^2))^2 / 2, a Gaussian bent along a parabola.

    Means are 0; variances s^2 and 1 + 2 b^2 s^4.
    """

    spread: float
    bend: float

    def __call__(self, position: Any) -> Array:
        first, second = position[0], position[1]
        straight = second - self.bend * (first**2 - self.spread**2)
        return 0.5 * (first / self.spread) ** 2 + 0.5 * straight**2

    @property
    def variances(self) -> tuple[float, float]:
        """At temperature 1."""
        return self.spread**2, 1 + 2 * self.bend**2 * self.spread**4


def gaussian(precisions: tuple[float, ...] = (1.0, 4.0), means: tuple[float, ...] = (1.0, -2.0)) -> Target:
    """An anisotropic Gaussian away from the origin."""
    energy = GaussianEnergy(precisions, means)
    reach = 8 / min(precisions) ** 0.5
    span = (min(means) - reach, max(means) + reach)
    init = lambda key: jnp.zeros(len(precisions))  # noqa: E731
    return Target(
        "gaussian", EnergyPotential(energy), energy, init, len(precisions), None, span, np.asarray(means)[None]
    )


def banana(spread: float = 1.5, bend: float = 0.3) -> Target:
    """A bent Gaussian in the plane."""
    energy = BananaEnergy(spread, bend)
    init = lambda key: jnp.zeros(2)  # noqa: E731
    return Target("banana", EnergyPotential(energy), energy, init, 2, None, (-20.0, 20.0), np.zeros((1, 2)))
