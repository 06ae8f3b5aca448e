"""How chains of a run act on one another: the protocol of a coupling, and the one that does nothing.

A coupling reads energies, never parameters, so it costs the same for 2 weights or 2 billion.
"""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from isotherm.kernels.kernel import Move
from isotherm.potentials.potential import Potential


class Readings(NamedTuple):
    """What a coupling sees of the P chains of its run at one iteration.

    Attributes:
        energies: shape (P,); without the prior where the potential says so (`Potential.is_prior_read`).
        prior_energies: the prior's energies, shape (P,).
        is_alive: whether each energy is finite, shape (P,). A chain that is not must leave no trace in what others share.
        step_size: the scheduled step size of this iteration, a scalar.
        temperature: the scheduled temperature of this iteration, a scalar.
        iteration: k.
        fresh_energies: further energies of every chain on batches of their own, shape (num_fresh, P), for couplings that ask.
    """

    energies: Array
    prior_energies: Array
    is_alive: Array
    step_size: Array
    temperature: Array
    iteration: Array
    fresh_energies: Array | None = None


class Coupling:
    """Base of all couplings; its defaults are those of one that neither weighs, nor swaps, nor measures.

    Attributes:
        num_chains: the number of chains that it needs; None takes any.
        is_weighted: whether draws carry log weights other than zero.
        measure_every: iterations between two calls of `calibrate`; None never. Iteration 0 is one of the multiples.
        num_measured: energies per chain that `calibrate` is given, each on a further batch, common to chains that share batches.
        upkeep_every: iterations between two calls of `upkeep`; None never. Iteration 0 is one of the multiples.
        num_fresh: further energies per chain that `update` needs in every iteration, each on a batch of its own.
        pilot_steps: iterations of the plain sampler that `settle` wants to see first; None for no pilot.
    """

    num_chains: int | None = None
    is_weighted: bool = False
    measure_every: int | None = None
    num_measured: int = 0
    upkeep_every: int | None = None
    num_fresh: int = 0
    pilot_steps: int | None = None

    def settle(self, cold: Any, hot: Any, noise: float) -> "Coupling":
        """The coupling for the run itself, from energies of a pilot at the sampler's temperature and at a higher one.

        `noise` is the standard deviation of energies at one position.
        """
        return self

    def check(self, potential: Potential) -> None:
        """Refuse, before any work, a potential that this coupling cannot use."""

    def init(self, num_chains: int) -> Any:
        """The state that a run starts with."""
        return ()

    def draw(self, key: Array, iterations: Array, num_chains: int) -> Any:
        """Random numbers for many iterations at once, with a leading axis of iterations."""
        return ()

    def update(self, state: Any, draws: Any, readings: Readings) -> tuple[Any, Move]:
        """The next state, and the next move of every chain (fields of shape (P,))."""
        raise TypeError(f"{type(self).__name__} must define `update`.")

    def upkeep(self, state: Any) -> Any:
        """The state after work that is too much for every iteration, and needs neither energies nor random numbers."""
        return state

    def log_weights(self, state: Any) -> Array:
        """Log weights of the P positions that `update` has just seen, from the state that it returned. For draws that are kept."""
        raise TypeError(f"{type(self).__name__} must define `log_weights`, or have `is_weighted` false.")

    def observe(self, state: Any) -> dict[str, Array]:
        """Small arrays to record with every draw, from the state before `update`, such as the rung of every chain.

        That is the state under which the chains moved to where they are.
        """
        return {}

    def recorded(self, observed: dict[str, Array]) -> Array | None:
        """Numbers of the chains to record, shape (..., Q), from observations with leading axes; None records every chain.

        The energies of the iteration have not yet been used to choose among the chains.
        """
        return None

    def calibrate(self, state: Any, measured: Readings) -> Any:
        """The state after periodic measurements; the energies there have shape (num_measured, P)."""
        return state

    def statistics(self, state: Any) -> dict[str, Any]:
        """What a run reports about its coupling at the end."""
        return {}


@dataclasses.dataclass(frozen=True, eq=False)
class Independent(Coupling):
    """Chains that know nothing of one another.

    Differs from the thesis: Nothing.
    """

    def update(self, state: Any, draws: Any, readings: Readings) -> tuple[Any, Move]:
        everyone = jnp.ones_like(readings.energies)
        step_size = readings.step_size.astype(everyone.dtype) * everyone
        temperature = readings.temperature.astype(everyone.dtype) * everyone
        return state, Move(step_size, temperature, everyone, everyone)
