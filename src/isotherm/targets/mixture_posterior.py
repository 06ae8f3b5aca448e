"""The posterior of a Gaussian mixture with a symmetric twin, from data."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.potentials.likelihood import LikelihoodPotential
from isotherm.targets.target import Target

_MIRROR = 20.0
_DEVIATION = 5.0


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
    """Data of a mixture with centers b and 20 - b, and the posterior of b under a flat prior: modes at b and 20 - b."""
    rng = np.random.default_rng(seed)
    centers = np.where(rng.random(num_data) < 0.5, truth, _MIRROR - truth)
    data = (centers + _DEVIATION * rng.standard_normal(num_data)).astype(np.float32)
    potential = LikelihoodPotential(mixture_log_likelihood, None, data, batch_size, batching, is_batch_shared)
    init = lambda key: jax.random.uniform(key, (1,), minval=truth, maxval=_MIRROR - truth)  # noqa: E731
    span = (min(truth, _MIRROR - truth) - 5.0, max(truth, _MIRROR - truth) + 5.0)
    modes = np.array([[truth], [_MIRROR - truth]])
    return Target("mixture posterior", potential, potential.full_energy, init, 1, None, span, modes)
