"""The protocol of a coupling, and the coupling that leaves chains independent.

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
    """The P chains of a run at one iteration.

    Attributes:
        energies: shape (P,), without the prior if `Potential.coupling_includes_prior` is False; (number, P) in periodic work.
        prior_energies: energies of the prior, same shape.
        is_alive: whether each energy is finite, same shape. Other chains must leave no trace in what chains share.
        step_size: scheduled step size of this iteration, a scalar.
        temperature: scheduled temperature of this iteration, a scalar.
        iteration: k.
        fresh_energies: energies of every chain on `Traits.num_fresh` further batches, shape (num_fresh, P).
        noise_covariance: of the noise of `energies`, from the examples of their batch, shape (P, P); of `fresh_energies`, shape
            (num_fresh, P, P). None without `Traits.noise`, or for a potential without values per example.
        num_examples: number of examples that it is estimated from.
        accepted: whether each chain's last proposal was accepted, shape (P,); None for kernels that reject nothing.
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
    accepted: Array | None = None


class WeightEdges(NamedTuple):
    """Energy bins: the first edge, the width of the inner bins, and whether theta is a running sum over the bins."""

    low: float
    width: float
    is_cumulative: bool


class Traits(NamedTuple):
    """What a coupling needs from a run, and what its draws follow.

    Attributes:
        num_chains: the number of chains; None accepts any.
        num_fresh: further energies per chain in every iteration, each on a batch of its own.
        noise: whether the covariance of the energy noise is an input in every iteration; where it is, `periodic` is not used.
        follows_distribution: whether draws follow exp(-U / T); False for a descent.
        weight_edges: energy bins in which log weights are linear; None for other weights.
        is_path: whether rungs temper the energy without the prior, by multipliers; a multiplier of 0 is the prior alone.
        reads_others: whether the move of a chain depends on other chains. If not, the state has leading axes of chains, which may
            be on several devices.
    """

    num_chains: int | None = None
    num_fresh: int = 0
    noise: bool = False
    follows_distribution: bool = True
    weight_edges: WeightEdges | None = None
    is_path: bool = False
    reads_others: bool = True


class Observed(NamedTuple):
    """Recorded with the draws of an iteration, from the coupling's state before `update`.

    Attributes:
        values: small arrays by name, such as the rung of every chain.
        recorded: indices of the chains to record, shape (Q,); None records every chain. They must not depend on the energies of
            this iteration.
    """

    values: dict[str, Array]
    recorded: Array | None = None


def measured_variance(measure: Callable[[int], CouplingInputs], number: int) -> tuple[Array, Array]:
    """The variance of each chain's energy over `number` batches: whether it is finite, and its value or 0.

    It is not finite for a control variate before its first refresh.
    """
    variance = jnp.var(measure(number).energies, axis=0, ddof=1)
    is_known = jnp.isfinite(variance)
    return is_known, jnp.where(is_known, variance, 0.0)


class Coupling(Part):
    """Base of all couplings. The defaults neither weigh draws, nor swap, nor measure; a subclass defines `update`.

    Example:
        >>> class Hot(Coupling):
        ...     def update(self, state, random_numbers, inputs):
        ...         ones = jnp.ones_like(inputs.energies)
        ...         return state, Move(inputs.step_size * ones, 2 * inputs.temperature * ones, ones, ones)
        ...     def diagnose(self, run):
        ...         return [Check("hot", "temperature", Severity.FAULT, "Draws are at twice the temperature.")]
        >>> import isotherm as iso
        >>> from isotherm.foundation.checks import Severity
        >>> sampler = iso.Sampler(iso.kernels.SGLD(), step_size=0.1, coupling=Hot())
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=100, init=jnp.zeros(2), progress=False)
        >>> "Draws are at twice the temperature." in str(run.summary())
        True

    Attributes:
        log_weights: maps the state that `update` returned to the log weights of the P positions of its inputs. None for draws
            without weights.
    """

    log_weights: Any = None

    @property
    def traits(self) -> Traits:
        """What it needs from a run."""
        return Traits()

    def check(self, potential: Potential) -> None:
        """Refuse, before any work, a potential that this coupling cannot use."""

    def init(self, num_chains: int) -> Any:
        """The state at the start of a run."""
        return ()

    def draw(self, key: Array, iterations: Array, num_chains: int) -> Any:
        """Random numbers for many iterations at once, with a leading axis of iterations."""
        return ()

    def update(self, state: Any, random_numbers: Any, inputs: CouplingInputs) -> tuple[Any, Move]:
        """The next state, and the next move of every chain (fields of shape (P,))."""
        raise TypeError(f"{type(self).__name__} must define `update`.")

    def periodic(self, is_exact: bool) -> tuple[Periodic, ...]:
        """Work at multiples of the iteration; `apply(state, measure)` returns the state.

        `measure(number)` evaluates every chain on `number` further batches, shared by chains that share batches, and returns
        `CouplingInputs` of shape (number, P). With `is_exact` all of them would be equal.
        """
        return ()

    def observe(self, state: Any) -> Observed:
        """What to record with the draws of an iteration, from the coupling's state before `update`."""
        return Observed({})

    def statistics(self, state: Any) -> dict[str, Any]:
        """Entries of `Run.stats`, from the last state."""
        return {}

    def diagnose(self, run: RunView) -> list[Check]:
        """Checks that fired for a run of this coupling; they are printed by `Run.summary` and kept in `Run.checks`."""
        return []


@dataclasses.dataclass(frozen=True, eq=False)
class Independent(Coupling):
    """Chains without interaction."""

    @property
    def traits(self) -> Traits:
        return Traits(reads_others=False)

    def update(self, state: Any, random_numbers: Any, inputs: CouplingInputs) -> tuple[Any, Move]:
        ones = jnp.ones_like(inputs.energies)
        return state, Move(inputs.step_size * ones, inputs.temperature * ones, ones, ones)
