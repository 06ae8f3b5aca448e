"""Work at fixed multiples of the iteration, declared by the parts and run by the engine."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

ONCE = 1 << 30


class Periodic(NamedTuple):
    """Work of a part before the iterations 0, `every`, 2 `every`, and so on.

    Attributes:
        every: iterations between two calls; `ONCE` for iteration 0 alone. Part of the structure: it is never swept.
        apply: returns the new state of the part; its arguments are in `Coupling.periodic` and `Estimator.periodic`.
        needs_data: whether it reads data. If data stream, such work is done between two blocks of iterations.
        later: pairs (first, every): the period from iteration `first` on, a multiple of both periods. Not with `needs_data`.
    """

    every: int
    apply: Callable[..., Any]
    needs_data: bool = True
    later: tuple[tuple[int, int], ...] = ()

    def period(self, iteration: Array) -> Array:
        """The period at an iteration."""
        found = jnp.asarray(self.every, jnp.int32)
        for first, every in self.later:
            found = jnp.where(iteration >= first, every, found)
        return found
