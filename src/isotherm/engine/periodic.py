"""Work that is done at fixed multiples of the iteration, between blocks: measurements first, then refreshes.

What a coupling measures is measured against the old state of the estimator, before it is refreshed.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.engine.iteration import Parts, State, over_chains, read
from isotherm.engine.random_inputs import batches_of, draw_potential_noises
from isotherm.engine.stream import Stream
from isotherm.foundation.randomness import Purpose, chain_keys, run_keys
from isotherm.potentials.batches import Batch
from isotherm.potentials.sums import compensated


def measure(parts: Parts, seed_key: Array, feed: Any, state: State, iteration: Array) -> State:
    """The runs after the coupling has been given `num_measured` energies of every chain.

    Chains that share their batches are measured on common ones, and chains with batches of their own on batches of their own:
    the noise of a difference is that which the coupling will meet.
    """
    num_runs, num_chains = jax.tree.leaves(state.position)[0].shape[:2]
    number = parts.coupling.num_measured
    keys_batch = run_keys(seed_key, Purpose.MEASURE_BATCH, num_runs)
    keys_noise = run_keys(seed_key, Purpose.MEASURE_POTENTIAL, num_runs)
    one = jax.tree.map(lambda leaf: leaf[0, 0], state.position)
    own = chain_keys(keys_noise, num_chains)
    noises = draw_potential_noises(parts.potential, keys_noise, own, iteration[None], one, number)
    is_shared = parts.potential.is_batch_shared
    keys = keys_batch if is_shared else chain_keys(keys_batch, num_chains)
    batches = batches_of(parts.potential, keys, iteration, feed, number)

    def of_run(state, batches, noises):
        def of_batch(inputs):
            _, (batch, noise_of_batch) = inputs

            def of_chain(estimator, position, model_state, noise, own):
                seen = batch if is_shared else own
                return parts.estimator.measure(parts.potential, estimator, position, model_state, seen, noise)

            own = None if is_shared else batch
            chains = (state.estimator, state.position, state.model_state, noise_of_batch, own)
            return over_chains(parts.chain_mode, of_chain, *chains)

        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *zip(batches, noises, strict=True))
        energies, priors = lax.map(of_batch, (jnp.arange(number), stacked))
        return parts.coupling.calibrate(state.coupling, read(parts, energies, priors, iteration))

    this_iteration = jax.tree.map(lambda leaf: leaf[0], noises)
    return state._replace(coupling=jax.vmap(of_run)(state, batches, this_iteration))


def refresh(parts: Parts, feed: Any, state: State, energies: Array | None = None) -> State:
    """The runs after the periodic work of the estimator; energies of all data, without the prior's, are given or found."""
    batch_of = functools.partial(numbered_batch, parts, feed)

    def of_chain(estimator, position, model_state, energy):
        if energy is None:
            full_energy = parts.potential.full_energy(position, model_state, feed)
        else:
            full_energy = parts.potential.prior_energy(position).astype(energy.dtype) + energy
        return parts.estimator.refresh(parts.potential, estimator, position, model_state, full_energy, batch_of)

    def of_run(*chains):
        return over_chains(parts.chain_mode, of_chain, *chains)

    chains = (state.estimator, state.position, state.model_state, energies)
    return state._replace(estimator=over_chains(parts.chain_mode, of_run, *chains))


def add_pieces(parts: Parts, pieces: Stream, count: Array, state: State, sums: tuple[Array, Array]) -> tuple[Any, ...]:
    """Sums of energies over pieces of the data, each of shape (R, P), after the first `count` pieces of a stream were added."""

    def add(number, sums):
        examples, weights = jax.tree.map(lambda leaf: leaf[number], (pieces.examples, pieces.weights))
        batch = Batch(examples, weights, pieces.num_data)

        def of_chain(position, model_state):
            return parts.potential.piece_energy(position, model_state, batch, pieces.first + number)

        of_run = lambda *chains: over_chains(parts.chain_mode, of_chain, *chains)  # noqa: E731
        energies = over_chains(parts.chain_mode, of_run, state.position, state.model_state)
        return compensated(sums[0], sums[1], energies.astype(sums[0].dtype))

    return lax.fori_loop(0, count, add, sums)


def numbered_batch(parts: Parts, feed: Any, number: Array) -> Any:
    """One of the batches that are the same for all chains and times."""
    key = jnp.zeros(2, jnp.uint32)
    if not isinstance(feed, Stream):
        return parts.potential.batch(key, number, feed)
    examples, weights = jax.tree.map(lambda leaf: leaf[number], (feed.examples, feed.weights))
    return parts.potential.augmented(key, number, Batch(examples, weights, feed.num_data))
