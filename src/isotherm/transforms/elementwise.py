"""Numbers that are positive, or within an interval."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import refuse
from isotherm.transforms.transform import Transform


@dataclasses.dataclass(frozen=True, eq=False)
class Positive(Transform):
    r"""Positive numbers by softplus.

        x = log(1 + exp(z)),        log dx/dz = log sigmoid(z)

    Not by exp, which other libraries use: with x = exp(z) the gradient of an energy that is linear in x grows as exp(z), and a
    Langevin step from a large z may not come back. Under softplus it stays bounded.

    Example:
        >>> float(Positive().forward(Positive().inverse(2.5)))
        2.5
    """

    rule = "positive"

    def forward(self, z: Any) -> Array:
        return jax.nn.softplus(jnp.asarray(z))

    def inverse(self, x: Any) -> Array:
        return inverse_softplus(jnp.asarray(x))

    def log_jacobian(self, z: Any) -> Array:
        return jnp.sum(jax.nn.log_sigmoid(jnp.asarray(z)))

    def is_inside(self, x: Any) -> Any:
        return np.asarray(x) > 0


@dataclasses.dataclass(frozen=True, eq=False)
class Interval(Transform):
    r"""Numbers between two ends.

        x = low + (high - low) * sigmoid(z),        log dx/dz = log(high - low) + log sigmoid(z) + log sigmoid(-z)

    Attributes:
        low: a number, or an array that broadcasts against the leaf.
        high: likewise, above `low`.

    Example:
        >>> float(Interval(-1.0, 3.0).forward(0.0))
        1.0
    """

    low: Any
    high: Any

    rule = "strictly between its ends"

    def __post_init__(self):
        got = f"{self.low!r} and {self.high!r}"
        try:
            ends = np.asarray(self.low, float), np.asarray(self.high, float)
            np.broadcast_shapes(ends[0].shape, ends[1].shape)
        except (TypeError, ValueError):
            refuse("low", "a number or an array, as `high` is", got, "Write `interval(-1.0, 1.0)`, say.")
        if not (np.all(np.isfinite(ends[0])) and np.all(np.isfinite(ends[1])) and np.all(ends[0] < ends[1])):
            refuse("low", "finite and below `high`", got, "For one open end, use `positive()` and a shift.")

    def forward(self, z: Any) -> Array:
        low, high = self._ends(z)
        return low + (high - low) * jax.nn.sigmoid(z)

    def inverse(self, x: Any) -> Array:
        low, high = self._ends(x)
        return jnp.log(x - low) - jnp.log(high - x)

    def log_jacobian(self, z: Any) -> Array:
        low, high = self._ends(z)
        return jnp.sum(jnp.log(high - low) + jax.nn.log_sigmoid(z) + jax.nn.log_sigmoid(-jnp.asarray(z)))

    def is_inside(self, x: Any) -> Any:
        return (np.asarray(x) > np.asarray(self.low)) & (np.asarray(x) < np.asarray(self.high))

    def _ends(self, like: Any) -> tuple[Array, Array]:
        dtype = jnp.promote_types(jnp.result_type(like), jnp.float32)
        return jnp.asarray(self.low, dtype), jnp.asarray(self.high, dtype)


def positive() -> Positive:
    """Numbers above zero, by softplus; see `Positive`."""
    return Positive()


def interval(low: Any, high: Any) -> Interval:
    """Numbers between `low` and `high`; see `Interval`."""
    return Interval(low, high)


def inverse_softplus(x: Array) -> Array:
    """Log(exp(x) - 1), which does not overflow."""
    return x + jnp.log(-jnp.expm1(-x))
