"""Stochastic gradient Langevin dynamics, and its limit without noise."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from isotherm.kernels.kernel import Kernel, Move, StepErrors


class PositionState(NamedTuple):
    """The state of a chain without memory."""

    position: Any


@dataclasses.dataclass(frozen=True, eq=False)
class SGLD(Kernel):
    r"""Langevin dynamics with a stochastic gradient.

        x_{k+1} = x_k - epsilon_k * g_k + sqrt(2 * epsilon_k * tau_k) * xi_k

    where g_k is a gradient of U at x_k and xi_k is standard normal. One gradient per iteration, no memory beyond the position. A
    finite step size biases the distribution by O(epsilon), and gradient noise of variance s^2 heats it by about epsilon * s^2 / 2.

    Example:
        >>> move = Move(jnp.array(0.5), jnp.array(1.0), jnp.array(1.0), jnp.array(1.0))
        >>> SGLD().step(PositionState(jnp.array(2.0)), jnp.array(2.0), jnp.array(-1.0), move)
        PositionState(position=Array(0., dtype=float32))

    Reference:
        Welling and Teh 2011; Deng 2021, equation for SGLD in chapter 2.
    """

    is_elementwise = True
    step_errors = StepErrors(1.0, 1.0)

    def init(self, position: Any) -> PositionState:
        return PositionState(position)

    def step(self, state: PositionState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> PositionState:
        spread = jnp.sqrt(2.0 * move.step_size * move.temperature)

        def moved(x, g, xi):
            # Noise and drift are added to each other first: next to a large x, a small drift would be rounded away.
            return x + (spread * xi - move.step_size * g).astype(x.dtype)

        return PositionState(jax.tree.map(moved, state.position, gradient, noise))


@dataclasses.dataclass(frozen=True, eq=False)
class SGD(Kernel):
    """Stochastic gradient descent: x_{k+1} = x_k - epsilon_k * g_k. SGLD at temperature zero, and no noise is drawn."""

    needs_noise = False
    is_elementwise = True

    def init(self, position: Any) -> PositionState:
        return PositionState(position)

    def step(self, state: PositionState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> PositionState:
        moved = jax.tree.map(lambda x, g: x - (move.step_size * g).astype(x.dtype), state.position, gradient)
        return PositionState(moved)
