"""Maps from free numbers z to constrained values x: smooth and one-to-one, or around a circle."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import refuse
from isotherm.foundation.parts import Part

# By how much the sum of a start's probabilities may differ from 1.
_MAX_GAP = 1e-4


class Transform(Part):
    """Base of all transforms. A transform acts on one leaf of a position, and allows leading axes.

    Attributes:
        rule: the constraint on x, in words.
        is_periodic: whether z and z plus a period have the same x.
    """

    rule: str = ""
    is_periodic: bool = False

    def forward(self, z: Any) -> Array:
        """X, from free numbers."""
        raise TypeError(f"{type(self).__name__} must define `forward`.")

    def inverse(self, x: Any) -> Array:
        """Z, from values strictly inside the constraint; NaN or infinite elsewhere."""
        raise TypeError(f"{type(self).__name__} must define `inverse`.")

    def log_jacobian(self, z: Any) -> Array:
        """The log of the absolute determinant of dx/dz, summed over the whole leaf."""
        raise TypeError(f"{type(self).__name__} must define `log_jacobian`.")

    def is_inside(self, x: Any) -> Any:
        """Whether x is strictly inside the constraint."""
        raise TypeError(f"{type(self).__name__} must define `is_inside`.")

    def unrolled(self, z: Any, is_used: np.ndarray) -> Any:
        """Free numbers of the same x, of periodic ones those near their circular mean.

        The first axes are those of `is_used`, which has the draws that count in that mean.
        """
        return z


@dataclasses.dataclass(frozen=True, eq=False)
class Positive(Transform):
    r"""Positive numbers by softplus.

        x = log(1 + exp(z)),        log dx/dz = log sigmoid(z)

    Other libraries use x = exp(z). The gradient of an energy that is linear in x then grows as exp(z), and a Langevin step from
    a large z may not come back. Under softplus the gradient is bounded.

    Example:
        >>> float(Positive().forward(Positive().inverse(2.5)))
        2.5
    """

    rule = "positive"

    def forward(self, z: Any) -> Array:
        return jax.nn.softplus(jnp.asarray(z))

    def inverse(self, x: Any) -> Array:
        return _inverse_softplus(jnp.asarray(x))

    def log_jacobian(self, z: Any) -> Array:
        return jnp.sum(jax.nn.log_sigmoid(jnp.asarray(z)))

    def is_inside(self, x: Any) -> Any:
        return np.asarray(x) > 0


@dataclasses.dataclass(frozen=True, eq=False)
class WithEnds(Transform):
    """Base of the transforms with two ends.

    Attributes:
        low: a number, or an array that broadcasts against the leaf.
        high: likewise, above `low`.
    """

    low: Any
    high: Any

    remedy = "Give both ends."

    def __post_init__(self):
        got = f"{self.low!r} and {self.high!r}"
        try:
            low, high = np.asarray(self.low, float), np.asarray(self.high, float)
            np.broadcast_shapes(low.shape, high.shape)
        except (TypeError, ValueError):
            refuse("low", "a number or an array, as `high` is", got, "Write `interval(-1.0, 1.0)`, say.")
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
            refuse("low", "finite and below `high`", got, self.remedy)

    def _ends(self, like: Any) -> tuple[Array, Array]:
        dtype = jnp.promote_types(jnp.result_type(like), jnp.float32)
        return jnp.asarray(self.low, dtype), jnp.asarray(self.high, dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Interval(WithEnds):
    r"""Numbers between two ends.

        x = low + (high - low) * sigmoid(z),        log dx/dz = log(high - low) + log sigmoid(z) + log sigmoid(-z)

    Attributes:
        low: a number, or an array that broadcasts against the leaf.
        high: likewise, above `low`.

    Example:
        >>> float(Interval(-1.0, 3.0).forward(0.0))
        1.0
    """

    rule = "strictly between its ends"
    remedy = "For one open end, use `positive()` and a shift."

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


@dataclasses.dataclass(frozen=True, eq=False)
class Circular(WithEnds):
    r"""Numbers on a circle, such as angles: `low` and `high` are the same point.

        x = low + (z - low) mod (high - low),        log dx/dz = 0

    Free numbers wander over periods; draws and the argument of the energy are in [low, high). The energy must go on smoothly from
    `high` to `low`: gradient samplers do not see a jump there.

    Attributes:
        low: a number, or an array that broadcasts against the leaf.
        high: likewise, a period above `low`.

    Example:
        >>> [float(x) for x in Circular(0.0, 4.0).forward(jnp.array([1.5, 5.5, -1.0]))]
        [1.5, 1.5, 3.0]
    """

    low: Any = -math.pi
    high: Any = math.pi

    rule = "between its ends"
    remedy = "Give the ends of one period, such as 0 and 24."
    is_periodic = True

    def forward(self, z: Any) -> Array:
        low, high = self._ends(z)
        z = jnp.asarray(z)
        wrapped = low + jnp.mod(z - low, high - low)
        # Rounding may lead up to the other end. Numbers inside stay as they are, to the bit.
        wrapped = jnp.where(wrapped >= high, low, wrapped)
        return jnp.where((z >= low) & (z < high), z, wrapped)

    def inverse(self, x: Any) -> Array:
        return jnp.asarray(x)

    def log_jacobian(self, z: Any) -> Array:
        return jnp.zeros((), self._ends(z)[0].dtype)

    def is_inside(self, x: Any) -> Any:
        low, high = map(np.asarray, self._ends(x))
        return (np.asarray(x) >= low) & (np.asarray(x) <= high)

    def unrolled(self, z: Any, is_used: np.ndarray) -> Any:
        period = np.asarray(self.high, float) - np.asarray(self.low, float)
        turns = np.where(is_used.reshape(is_used.shape + (1,) * (z.ndim - is_used.ndim)), z / period, 0.0)
        middle = np.angle(np.tensordot(is_used.astype(float), np.exp(2j * np.pi * turns), is_used.ndim)) / (2.0 * np.pi)
        return (z - period * np.round(turns - middle)).astype(z.dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Simplex(Transform):
    r"""K probabilities that sum to one along the last axis, from K - 1 free numbers, by stick-breaking.

        v_k = sigmoid(z_k - log(K - 1 - k)),    x_k = v_k * r_k,    r_k = prod_{j < k} (1 - v_j),    k = 0, ..., K - 2

    and x_{K-1} = r_{K-1} is the rest. z = 0 gives equal probabilities. Densities are with respect to the first K - 1
    probabilities, as a Dirichlet's is; log |dx/dz| is the sum of log v_k + log(1 - v_k) + log r_k.

    Example:
        >>> [round(float(p), 3) for p in Simplex().forward(jnp.zeros(3))]
        [0.25, 0.25, 0.25, 0.25]
    """

    rule = "positive with a sum of 1 along the last axis"

    def forward(self, z: Any) -> Array:
        piece, left = self._log_sticks(jnp.asarray(z))
        return jnp.exp(jnp.concatenate([piece + left[..., :-1], left[..., -1:]], axis=-1))

    def inverse(self, x: Any) -> Array:
        x = jnp.asarray(x)
        # The rest after each piece, summed from the small end.
        after = jnp.flip(jnp.cumsum(jnp.flip(x, -1), axis=-1), -1)[..., 1:]
        return jnp.log(x[..., :-1]) - jnp.log(after) + _log_counts(x.shape[-1] - 1, x.dtype)

    def log_jacobian(self, z: Any) -> Array:
        piece, left = self._log_sticks(jnp.asarray(z))
        # left[k + 1] is log(1 - v_k) + log r_k.
        return jnp.sum(piece + left[..., 1:])

    def is_inside(self, x: Any) -> Any:
        x = np.asarray(x)
        return (x > 0) & (np.abs(x.sum(axis=-1, keepdims=True) - 1.0) < _MAX_GAP)

    def _log_sticks(self, z: Array) -> tuple[Array, Array]:
        """Log v, shape (..., K - 1), and log r, shape (..., K)."""
        logits = z - _log_counts(z.shape[-1], z.dtype)
        left = jnp.cumsum(jax.nn.log_sigmoid(-logits), axis=-1)
        return jax.nn.log_sigmoid(logits), jnp.concatenate([jnp.zeros_like(z[..., :1]), left], axis=-1)


@dataclasses.dataclass(frozen=True, eq=False)
class Ordered(Transform):
    r"""Strictly increasing numbers along the last axis.

        x_0 = z_0,    x_k = x_{k-1} + log(1 + exp(z_k)),        log |dx/dz| = sum over k >= 1 of log sigmoid(z_k)

    Example:
        >>> bool(jnp.all(jnp.diff(Ordered().forward(jnp.array([3.0, -2.0, 0.5]))) > 0))
        True
    """

    rule = "strictly rising along the last axis"

    def forward(self, z: Any) -> Array:
        z = jnp.asarray(z)
        return jnp.cumsum(jnp.concatenate([z[..., :1], jax.nn.softplus(z[..., 1:])], axis=-1), axis=-1)

    def inverse(self, x: Any) -> Array:
        x = jnp.asarray(x)
        return jnp.concatenate([x[..., :1], _inverse_softplus(jnp.diff(x, axis=-1))], axis=-1)

    def log_jacobian(self, z: Any) -> Array:
        return jnp.sum(jax.nn.log_sigmoid(jnp.asarray(z)[..., 1:]))

    def is_inside(self, x: Any) -> Any:
        x = np.asarray(x)
        return x[..., 1:] > x[..., :-1]


def positive() -> Positive:
    """Numbers above zero, by softplus; see `Positive`."""
    return Positive()


def interval(low: Any, high: Any) -> Interval:
    """Numbers between `low` and `high`; see `Interval`."""
    return Interval(low, high)


def circular(low: Any = -math.pi, high: Any = math.pi) -> Circular:
    """Numbers of period `high` - `low`, angles by default; see `Circular`."""
    return Circular(low, high)


def simplex() -> Simplex:
    """Probabilities that sum to one along the last axis; see `Simplex`."""
    return Simplex()


def ordered() -> Ordered:
    """Increasing numbers along the last axis; see `Ordered`."""
    return Ordered()


def _inverse_softplus(x: Array) -> Array:
    """Log(exp(x) - 1), without overflow."""
    return x + jnp.log(-jnp.expm1(-x))


def _log_counts(number: int, dtype: Any) -> Array:
    """Log of the number of pieces after each of the first `number`."""
    return jnp.log(jnp.arange(number, 0, -1)).astype(dtype)
