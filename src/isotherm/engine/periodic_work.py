"""Work at fixed multiples of the iteration, inside the compiled loop: of the coupling first, then of the estimator.

What a coupling measures is measured against the old state of the estimator, before it is refreshed.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.engine.chain_mode import over_chains
from isotherm.engine.iteration import Parts, State, further_energies
from isotherm.engine.random_inputs import Keys, batches_of, potential_noises
from isotherm.engine.stream import Stream
from isotherm.estimators.estimator import Refreshed
from isotherm.foundation.periodic import Periodic
from isotherm.potentials.batches import Batch
from isotherm.potentials.sums import compensated

_NEVER = jnp.iinfo(jnp.int32).max


def works_of(parts: Parts) -> tuple[tuple[Periodic, ...], tuple[Periodic, ...]]:
    """The periodic work of the coupling and of the estimator."""
    of_estimator = parts.estimator.periodic()
    if parts.coupling.traits.noise and parts.potential.has_residuals:
        return (), of_estimator
    # Before its first refresh a control variate has no energies to measure, even exact ones.
    return parts.coupling.periodic(parts.potential.is_exact and not of_estimator), of_estimator


def inside(parts: Parts) -> tuple[list[Periodic], list[Periodic]]:
    """What of it is done inside the compiled loop: all but what needs data that stream."""
    return _by_place(parts, is_inside=True)


def outside(parts: Parts) -> tuple[list[Periodic], list[Periodic]]:
    """What is left for the host."""
    return _by_place(parts, is_inside=False)


def _by_place(parts: Parts, is_inside: bool) -> tuple[list[Periodic], list[Periodic]]:
    streams = parts.potential.is_streamed
    coupling, estimator = (
        [work for work in works if (streams and work.needs_data) != is_inside] for works in works_of(parts)
    )
    return coupling, estimator


def work_inside(parts: Parts, keys: Keys, state: State, iteration: Array) -> State:
    """The state of a run after what is due before an iteration. Loops of no or one turn, which copy nothing.

    Their counter is the iteration, and what they read is held back by it: the compiler would move what does not change inside of
    a loop, such as the batches of a measurement, out of it, and do that work in every iteration.
    """
    of_coupling, of_estimator = inside(parts)
    for work in of_coupling:
        once = functools.partial(_couple_once, parts, work, keys, state)
        after = lax.fori_loop(iteration, iteration + _is_due(work, iteration), once, state.coupling)
        state = state._replace(coupling=after)
    for work in of_estimator:
        once = functools.partial(_refresh_once, parts, work, state)
        after = lax.fori_loop(iteration, iteration + _is_due(work, iteration), once, state.estimator)
        state = state._replace(estimator=after)
    return state


def _is_due(work: Periodic, iteration: Array) -> Array:
    return (iteration % work.period(iteration) == 0).astype(jnp.int32)


def _couple_once(parts: Parts, work: Periodic, keys: Keys, state: State, iteration: Array, own: Any) -> Any:
    state, iteration = lax.optimization_barrier((state, iteration))
    return couple(parts, work, keys, state._replace(coupling=own), iteration)


def _refresh_once(parts: Parts, work: Periodic, state: State, iteration: Array, own: Any) -> Any:
    state, _ = lax.optimization_barrier((state, iteration))
    return refresh(parts, work, state._replace(estimator=own))


def next_inside(parts: Parts, iteration: Array) -> Any:
    """The first iteration after `iteration` at which work inside the loop is due."""
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
    """Whose place in an epoch a measurement takes its batches from: its own number, so that short last batches have their turn."""
    return iteration // work.every


def refresh(parts: Parts, work: Periodic, state: State, stream: Any = None, energies: Array | None = None) -> Any:
    """The estimators' states after their work; energies of all data, without the prior's, are given or found."""
    batch_of = _numbered_batches(parts, stream)

    def of_chain(estimator, position, model_state, energy):
        if energy is None:
            full_energy = parts.potential.full_energy(position, model_state)
        else:
            full_energy = parts.potential.prior_energy(position).astype(energy.dtype) + energy
        return work.apply(parts.potential, estimator, Refreshed(position, model_state, full_energy, batch_of))

    return over_chains(parts.chain_mode, of_chain, state.estimator, state.position, state.model_state, energies)


def add_pieces(parts: Parts, pieces: Stream, count: Array, state: State, sums: tuple[Array, Array]) -> tuple[Any, ...]:
    """Sums of energies over pieces of the data, each of shape (P,), after the first `count` pieces of a stream were added."""

    def add(number, sums):
        examples, weights = jax.tree.map(lambda leaf: leaf[number], (pieces.examples, pieces.weights))
        batch = Batch(examples, weights, pieces.num_data)

        def of_chain(position, model_state):
            return parts.potential.piece_energy(position, model_state, batch, pieces.first + number)

        energies = over_chains(parts.chain_mode, of_chain, state.position, state.model_state)
        return compensated(sums[0], sums[1], energies.astype(sums[0].dtype))

    return lax.fori_loop(0, count, add, sums)


def _numbered_batches(parts: Parts, stream: Any) -> Callable[[Array], Any]:
    """Batches that are the same for all chains and times."""
    key = jnp.zeros(2, jnp.uint32)

    def batch(number):
        if not isinstance(stream, Stream):
            return parts.potential.batch(key, number)
        examples, weights = jax.tree.map(lambda leaf: leaf[number], (stream.examples, stream.weights))
        return parts.potential.augmented(key, number, Batch(examples, weights, stream.num_data))

    return batch
