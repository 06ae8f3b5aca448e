"""Work at fixed multiples of the iteration: measurements of the coupling, then refreshes of the estimator.

A coupling measures against the old state of the estimator, so measurements come first.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.engine.chain_mode import over_chains
from isotherm.engine.iteration import Parts, State, further_energies
from isotherm.engine.random_inputs import Keys, Stream, batches_of, potential_noises
from isotherm.estimators.estimator import Refreshed
from isotherm.foundation.periodic import Periodic
from isotherm.potentials.sums import compensated

_NEVER = jnp.iinfo(jnp.int32).max


def inside(parts: Parts) -> tuple[list[Periodic], list[Periodic]]:
    """Periodic work of the coupling and of the estimator in the compiled loop."""
    return _works(parts, on_host=False)


def outside(parts: Parts) -> tuple[list[Periodic], list[Periodic]]:
    """Periodic work that the host starts, because it needs streamed data."""
    return _works(parts, on_host=True)


def _works(parts: Parts, on_host: bool) -> tuple[list[Periodic], list[Periodic]]:
    potential, of_estimator = parts.potential, parts.estimator.periodic()
    # Before its first refresh a control variate has no energies to measure, even exact ones.
    of_coupling = parts.coupling.periodic(potential.is_exact and not of_estimator)
    if parts.coupling.traits.noise and potential.has_residuals:
        of_coupling = ()
    coupling, estimator = (
        [work for work in works if (potential.is_streamed and work.needs_data) == on_host]
        for works in (of_coupling, of_estimator)
    )
    return coupling, estimator


def work_inside(parts: Parts, keys: Keys, state: State, iteration: Array) -> State:
    """The state of a run after the work due before an iteration."""
    of_coupling, of_estimator = inside(parts)
    for work in of_coupling:
        state = _if_due(work, state, iteration, "coupling", functools.partial(couple, parts, work, keys))
    for work in of_estimator:
        state = _if_due(work, state, iteration, "estimator", lambda state, _, work=work: refresh(parts, work, state))
    return state


def _if_due(work: Periodic, state: State, iteration: Array, part: str, apply: Callable[[State, Array], Any]) -> State:
    """The state with one part replaced by `apply(state, iteration)` if the work is due.

    A loop of at most one turn copies nothing. Its counter is the iteration, and a barrier ties its inputs to it: otherwise XLA
    hoists what is constant in the loop, such as the batches of a measurement, and computes it in every iteration.
    """

    def once(iteration, own):
        held, iteration = lax.optimization_barrier((state, iteration))
        return apply(held._replace(**{part: own}), iteration)

    is_due = (iteration % work.period(iteration) == 0).astype(jnp.int32)
    return state._replace(**{part: lax.fori_loop(iteration, iteration + is_due, once, getattr(state, part))})


def next_inside(parts: Parts, iteration: Array) -> Any:
    """The first iteration after `iteration` with work inside the loop."""
    periods = [work.period(iteration) for works in inside(parts) for work in works]
    upcoming = [(iteration // every + 1) * every for every in periods]
    return jnp.min(jnp.stack([jnp.asarray(_NEVER, jnp.int32), *upcoming]))


def couple(parts: Parts, work: Periodic, keys: Keys, state: State, iteration: Array, stream: Any = None) -> Any:
    """The coupling's state after its work."""

    def measure(number: int):
        one = jax.tree.map(lambda leaf: leaf[0], state.position)
        shared, own = keys.measured_shared, keys.measured
        noises = potential_noises(parts.potential, shared, own, iteration[None], one, number)
        noises = jax.tree.map(lambda leaf: leaf[0], noises)
        keys_batch = keys.measured_batch_shared if parts.potential.is_batch_shared else keys.measured_batch
        batches = batches_of(parts.potential, keys_batch, place_of_batch(work, iteration), stream, number)
        return further_energies(parts, state, batches, noises, iteration)

    return work.apply(state.coupling, measure)


def place_of_batch(work: Periodic, iteration: Any) -> Any:
    """The place in an epoch of a measurement's batches: its own number, so that short last batches take part."""
    return iteration // work.every


def refresh(parts: Parts, work: Periodic, state: State, stream: Any = None, energies: Array | None = None) -> Any:
    """The estimators' states after their work. `energies` are those of all data, without the prior; None computes them."""

    def batch_of(number: Array) -> Any:
        """Batches that do not depend on chain or iteration."""
        key = jnp.zeros(2, jnp.uint32)
        if not isinstance(stream, Stream):
            return parts.potential.batch(key, number)
        return parts.potential.augmented(key, number, stream.batch(number))

    def of_chain(estimator, position, model_state, energy):
        if energy is None:
            full_energy = parts.potential.full_energy(position, model_state)
        else:
            full_energy = parts.potential.prior_energy(position).astype(energy.dtype) + energy
        return work.apply(parts.potential, estimator, Refreshed(position, model_state, full_energy, batch_of))

    return over_chains(parts.chain_mode, of_chain, state.estimator, state.position, state.model_state, energies)


def add_pieces(parts: Parts, pieces: Stream, count: Array, state: State, sums: tuple[Array, Array]) -> tuple[Any, ...]:
    """Sums of energies over pieces of the data, each of shape (P,), after the first `count` pieces of a stream."""

    def add(number, sums):
        batch = pieces.batch(number)

        def of_chain(position, model_state):
            return parts.potential.piece_energy(position, model_state, batch, pieces.first + number)

        energies = over_chains(parts.chain_mode, of_chain, state.position, state.model_state)
        return compensated(sums[0], sums[1], energies.astype(sums[0].dtype))

    return lax.fori_loop(0, count, add, sums)
