"""Targets of the thesis' studies, beside those of `isotherm.targets`."""

import dataclasses
import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.potentials.likelihood import LikelihoodPotential
from isotherm.targets import Target
from isotherm.targets.target import from_zero, in_the_plane

_MIRROR = 20.0
_DEVIATION = 5.0


def modes9_energy(position: Any) -> Array:
    """(|x|^2 / 10 - cos 1.2 pi x_1 - cos 1.2 pi x_2) / 0.3, plus |x|^2 - 7 where that is positive."""
    square = jnp.sum(position**2)
    wells = (square / 10.0 - jnp.sum(jnp.cos(1.2 * jnp.pi * position))) / 0.3
    return wells + jnp.maximum(square - 7.0, 0.0)


@functools.cache
def modes9() -> Target:
    """9 modes in the box [-2.5, 2.5]^2. Chains start uniformly in [-1, 1]^2."""
    period = 2 / 1.2
    centers = period * np.array(list(itertools.product(range(-1, 2), repeat=2)), float)
    return in_the_plane("modes9", modes9_energy, centers)


def shallow_energy(position: Any) -> Array:
    """0.05 |x|^2 - 0.01 |x|^2 (cos 2 x_1 + ... + cos 2 x_d): shallow wells, more and deeper ones at high energies."""
    square = jnp.sum(position**2)
    return 0.05 * square - 0.01 * square * jnp.sum(jnp.cos(2 * position))


def rugged_energy(position: Any) -> Array:
    """A surface of many wells on [-1.1, 1.1]^2, shifted by 8.125 so that its lowest value there is about 0."""
    x, y = position
    first = (x * jnp.sin(20 * y) + y * jnp.sin(20 * x)) ** 2 * jnp.cosh(jnp.sin(10 * x) * x)
    second = (x * jnp.cos(10 * y) - y * jnp.sin(10 * x)) ** 2 * jnp.cosh(jnp.cos(20 * y) * y)
    return 8.125 - first - second


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
    """A Gaussian mixture on the line. Chains start at zero."""
    reach = 8 * max(deviations)
    span = (min(means) - reach, max(means) + reach)
    return from_zero(name, MixtureEnergy(weights, means, deviations), 1, span, np.asarray(means)[:, None])


def resgld_mixtures() -> tuple[Target, Target, Target]:
    """The three mixtures of the study of swap corrections."""
    return (
        mixture("U1", (0.4, 0.6), (-3.0, 2.0), (0.7, 0.5)),
        mixture("U2", (0.4, 0.6), (-4.0, 3.0), (0.7, 0.5)),
        mixture("U3", (0.4, 0.6), (-6.0, 4.0), (0.7, 0.5)),
    )


def csgld_mixture() -> Target:
    """0.4 N(-6, 1) + 0.6 N(4, 1), of the study of CSGLD."""
    return mixture("csgld", (0.4, 0.6), (-6.0, 4.0), (1.0, 1.0))


def awsgld_mixture() -> Target:
    """0.4 N(-2, 1) + 0.6 N(1, 1), of the study of AWSGLD."""
    return mixture("awsgld", (0.4, 0.6), (-2.0, 1.0), (1.0, 1.0))


def mixture_log_likelihood(position: Any, examples: Array) -> Array:
    """Log of 0.5 N(b, 25) + 0.5 N(20 - b, 25) at each example; b is position[0]."""
    first = -0.5 * ((examples - position[0]) / _DEVIATION) ** 2
    second = -0.5 * ((examples - (_MIRROR - position[0])) / _DEVIATION) ** 2
    return jnp.logaddexp(first, second) - math.log(2 * _DEVIATION * math.sqrt(2 * math.pi))


def mixture_posterior(
    num_data: int = 100_000,
    batch_size: int | None = 1_000,
    truth: float = -5.0,
    seed: int = 0,
    batching: str = "epochs",
    is_batch_shared: bool = True,
) -> Target:
    """Posterior of b under a flat prior for data of a mixture with centers b and 20 - b: modes at b and 20 - b."""
    rng = np.random.default_rng(seed)
    centers = np.where(rng.random(num_data) < 0.5, truth, _MIRROR - truth)
    data = (centers + _DEVIATION * rng.standard_normal(num_data)).astype(np.float32)
    potential = LikelihoodPotential(mixture_log_likelihood, None, data, batch_size, batching, is_batch_shared)
    init = lambda key: jax.random.uniform(key, (1,), minval=truth, maxval=_MIRROR - truth)  # noqa: E731
    span = (min(truth, _MIRROR - truth) - 5.0, max(truth, _MIRROR - truth) + 5.0)
    modes = np.array([[truth], [_MIRROR - truth]])
    return Target("mixture posterior", potential, potential.full_energy, init, 1, None, span, modes)
