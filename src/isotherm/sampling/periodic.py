"""Work that is done at fixed multiples of the iteration, between blocks: measurements first, then refreshes.

What a coupling measures is measured against the old state of the estimator, before it is refreshed.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.randomness import Purpose, chain_keys, fold, run_keys
from isotherm.sampling.iteration import Parts, State, over_chains, read
from isotherm.sampling.streams import draw_potential_noises


def measure(parts: Parts, seed_key: Array, feed: Any, state: State, iteration: Array) -> State:
    """The runs after the coupling has been given `num_measured` energies of every chain, on batches common to the chains."""
    num_runs, num_chains = jax.tree.leaves(state.position)[0].shape[:2]
    number = parts.coupling.num_measured
    keys_batch = run_keys(seed_key, Purpose.MEASURE_BATCH, num_runs)
    keys_noise = run_keys(seed_key, Purpose.MEASURE_POTENTIAL, num_runs)
    one = jax.tree.map(lambda leaf: leaf[0, 0], state.position)
    own = chain_keys(keys_noise, num_chains)
    noises = draw_potential_noises(parts.potential, keys_noise, own, iteration[None], one, number)

    def of_run(state, key, noises):
        def of_batch(number):
            batch = parts.potential.batch(fold(key, number), iteration, feed)

            def of_chain(estimator, position, model_state, noise):
                return parts.estimator.measure(parts.potential, estimator, position, model_state, batch, noise)

            chains = (state.estimator, state.position, state.model_state, noises[number])
            return over_chains(parts.chain_mode, of_chain, *chains)

        energies, priors = zip(*map(of_batch, range(number)), strict=True)
        readings = read(parts, jnp.stack(energies), jnp.stack(priors), iteration)
        return parts.coupling.calibrate(state.coupling, readings)

    this_iteration = jax.tree.map(lambda leaf: leaf[0], noises)
    return state._replace(coupling=jax.vmap(of_run)(state, keys_batch, this_iteration))


def refresh(parts: Parts, feed: Any, state: State) -> State:
    """The runs after the periodic work of the estimator."""

    def of_chain(estimator, position, model_state):
        return parts.estimator.refresh(parts.potential, estimator, position, model_state, feed)

    def of_run(*chains):
        return over_chains(parts.chain_mode, of_chain, *chains)

    chains = (state.estimator, state.position, state.model_state)
    return state._replace(estimator=over_chains(parts.chain_mode, of_run, *chains))
