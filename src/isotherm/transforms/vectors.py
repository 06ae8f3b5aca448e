"""Vectors with a constraint among their entries: probabilities, and rising numbers. The last axis is that of the vector."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.transforms.elementwise import inverse_softplus
from isotherm.transforms.transform import Transform

# By how much probabilities of a start may miss 1.
_MAX_GAP = 1e-4


@dataclasses.dataclass(frozen=True, eq=False)
class Simplex(Transform):
    r"""K probabilities that sum to one, from K - 1 free numbers, by breaking a stick.

        v_k = sigmoid(z_k - log(K - 1 - k)),    x_k = v_k * r_k,    r_k = prod_{j < k} (1 - v_j),    k = 0, ..., K - 2

    and x_{K-1} = r_{K-1} is what is left. z = 0 gives equal probabilities. Densities are with respect to the first K - 1 of
    them, as a Dirichlet's is; log |dx/dz| is the sum of log v_k + log(1 - v_k) + log r_k.

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
        # What is left after each piece, summed from the small end.
        after = jnp.flip(jnp.cumsum(jnp.flip(x, -1), axis=-1), -1)[..., 1:]
        return jnp.log(x[..., :-1]) - jnp.log(after) + _log_counts(x.shape[-1] - 1, x.dtype)

    def log_jacobian(self, z: Any) -> Array:
        z = jnp.asarray(z)
        piece, left = self._log_sticks(z)
        # log(1 - v_k) is the difference of what is left.
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
    r"""Numbers that rise along the last axis.

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
        return jnp.concatenate([x[..., :1], inverse_softplus(jnp.diff(x, axis=-1))], axis=-1)

    def log_jacobian(self, z: Any) -> Array:
        return jnp.sum(jax.nn.log_sigmoid(jnp.asarray(z)[..., 1:]))

    def is_inside(self, x: Any) -> Any:
        values = np.asarray(x)
        return values[..., 1:] > values[..., :-1]


def simplex() -> Simplex:
    """Probabilities that sum to one, along the last axis; see `Simplex`."""
    return Simplex()


def ordered() -> Ordered:
    """Numbers that rise along the last axis; see `Ordered`."""
    return Ordered()


def _log_counts(number: int, dtype: Any) -> Array:
    """Log of the pieces that come after each of the first `number` ones."""
    return jnp.log(jnp.arange(number, 0, -1)).astype(dtype)
