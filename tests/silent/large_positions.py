"""Positions of more numbers than are looked at one by one: wrong in all of them by a little, and right ones."""

import functools

import jax.numpy as jnp
import numpy as np

import isotherm as iso
from tests.silent.case import Case, Target, case, chains
from tests.silent.data_targets import linear_regression

wrong, good = (functools.partial(case, is_good=is_good) for is_good in (False, True))


def _with_whole(target: Target) -> Target:
    """With the mean of the energy above its minimum, in units of its truth, which all numbers make together."""
    data = [np.asarray(part, np.float64) for part in target.potential.data]
    precision = data[0].T @ data[0] + np.eye(target.dimension)
    means = jnp.asarray(np.linalg.solve(precision, data[0].T @ data[1]))
    whole = lambda x: (x - means) @ jnp.asarray(precision) @ (x - means) / target.dimension  # noqa: E731
    return Target(target.potential, target.dimension, (*target.truths, ("var whole", whole, 1.0)))


def _regression(batch_size: int) -> Target:
    return _with_whole(linear_regression(2_000, 200, 1.0, batch_size=batch_size, batching="independent"))


CASES: list[Case] = [
    wrong(
        "sgld, 200 coefficients in small batches",
        "Batches of 50 out of 2000 widen every coefficient by a sixth, and raise the energy by 16 temperatures.",
        _regression(50),
        iso.sgld(4e-6),
        chains(8, 40_000, burn_in=4_000, thinning=20),
    ),
    wrong(
        "sghmc, 200 coefficients in small batches",
        "Momentum with friction 0.1 multiplies what batch noise does by ten: the energy is far too high.",
        _regression(100),
        iso.sghmc(8e-7),
        chains(8, 40_000, burn_in=4_000, thinning=20),
    ),
    good(
        "sgld, 200 coefficients",
        "Large batches and a short step.",
        _regression(500),
        iso.sgld(1e-6),
        chains(8, 60_000, burn_in=6_000, thinning=20),
    ),
    good(
        "sghmc, 200 coefficients",
        "Large batches and a short step, with momentum.",
        _regression(500),
        iso.sghmc(2e-7),
        chains(8, 60_000, burn_in=6_000, thinning=20),
    ),
]
