"""Sums over very many examples in single precision.

The energy of a million examples is stored to a sixteenth. A total that is added to piece by piece rounds by that much at every
addition, and ends off by a unit or more: as many nats in a swap or a weight. Within a piece the compiler's own sum is good.
"""

import jax.numpy as jnp
from jax import Array


def compensated(total: Array, lost: Array, value: Array) -> tuple[Array, Array]:
    """A running total after `value` was added to it, and what all of its additions have lost to rounding so far.

    Reference:
        Neumaier 1974, for the sum `total + lost`.
    """
    after = total + value
    is_larger = jnp.abs(total) >= jnp.abs(value)
    large, small = jnp.where(is_larger, total, value), jnp.where(is_larger, value, total)
    return after, lost + ((large - after) + small)
