"""How one chain moves: the protocol of a kernel.

A kernel is deterministic. The driver draws the noise and hands it in, so that a kernel can be checked line by line against a
few lines of NumPy, and noise for many iterations can be drawn in one call.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.estimators.estimator import Curvature
from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.parts import Part


class Move(NamedTuple):
    """What a coupling tells a chain about its next move. Scalars for one chain; with a leading axis for many.

    Attributes:
        step_size: epsilon.
        temperature: tau.
        multiplier: psi, the factor that the driver puts on the gradient.
        momentum_scale: the factor on the momentum before the move; 1 unless the chain has just changed rungs.
        iteration: k, for kernels that change with time. Couplings leave it out: the loop fills it in.
    """

    step_size: Array
    temperature: Array
    multiplier: Array
    momentum_scale: Array
    iteration: Any = None


class StepErrors(NamedTuple):
    """The covariance that a kernel adds to that of its target, over what SGLD adds, to first order in the step; see `runs.bias`.

    Attributes:
        curvature: by the curvature of the energy within a step: SGLD adds epsilon tau / 2.
        noise: by gradient noise of variance V, in a direction of curvature h: SGLD adds epsilon V / (2 h).
        assumed_variance: the V of each coordinate, over the temperature, that is left out of the noise that is injected.
    """

    curvature: float
    noise: float
    assumed_variance: float = 0.0


class Kernel(Part):
    """Base of all kernels.

    Attributes:
        needs_noise: whether `step` uses the standard normal noise that it is handed.
        needs_curvature: whether `step` uses `Curvature`, which costs about one more gradient.
        is_joint: whether `step` moves all chains of a run together, with a leading axis of chains everywhere.
        is_elementwise: whether it treats all numbers of a position alike, whatever leaf they are in. The engine then hands it
            positions of 16 leaves or more as one vector per type of number; else it sees the tree that the user gave. A subclass
            says so itself: this is not inherited.
    """

    needs_noise: bool = True
    needs_curvature: bool = False
    is_joint: bool = False
    is_elementwise: bool = False

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        cls.is_elementwise = cls.__dict__.get("is_elementwise", False)

    @property
    def step_errors(self) -> StepErrors | None:
        """How its step size moves the distribution that it samples; None where it samples none, or nobody knows."""
        return None

    def preconditioner(self, state: Any) -> Any:
        """The factors G of the gradient, like a position; None for a kernel that has none."""
        return None

    def check(self, position: Any) -> None:
        """Refuse, before any work, starts that this kernel cannot use; leaves have the axes (run, chain, ...)."""

    def init(self, position: Any) -> Any:
        """The state of a chain at `position`: a NamedTuple whose first field is `position`."""
        raise TypeError(f"{type(self).__name__} must define `init`.")

    def step(self, state: Any, gradient: Any, noise: Any, move: Move, curvature: Curvature | None = None) -> Any:
        """The state after one move; `gradient` already carries the multiplier."""
        raise TypeError(f"{type(self).__name__} must define `step`.")

    def rejected(self, before: Any, proposed: Any) -> Any:
        """The state after a move from `before` to `proposed` was rejected: the position is that of `before`.

        What else the state holds must leave the distribution of the kernel unchanged: a momentum turns round, as in Hamiltonian
        Monte Carlo with partial refreshment, and what was learned from the gradient stays learned.
        """
        return proposed._replace(position=before.position)

    def statistics(self, state: Any) -> dict[str, Any]:
        """What a run reports about the kernel of a chain at the end."""
        return {}

    def diagnose(self, run: RunView) -> list[Check]:
        """What is wrong with a run of this kernel. Make findings with `Check`."""
        return []


@dataclasses.dataclass(frozen=True, eq=False)
class WrappedKernel(Kernel):
    """Base of kernels around another one.

    Attributes:
        inner: the kernel that moves.
    """

    inner: Kernel

    @property
    def needs_noise(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.needs_noise

    @property
    def needs_curvature(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.needs_curvature

    @property
    def is_joint(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.is_joint

    @property
    def step_errors(self) -> StepErrors | None:
        return self.inner.step_errors

    def preconditioner(self, state: Any) -> Any:
        return self.inner.preconditioner(state)

    def check(self, position: Any) -> None:
        self.inner.check(position)

    def rejected(self, before: Any, proposed: Any) -> Any:
        return self.inner.rejected(before, proposed)

    def diagnose(self, run: RunView) -> list[Check]:
        return self.inner.diagnose(run)


def langevin_step(position: Any, gradient: Any, noise: Any, move: Move) -> Any:
    """X - epsilon * g + sqrt(2 * epsilon * tau) * xi, leaf by leaf."""
    spread = jnp.sqrt(2.0 * move.step_size * move.temperature)
    return jax.tree.map(
        # Added at once: next to a large x, a drift that is small beside the noise would be rounded away.
        lambda x, g, xi: x + (spread * xi - move.step_size * g).astype(x.dtype),
        position,
        gradient,
        noise,
    )
