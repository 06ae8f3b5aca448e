"""Stochastic gradient Hamiltonian Monte Carlo, and its limit without noise."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.errors import check_real
from isotherm.estimators.estimator import Curvature
from isotherm.kernels.kernel import Kernel, Move


class MomentumState(NamedTuple):
    """A position and its momentum, which is a velocity: it is added to the position as it is, step size included."""

    position: Any
    momentum: Any


@dataclasses.dataclass(frozen=True, eq=False)
class SGHMC(Kernel):
    r"""Langevin dynamics with momentum.

        v_{k+1} = (1 - alpha) * v_k - epsilon_k * g_k + sqrt(2 * epsilon_k * (alpha - b_k) * tau_k) * xi_k
        x_{k+1} = x_k + v_{k+1},        b_k = V * epsilon_k / 2

    The momentum starts at zero and holds the step size. The noise follows the current step size. alpha = 1 is SGLD. Its stationary
    standard deviation is about sqrt(epsilon * tau) in every coordinate.

    Attributes:
        friction: alpha, one minus the usual momentum coefficient.
        gradient_variance: V, an estimate of the variance of the stochastic gradient, whose noise is then left out of what is
            injected. Where b_k exceeds alpha nothing is injected.

    Reference:
        Chen et al. 2014; Deng 2021, section 3.4.2 ("the numerical method of Saatci and Wilson").

    Differs from the thesis: the author's code keeps the noise of the first step size after the step size has decayed.
    """

    friction: float = 0.1
    gradient_variance: float = 0.0

    def __post_init__(self):
        check_friction(self.friction)
        check_real("gradient_variance", self.gradient_variance, "Give a variance, or 0.", minimum=0.0)

    def init(self, position: Any) -> MomentumState:
        return MomentumState(position, jax.tree.map(jnp.zeros_like, position))

    def step(
        self, state: MomentumState, gradient: Any, noise: Any, move: Move, curvature: Curvature | None = None
    ) -> MomentumState:
        injected = jnp.maximum(self.friction - 0.5 * self.gradient_variance * move.step_size, 0.0)
        spread = jnp.sqrt(2.0 * move.step_size * injected * move.temperature)
        pushed = push(state.momentum, gradient, self.friction, move)
        momentum = jax.tree.map(lambda v, xi: v + (spread * xi).astype(v.dtype), pushed, noise)
        return MomentumState(jax.tree.map(jnp.add, state.position, momentum), momentum)


@dataclasses.dataclass(frozen=True, eq=False)
class MomentumSGD(Kernel):
    """SGHMC without noise: v <- (1 - alpha) * v - epsilon * g, x <- x + v. The velocity holds the step size.

    Attributes:
        friction: alpha, one minus the usual momentum coefficient.

    Differs from the thesis: Nothing.
    """

    friction: float = 0.1

    needs_noise = False

    def __post_init__(self):
        check_friction(self.friction)

    def init(self, position: Any) -> MomentumState:
        return MomentumState(position, jax.tree.map(jnp.zeros_like, position))

    def step(
        self, state: MomentumState, gradient: Any, noise: Any, move: Move, curvature: Curvature | None = None
    ) -> MomentumState:
        momentum = push(state.momentum, gradient, self.friction, move)
        return MomentumState(jax.tree.map(jnp.add, state.position, momentum), momentum)


def check_friction(friction: float) -> None:
    """Refuse a friction outside (0, 1]."""
    remedy = "Give one minus the momentum coefficient, such as 0.1."
    check_real("friction", friction, remedy, above=0.0, maximum=1.0)


def push(momentum: Any, gradient: Any, friction: float, move: Move) -> Any:
    """(1 - alpha) * s * v - epsilon * g with the momentum scale s of a change of rungs."""
    kept: Array | float = (1.0 - friction) * move.momentum_scale
    return jax.tree.map(
        lambda v, g: (kept * v).astype(v.dtype) - (move.step_size * g).astype(v.dtype), momentum, gradient
    )
