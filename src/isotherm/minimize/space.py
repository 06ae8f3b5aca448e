"""The units in which the chains of a search move."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import check_real, refuse


@dataclasses.dataclass(frozen=True, eq=False)
class Space:
    """The unit in which chains move: x = low + width * z, reflected into [0, 1] where there are bounds."""

    low: Array
    width: Array
    is_bounded: bool
    start: Array | None

    def point(self, z: Array) -> Array:
        """The argument of the function."""
        folded = jnp.abs((z + 1.0) % 2.0 - 1.0) if self.is_bounded else z
        return self.low + self.width * folded

    def draw(self, key: Array, number: int) -> Array:
        """Starts: uniform between the bounds, or around the given one, which comes first."""
        shape = (number, *self.low.shape)
        if self.is_bounded:
            drawn = jax.random.uniform(key, shape)
            given = None if self.start is None else (self.start - self.low) / self.width
        else:
            drawn, given = jax.random.normal(key, shape), jnp.zeros_like(self.low)
        return drawn if given is None else drawn.at[0].set(given)


def space_of(x0: Any, bounds: Any, scale: float) -> Space:
    """The space that bounds give, or a start and a length where there are none."""
    start = None if x0 is None else jnp.asarray(x0, jnp.result_type(float))
    if bounds is None:
        if start is None:
            refuse("x0", "given where there are no bounds", "neither", "Pass x0=..., or bounds=[(low, high), ...].")
        check_real("scale", scale, "Give a length in units of x0.", above=0.0)
        return Space(start, jnp.full_like(start, scale), False, start)
    pairs = np.asarray(bounds, float)
    if (
        pairs.ndim != 2
        or pairs.shape[1] != 2
        or not np.all(np.isfinite(pairs))
        or not np.all(pairs[:, 0] < pairs[:, 1])
    ):
        refuse(
            "bounds", "(low, high) for every coordinate, finite, low below high", repr(bounds), "Swap or widen them."
        )
    low, high = jnp.asarray(pairs[:, 0], jnp.result_type(float)), jnp.asarray(pairs[:, 1], jnp.result_type(float))
    if start is not None and (start.shape != low.shape or not bool(jnp.all((start >= low) & (start <= high)))):
        refuse("x0", f"{low.shape[0]} numbers within the bounds", repr(x0), "Move it inside, or leave it out.")
    return Space(low, high - low, True, start)
