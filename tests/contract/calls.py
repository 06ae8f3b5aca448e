"""Calls of the public interface that tests make wrong on purpose."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso

Iso: Any = iso  # Wrong on purpose: no type checker is to look at these calls.


def energy(x):
    return 0.5 * jnp.sum(x**2)


def start(potential: Any = energy, sampler: Any = None, **options):
    settings = {"num_steps": 10, "init": jnp.zeros(2), **options}
    return Iso.sample(potential, iso.sgld(0.1) if sampler is None else sampler, **settings)


def fit(log_likelihood: Any, log_prior: Any = None, data: Any = None, init: Any = 0.0, **options):
    rows = np.ones(5) if data is None else data
    return start(Iso.from_likelihood(log_likelihood, log_prior, rows, **options), init=jnp.asarray(init))


def like(m, x):
    return -((x - m) ** 2)


def network(library: str, **options):
    return getattr(Iso, f"from_{library}")(None, "cross_entropy", (np.ones((4, 2)), np.ones(4, int)), **options)


UNKNOWN = "must be an option of `iso.{}`; got an unknown name. "
NUMPY = r"got NumPy was called on an array of JAX. Write it with `jax.numpy`"


def assert_refused(call: Any, message: str) -> None:
    """A call is refused, with what was wrong and the call that is right."""
    with pytest.raises(ValueError, match=message):
        call()
