"""How chains of a run act on one another: the protocol of a coupling, and the one that does nothing.

A coupling reads energies, never parameters, so it costs the same for 2 weights or 2 billion.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.parts import Part
from isotherm.foundation.periodic import Periodic
from isotherm.kernels.kernel import Move
from isotherm.potentials.potential import Potential


class CouplingInputs(NamedTuple):
    """What a coupling sees of the P chains of its run at one iteration.

    Attributes:
        energies: shape (P,); without the prior where the potential says so (`Potential.coupling_includes_prior`). Of energies that
            were measured for periodic work, (number, P).
        prior_energies: the prior's energies, likewise.
        is_alive: whether each energy is finite, likewise. A chain that is not must leave no trace in what others share.
        step_size: the scheduled step size of this iteration, a scalar.
        temperature: the scheduled temperature of this iteration, a scalar.
        iteration: k.
        fresh_energies: further energies of every chain on batches of their own, shape (num_fresh, P), for couplings that ask.
        noise_covariance: of the noise of `energies`, from the examples of their batch, shape (P, P); or of `fresh_energies`, shape
            (num_fresh, P, P). For couplings that ask; None where the potential does not know it.
        num_examples: how many examples that was found from.
    """

    energies: Array
    prior_energies: Array
    is_alive: Array
    step_size: Array
    temperature: Array
    iteration: Array
    fresh_energies: Array | None = None
    noise_covariance: Array | None = None
    num_examples: Array | None = None


class WeightEdges(NamedTuple):
    """The edges of energy bins.

    Attributes:
        low: the first edge.
        width: of the inner bins.
        is_cumulative: whether theta is a running sum over the bins.
    """

    low: float
    width: float
    is_cumulative: bool


class Traits(NamedTuple):
    """What a run must provide for a coupling, and what its draws are.

    Attributes:
        num_chains: the number of chains; None takes any.
        num_fresh: further energies per chain in every iteration, each on a batch of its own.
        noise: whether the covariance of the energies' noise is read in every iteration, and not measured where it is known.
        follows_distribution: whether draws follow exp(-U / T), rather than a descent.
        weight_edges: of the energy bins in which log weights are linear; None for other weights.
    """

    num_chains: int | None = None
    num_fresh: int = 0
    noise: bool = False
    follows_distribution: bool = True
    weight_edges: WeightEdges | None = None


class Observed(NamedTuple):
    """What is recorded with a draw, of the state under which the chains moved to where they are.

    Attributes:
        values: small arrays by name, such as the rung of every chain.
        recorded: numbers of the chains to record, shape (Q,); None records every chain. They must not be chosen by the energies of
            this iteration.
    """

    values: dict[str, Array]
    recorded: Array | None = None


def measured_variance(measure: Callable[[int], CouplingInputs], number: int) -> tuple[Array, Array]:
    """Whether the variance of each chain's energy at one position is known from `number` measurements, and the variance or 0.

    A control variate has no energies before its first refresh.
    """
    variance = jnp.var(measure(number).energies, axis=0, ddof=1)
    is_known = jnp.isfinite(variance)
    return is_known, jnp.where(is_known, variance, 0.0)


class Coupling(Part):
    """Base of all couplings; its defaults are those of one that neither weighs, nor swaps, nor measures.

    Attributes:
        log_weights: maps the state that `update` has just returned to the log weights of the P positions that it saw. None where
            draws are not weighted.
    """

    log_weights: Any = None

    @property
    def traits(self) -> Traits:
        """What it needs of a run."""
        return Traits()

    def check(self, potential: Potential) -> None:
        """Refuse, before any work, a potential that this coupling cannot use."""

    def init(self, num_chains: int) -> Any:
        """The state that a run starts with."""
        return ()

    def draw(self, key: Array, iterations: Array, num_chains: int) -> Any:
        """Random numbers for many iterations at once, with a leading axis of iterations."""
        return ()

    def update(self, state: Any, draws: Any, inputs: CouplingInputs) -> tuple[Any, Move]:
        """The next state, and the next move of every chain (fields of shape (P,))."""
        raise TypeError(f"{type(self).__name__} must define `update`.")

    def periodic(self, is_exact: bool) -> tuple[Periodic, ...]:
        """Work at multiples of the iteration. `apply` is given (state, measure), and gives the state.

        `measure(number)` evaluates every chain on `number` further batches, common to chains that share batches, and gives
        `CouplingInputs` of shape (number, P). `is_exact` says that all of them would be the same.
        """
        return ()

    def observe(self, state: Any) -> Observed:
        """What to record with the draws of an iteration, from the state before its `update`."""
        return Observed({})

    def statistics(self, state: Any) -> dict[str, Any]:
        """What a run reports about its coupling at the end."""
        return {}

    def diagnose(self, run: RunView) -> list[Check]:
        """What is wrong with a run of this coupling. Make findings with `Check`."""
        return []


@dataclasses.dataclass(frozen=True, eq=False)
class Independent(Coupling):
    """Chains that know nothing of one another."""

    def update(self, state: Any, draws: Any, inputs: CouplingInputs) -> tuple[Any, Move]:
        everyone = jnp.ones_like(inputs.energies)
        return state, Move(inputs.step_size * everyone, inputs.temperature * everyone, everyone, everyone)
