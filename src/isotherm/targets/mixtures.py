"""Gaussian mixtures on the line."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.potentials.energy import EnergyPotential
from isotherm.targets.target import Target


@dataclasses.dataclass(frozen=True)
class MixtureEnergy:
    """U(x) = -log of a mixture of normal densities, normalized, for x of shape (1,)."""

    weights: tuple[float, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def __call__(self, position: Any) -> Array:
        parts = [
            math.log(w / (s * math.sqrt(2 * math.pi))) - 0.5 * ((position[0] - m) / s) ** 2
            for w, m, s in zip(self.weights, self.means, self.deviations, strict=True)
        ]
        return -jax.nn.logsumexp(jnp.stack(parts))


def mixture(name: str, weights: tuple[float, ...], means: tuple[float, ...], deviations: tuple[float, ...]) -> Target:
    """A Gaussian mixture on the line as a target; chains start at zero."""
    energy = MixtureEnergy(weights, means, deviations)
    reach = 8 * max(deviations)
    span = (min(means) - reach, max(means) + reach)
    init = lambda key: jnp.zeros(1)  # noqa: E731
    return Target(name, EnergyPotential(energy), energy, init, 1, None, span, np.asarray(means)[:, None])


def resgld_mixtures() -> tuple[Target, Target, Target]:
    """The three mixtures of the thesis' study of swap corrections."""
    return (
        mixture("U1", (0.4, 0.6), (-3.0, 2.0), (0.7, 0.5)),
        mixture("U2", (0.4, 0.6), (-4.0, 3.0), (0.7, 0.5)),
        mixture("U3", (0.4, 0.6), (-6.0, 4.0), (0.7, 0.5)),
    )


def csgld_mixture() -> Target:
    """0.4 N(-6, 1) + 0.6 N(4, 1), of the thesis' study of CSGLD."""
    return mixture("csgld", (0.4, 0.6), (-6.0, 4.0), (1.0, 1.0))


def awsgld_mixture() -> Target:
    """0.4 N(-2, 1) + 0.6 N(1, 1), of the thesis' study of AWSGLD."""
    return mixture("awsgld", (0.4, 0.6), (-2.0, 1.0), (1.0, 1.0))
