"""The protocol of a kernel, which moves one chain.

A kernel is deterministic: noise is an argument. So a kernel can be checked against a few lines of NumPy, and the engine draws the
noise of many iterations in one call.
"""

from typing import Any, NamedTuple

from jax import Array

from isotherm.estimators.estimator import Curvature
from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.parts import Part


class Move(NamedTuple):
    """The numbers of a chain's next move, from its coupling. Scalars for one chain; with a leading axis for many.

    Attributes:
        step_size: epsilon.
        temperature: tau.
        multiplier: psi, the factor on the gradient, which the engine applies.
        momentum_scale: the factor on the momentum before the move; 1 unless the chain has just changed rungs.
        iteration: k, for kernels that change with time; set by the engine.
        words: two random words for kernels that make choices (`needs_words`); set by the engine.
    """

    step_size: Array
    temperature: Array
    multiplier: Array
    momentum_scale: Array
    iteration: Any = None
    words: Any = None


class Point(NamedTuple):
    """What a Metropolis test reads of a position: what the rung of the chain makes of its energy and gradient."""

    energy: Array
    gradient: Any


class StepErrors(NamedTuple):
    """How much larger the covariance of the draws is than the target's, divided by the same excess for SGLD.

    Both are of first order in the step size; see `isotherm.run.bias`.

    Attributes:
        curvature: excess by the curvature of the energy within a step, divided by epsilon tau / 2.
        noise: excess by gradient noise of variance V in a direction of curvature h, divided by epsilon V / (2 h).
        assumed_variance: the gradient variance of a coordinate, divided by the temperature, that the kernel assumes: it injects
            less noise for it.
    """

    curvature: float
    noise: float
    assumed_variance: float = 0.0


class Kernel(Part):
    """Base of all kernels.

    Attributes:
        needs_noise: whether `step` uses its standard normal noise.
        needs_words: whether `step` makes random choices, from the words of its move.
        needs_curvature: whether `step` uses `Curvature`, which costs about one more gradient.
        is_joint: whether `step` moves all chains of a run together, with a leading axis of chains everywhere.
        moves_copies: whether a position holds several copies of the parameters, so that it does not itself follow exp(-U / tau).
            Then the bias is not measured.
        is_elementwise: whether `step` does not depend on which leaf a number is in; sums over all numbers are allowed. Positions
            of 16 leaves or more then arrive as one vector per dtype. Not inherited: each subclass sets it.
        is_adjusted: whether `step` only proposes, and `settle` accepts or rejects by the energy and gradient at the proposal,
            which are those of the next iteration. Needs exact energies, and leaves no bias by the step size.
        step_errors: the bias by the step size; with None it is measured from gradients, where these have no noise.
    """

    needs_noise: bool = True
    needs_words: bool = False
    needs_curvature: bool = False
    is_joint: bool = False
    moves_copies: bool = False
    is_elementwise: bool = False
    is_adjusted: bool = False
    step_errors: StepErrors | None = None

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        cls.is_elementwise = cls.__dict__.get("is_elementwise", False)

    def preconditioner(self, state: Any) -> Any:
        """The factors G of the gradient, like a position; None for a kernel without."""
        return None

    def step_for(self, bias: float, noise: float, temperature: float = 1.0) -> float:
        """The step size for a relative bias of variances, in a well of curvature 1.

        `noise` is the variance of a coordinate of the gradient, divided by the temperature. Kernels without `step_errors` take the
        step of SGLD.
        """
        errors = self.step_errors or StepErrors(1.0, 1.0)
        return 2.0 * bias / (errors.curvature + errors.noise * noise)

    def check(self, position: Any) -> None:
        """Refuse, before any work, starts that this kernel cannot use, with leaves (run, chain, ...)."""

    def init(self, position: Any) -> Any:
        """The state of a chain at `position`: a NamedTuple whose first field is `position`."""
        raise TypeError(f"{type(self).__name__} must define `init`.")

    def step(self, state: Any, gradient: Any, noise: Any, move: Move, curvature: Curvature | None = None) -> Any:
        """The state after one move; `gradient` includes the multiplier."""
        raise TypeError(f"{type(self).__name__} must define `step`.")

    def placed(self, state: Any, position: Any) -> Any:
        """The state with another position."""
        return state._replace(position=position)

    def settle(self, before: Any, proposed: Any, here: Point, there: Point, move: Move, uniform: Array) -> Any:
        """The state after the Metropolis test of a proposal of `step`, for an adjusted kernel; `uniform` is in [0, 1)."""
        raise TypeError(f"{type(self).__name__} must define `settle`.")

    def was_accepted(self, state: Any) -> Array:
        """Whether the last proposal was accepted, for an adjusted kernel."""
        raise TypeError(f"{type(self).__name__} must define `was_accepted`.")

    def rejected(self, before: Any, proposed: Any) -> Any:
        """The state after rejection of a move from `before` to `proposed`, at the position of `before`.

        The rest of the state must leave the distribution unchanged: a momentum changes sign, as in Hamiltonian Monte Carlo with
        partial refreshment, and statistics of the gradient are kept.
        """
        return proposed._replace(position=before.position)

    def reflected(self, proposed: Any, position: Any, is_turned: Any) -> Any:
        """The state after a move to `proposed` that the walls of a box reflected to `position`.

        `is_turned`, like a position, is True where a coordinate met an odd number of walls: there a momentum changes sign.
        """
        return proposed._replace(position=position)

    def statistics(self, state: Any) -> dict[str, Any]:
        """Entries of `Run.stats` for each chain, from its last state."""
        return {}

    def diagnose(self, run: RunView) -> list[Check]:
        """Checks that fired for a run of this kernel."""
        return []
