"""Stochastic gradient Hamiltonian Monte Carlo, and its limit without noise."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import check_integer, check_real
from isotherm.foundation.parts import Static
from isotherm.kernels.kernel import Kernel, Move, StepErrors


class MomentumState(NamedTuple):
    """A position and its momentum, a velocity that includes the step size: it is added to the position."""

    position: Any
    momentum: Any


@dataclasses.dataclass(frozen=True, eq=False)
class WithMomentum(Kernel):
    """Base of the kernels whose state is `MomentumState`: friction, a start at rest, and rejected moves."""

    friction: float = 0.1

    def __post_init__(self):
        remedy = "Give one minus the momentum coefficient, such as 0.1."
        check_real("friction", self.friction, remedy, above=0.0, maximum=1.0)

    def init(self, position: Any) -> MomentumState:
        return MomentumState(position, jax.tree.map(jnp.zeros_like, position))

    def rejected(self, before: MomentumState, proposed: MomentumState) -> MomentumState:
        """The old position, and minus the proposed momentum, or the old one where that is not finite."""
        turn = lambda new, old: -jnp.where(jnp.isfinite(new), new, old)  # noqa: E731
        return MomentumState(before.position, jax.tree.map(turn, proposed.momentum, before.momentum))

    def reflected(self, proposed: MomentumState, position: Any, is_turned: Any) -> MomentumState:
        turn = lambda v, is_odd: jnp.where(is_odd, -v, v)  # noqa: E731
        return MomentumState(position, jax.tree.map(turn, proposed.momentum, is_turned))


@dataclasses.dataclass(frozen=True, eq=False)
class SGHMC(WithMomentum):
    r"""Langevin dynamics with momentum.

        v_{k+1} = (1 - alpha) * v_k - epsilon_k * g_k + sqrt(2 * epsilon_k * (alpha - b_k) * tau_k) * xi_k
        x_{k+1} = x_k + v_{k+1},        b_k = V * epsilon_k / 2

    The momentum starts at zero and includes the step size; its stationary standard deviation is about sqrt(epsilon * tau) in every
    coordinate. The noise follows the current step size. alpha = 1 is SGLD.

    Every `resample_every` iterations the move is a Langevin step of size epsilon / (2 - alpha), and becomes the momentum:

        v_{k+1} = -epsilon_k / (2 - alpha) * g_k + sqrt(2 * epsilon_k * tau_k / (2 - alpha)) * xi_k

    Under the stationary distribution Var(v) = 2 epsilon tau / (2 - alpha) and Cov(x, v) = Var(v) / 2, since x includes the last
    move. This step has both, to first order in epsilon; a momentum drawn independently of x has not, and widens the draws.

    Attributes:
        friction: alpha, one minus the usual momentum coefficient.
        gradient_variance: V, an estimate of the variance of the stochastic gradient, by which less noise is injected: none if b_k
            exceeds alpha.
        resample_every: iterations between two draws of a new momentum; None never draws one.

    Reference:
        Chen et al. 2014; Deng 2021, section 3.4.2 ("the numerical method of Saatci and Wilson"); velocities that are resampled:
        section 4.3, rugged landscapes.

    Differs from the thesis: the author's code keeps the noise of the first step size when the step size decays, and draws momenta
    independently of the position.
    """

    gradient_variance: float = 0.0
    resample_every: Static[int | None] = None

    is_elementwise = True

    def __post_init__(self):
        super().__post_init__()
        check_real("gradient_variance", self.gradient_variance, "Give a variance, or 0.", minimum=0.0)
        if self.resample_every is not None:
            check_integer("resample_every", self.resample_every, 1, "Give a number of iterations, or None.")

    @property
    def step_errors(self) -> StepErrors:  # pyright: ignore[reportIncompatibleVariableOverride]
        return StepErrors(1.0 / (2.0 - self.friction), self._noise_error(), self.gradient_variance)

    def step(self, state: MomentumState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> MomentumState:
        injected = jnp.maximum(self.friction - 0.5 * self.gradient_variance * move.step_size, 0.0)
        kept = (1.0 - self.friction) * move.momentum_scale
        if self.resample_every is not None:
            is_due = move.iteration % self.resample_every == 0
            share = 1.0 / (2.0 - self.friction)
            from_gradient = 0.5 * self.gradient_variance * move.step_size * share**2
            injected = jnp.where(is_due, jnp.maximum(share - from_gradient, 0.0), injected)
            kept = jnp.where(is_due, 0.0, kept)
            gradient = jax.tree.map(lambda g: (jnp.where(is_due, share, 1.0) * g).astype(g.dtype), gradient)
        spread = jnp.sqrt(2.0 * move.step_size * injected * move.temperature)
        pushed = _push(state.momentum, gradient, kept, move)
        momentum = jax.tree.map(lambda v, xi: v + (spread * xi).astype(v.dtype), pushed, noise)
        return MomentumState(jax.tree.map(jnp.add, state.position, momentum), momentum)

    def _noise_error(self) -> float:
        """The `noise` of `step_errors`: the mean square over the mean displacement by a kick.

        A kick moves the position by (1 - (1 - alpha)^m) / alpha over the m moves up to the next new momentum.
        """
        if self.resample_every is None:
            return 1.0 / self.friction
        moves = -np.expm1(np.arange(1, self.resample_every + 1) * np.log1p(-min(self.friction, 1.0 - 1e-12)))
        moves /= self.friction
        # The kick of the step that draws the momentum is shorter, and acts over the most moves.
        moves[-1] /= 2.0 - self.friction
        return float(np.sum(moves**2) / np.sum(moves))


@dataclasses.dataclass(frozen=True, eq=False)
class MomentumSGD(WithMomentum):
    """SGHMC without noise: v <- (1 - alpha) * v - epsilon * g, x <- x + v. The velocity includes the step size.

    Attributes:
        friction: alpha, one minus the usual momentum coefficient.
    """

    needs_noise = False
    is_elementwise = True

    def step(self, state: MomentumState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> MomentumState:
        momentum = _push(state.momentum, gradient, (1.0 - self.friction) * move.momentum_scale, move)
        return MomentumState(jax.tree.map(jnp.add, state.position, momentum), momentum)


def _push(momentum: Any, gradient: Any, kept: Array, move: Move) -> Any:
    """Kept * v - epsilon * g, where `kept` combines the friction and the scale of a change of rungs."""
    return jax.tree.map(
        lambda v, g: (kept * v).astype(v.dtype) - (move.step_size * g).astype(v.dtype), momentum, gradient
    )
