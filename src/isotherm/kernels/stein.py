"""Stein variational gradient descent: particles that descend the energy and repel one another."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from isotherm.foundation.errors import check_real, refuse
from isotherm.kernels.kernel import Kernel, Move
from isotherm.kernels.sgld import PositionState


@dataclasses.dataclass(frozen=True, eq=False)
class Stein(Kernel):
    r"""Moves the P chains of a run together; they are its particles.

        x_i <- x_i + (epsilon / P) * sum_j [ -k(x_j, x_i) * g_j + tau * grad_{x_j} k(x_j, x_i) ]

    with k(x, y) = exp(-|x - y|^2 / h) and h = median of the squared distances / log(P + 1). Costs P gradients and O(P^2 d) per
    iteration. Deterministic: it finds the modes that its starts reach, and underestimates the spread in high dimension.

    Attributes:
        bandwidth: h; None is the median heuristic.

    Reference:
        Liu and Wang 2016, Algorithm 1; a baseline of Deng 2021, section 4.3.

    Differs from the thesis: the repulsion carries the temperature, so that the particles approximate exp(-U / tau).
    """

    bandwidth: float | None = None

    needs_noise = False
    is_joint = True
    is_elementwise = True

    def __post_init__(self):
        if self.bandwidth is not None:
            check_real("bandwidth", self.bandwidth, "Give a squared length, or None for the median rule.", above=0.0)

    def check(self, position: Any) -> None:
        number = jax.tree.leaves(position)[0].shape[1]
        if number < 2:
            refuse("num_chains", "at least 2 for particles that move together", number, "Pass num_chains=100, say.")
        if not any(np.any(np.asarray(leaf[:, 1:] != leaf[:, :1])) for leaf in jax.tree.leaves(position)):
            remedy = "Equal particles stay equal: pass `iso.per_chain(positions)` or a function of a key."
            refuse("init", "different for every chain", "one position for all", remedy)

    def init(self, position: Any) -> PositionState:
        return PositionState(position)

    def step(self, state: PositionState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> PositionState:
        particles = jax.vmap(lambda x: ravel_pytree(x)[0])(state.position)
        gradients = jax.vmap(lambda g: ravel_pytree(g)[0])(gradient)
        unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], state.position))[1]
        direction = self._direction(particles, gradients, move.temperature[:, None])
        moved = particles + (move.step_size[:, None] * direction).astype(particles.dtype)
        return PositionState(jax.vmap(unravel)(moved))

    def _direction(self, particles: Array, gradients: Array, temperature: Array) -> Array:
        centered = particles - jnp.mean(particles, axis=0, keepdims=True)
        norms = jnp.sum(centered**2, axis=1)
        squared = jnp.maximum(norms[:, None] + norms[None] - 2.0 * centered @ centered.T, 0.0)
        bandwidth = _median(squared) / jnp.log(len(particles) + 1.0) if self.bandwidth is None else self.bandwidth
        weight = jnp.exp(-squared / jnp.maximum(bandwidth, jnp.finfo(squared.dtype).tiny))
        # grad_{x_j} k(x_j, x_i) = 2 / h * (x_i - x_j) * k(x_j, x_i), summed over j.
        repulsion = 2.0 / bandwidth * (centered * jnp.sum(weight, axis=1)[:, None] - weight @ centered)
        return (temperature * repulsion - weight @ gradients) / len(particles)


def _median(values: Array) -> Array:
    """The median by bisection to 24 bits of the largest value, far cheaper than sorting.

    Of an even number the upper one: for two particles the lower one is the distance of each to itself.
    """

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        is_low = 2 * jnp.sum(values <= middle) <= values.size
        return jnp.where(is_low, middle, low), jnp.where(is_low, high, middle)

    low, high = lax.fori_loop(0, 24, halve, (jnp.zeros((), values.dtype), jnp.max(values)))
    return 0.5 * (low + high)
