"""Kernels that accept or reject their moves by exact energies: generalized Hamiltonian Monte Carlo, and MALA."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.errors import check_real
from isotherm.kernels.acceptance import diagnose
from isotherm.kernels.kernel import Kernel, Move, Point, StepErrors

# How fast the level of the next acceptance moves, out of a cycle of length 2, and the random part of that.
_DRIFT, _JITTER = 0.03, 0.01


class AdjustedState(NamedTuple):
    """A position, its momentum and the result of the last proposal."""

    position: Any
    momentum: (
        Any  # v / sqrt(epsilon tau), which is standard normal whatever the rung and the schedules; of a proposal w.
    )
    level: Array  # In (-1, 1): a proposal is accepted if its ratio exceeds the absolute value.
    is_accepted: Array
    num_accepted: Array


@dataclasses.dataclass(frozen=True, eq=False)
class GHMC(Kernel):
    r"""Langevin dynamics with momentum, and a Metropolis test for every step. For exact energies only.

        v <- (1 - alpha) v + sqrt((1 - (1 - alpha)^2) epsilon tau) xi
        w  = v - epsilon / 2 g(x),     y = x + w,     v' = w - epsilon / 2 g(y)
        accept (y, v') with probability min(1, exp{ -(U(y) - U(x) + (|v'|^2 - |v|^2) / (2 epsilon)) / tau }), else (x, -v)

    The target exp(-U / tau) is exact at every step size. The gradient at y is that of the next iteration, so a move costs one.
    alpha = 1 is MALA with half the step size.

    A rejection turns the chain back, which costs more the smaller alpha is. So the level that the probability must exceed is not
    drawn anew: it drifts through its range and is divided by the ratio of an accepted move. That leaves its uniform distribution
    unchanged, and rejections come in clusters, with long paths between them.

    Attributes:
        friction: alpha, the part of the momentum that an iteration forgets.

    Reference:
        Horowitz 1991; Neal 2020, "Non-reversibly updating a uniform [0,1] value for Metropolis accept/reject decisions".
    """

    friction: float = 0.1

    is_adjusted = True
    is_elementwise = True
    step_errors = StepErrors(0.0, 0.0)

    def __post_init__(self):
        remedy = "Give the part of the momentum that an iteration forgets, such as 0.1."
        check_real("friction", self.friction, remedy, above=0.0, maximum=1.0)

    def init(self, position: Any) -> AdjustedState:
        momentum = jax.tree.map(jnp.zeros_like, position)
        return AdjustedState(position, momentum, jnp.zeros(()), jnp.ones((), bool), jnp.zeros((), jnp.int32))

    def step(self, state: AdjustedState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> AdjustedState:
        # The first momentum is drawn whole.
        kept, half = jnp.where(move.iteration == 0, 0.0, 1.0 - self.friction), 0.5 * move.step_size
        scale, drawn = jnp.sqrt(move.step_size * move.temperature), jnp.sqrt(1.0 - kept**2)

        def kicked(v, g, xi):
            # A gradient that was no number left such a momentum.
            v = jnp.where(jnp.isfinite(v), v, 0.0)
            return (scale * (kept * v + drawn * xi) - half * g).astype(v.dtype)

        momentum = jax.tree.map(kicked, state.momentum, gradient, noise)
        return state._replace(position=jax.tree.map(jnp.add, state.position, momentum), momentum=momentum)

    def settle(
        self, before: AdjustedState, proposed: AdjustedState, here: Point, there: Point, move: Move, uniform: Array
    ) -> AdjustedState:
        half, scale = 0.5 * move.step_size, jnp.sqrt(move.step_size * move.temperature)

        # The kinetic energies as one product of small numbers: their difference would cancel.
        def work_of(w, g, h):
            return jnp.sum(-0.5 * (g + h) * w + 0.25 * half * (h - g) * (h + g))

        work = sum(jax.tree.leaves(jax.tree.map(work_of, proposed.momentum, here.gradient, there.gradient)))
        ratio = jnp.exp(-(there.energy - here.energy + work) / move.temperature)
        shift = jnp.where(self.friction < 1.0, _DRIFT + _JITTER * uniform, 2.0 * uniform)
        # The first level is drawn, too: a common one would not be uniform.
        shifted = before.level + shift
        shifted = jnp.where(shifted >= 1.0, shifted - 2.0, shifted)
        level = jnp.where(move.iteration == 0, 2.0 * uniform - 1.0, shifted)
        # Written so that NaN is rejected.
        is_accepted = jnp.isfinite(there.energy) & (jnp.abs(level) < ratio)
        level = jnp.where(is_accepted, level / jnp.maximum(jnp.maximum(ratio, jnp.abs(level)), 1e-30), level).astype(
            level.dtype
        )

        def turned(w, g, h):
            return (jnp.where(is_accepted, w - half * h, -(w + half * g)) / scale).astype(w.dtype)

        return AdjustedState(
            jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), proposed.position, before.position),
            jax.tree.map(turned, proposed.momentum, here.gradient, there.gradient),
            level,
            is_accepted,
            before.num_accepted + is_accepted.astype(jnp.int32),
        )

    def was_accepted(self, state: AdjustedState) -> Array:
        return state.is_accepted

    def statistics(self, state: AdjustedState) -> dict[str, Any]:
        return {"num_accepted": state.num_accepted}

    def diagnose(self, run: RunView) -> list[Check]:
        return diagnose(run)


@dataclasses.dataclass(frozen=True, eq=False)
class MALA(GHMC):
    r"""The Metropolis-adjusted Langevin algorithm. For exact energies only.

        y = x - epsilon g(x) + sqrt(2 epsilon tau) xi
        accept y with probability min(1, exp{ (U(x) - U(y)) / tau } q(x | y) / q(y | x)), else stay at x

    with q(y | x) the normal density of the proposal. It is `GHMC` with twice the step size, which forgets all of its momentum.

    Reference:
        Roberts and Tweedie 1996.
    """

    friction: float = 1.0

    is_elementwise = True

    def step(self, state: AdjustedState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> AdjustedState:
        return super().step(state, gradient, noise, _twice(move), curvature)

    def settle(
        self, before: AdjustedState, proposed: AdjustedState, here: Point, there: Point, move: Move, uniform: Array
    ) -> AdjustedState:
        return super().settle(before, proposed, here, there, _twice(move), uniform)


def _twice(move: Move) -> Move:
    return move._replace(step_size=2.0 * move.step_size)
