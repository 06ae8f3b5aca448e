"""The random inputs of the iterations: keys of every stream, noise for many iterations at once, and batches."""

import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.engine.iteration import Parts
from isotherm.engine.stream import Stream
from isotherm.foundation.randomness import Purpose, chain_keys, fold, normals_like, run_keys
from isotherm.potentials.batches import Batch
from isotherm.potentials.potential import Potential


class Keys(NamedTuple):
    """Keys of all streams of an iteration: of shape (R, P, 2), or (R, 2) for what the chains of a run share."""

    kernel: Array
    probe: Array
    potential: Array
    potential_shared: Array
    batch: Array
    batch_shared: Array
    coupling: Array


def open_streams(seed_key: Array, num_runs: int, num_chains: int) -> Keys:
    """The keys of R runs of P chains."""
    of_run = jax.vmap(lambda purpose: run_keys(seed_key, purpose, num_runs))(jnp.arange(len(Purpose)))
    of_chain = jax.vmap(lambda keys: chain_keys(keys, num_chains))(of_run)
    return Keys(
        of_chain[Purpose.KERNEL],
        of_chain[Purpose.PROBE],
        of_chain[Purpose.POTENTIAL],
        of_run[Purpose.POTENTIAL],
        of_chain[Purpose.BATCH],
        of_run[Purpose.BATCH],
        of_run[Purpose.COUPLING],
    )


def draw_noise(parts: Parts, keys: Keys, iterations: Array, position: Any) -> tuple[Any, Any, tuple[Any, ...], Any]:
    """Kernel noise, probes, potential noises and coupling numbers of L iterations: leaves (L, R, P, ...) or (L, R, ...)."""
    one = jax.tree.map(lambda leaf: leaf[0, 0], position)
    num_chains = keys.kernel.shape[1]

    def per_chain(function, keys_of):
        return jax.vmap(jax.vmap(function, out_axes=1), out_axes=1)(keys_of)

    noise = probe = None
    if parts.kernel.needs_noise:
        noise = per_chain(lambda key: normals_like(key, iterations, one), keys.kernel)
    if parts.kernel.needs_curvature:
        probe = per_chain(lambda key: jax.tree.map(jnp.sign, normals_like(key, iterations, one)), keys.probe)
    number = parts.num_batches
    noises = draw_potential_noises(parts.potential, keys.potential_shared, keys.potential, iterations, one, number)
    coupling = jax.vmap(lambda key: parts.coupling.draw(key, iterations, num_chains), out_axes=1)(keys.coupling)
    return noise, probe, noises, coupling


def draw_potential_noises(
    potential: Potential, keys_shared: Array, keys_own: Array, iterations: Array, one: Any, number: int
) -> tuple[Any, ...]:
    """Synthetic noise for `number` evaluations of every iteration: a tuple of pytrees with leaves (L, R, P, ...)."""

    def of_evaluation(evaluation):
        def of_run(shared, own):
            def of_chain(key):
                return potential.draw(fold(shared, evaluation), fold(key, evaluation), iterations, one)

            return jax.vmap(of_chain, out_axes=1)(own)

        return jax.vmap(of_run, out_axes=1)(keys_shared, keys_own)

    if number == 1:
        return (of_evaluation(0),)
    drawn = jax.vmap(of_evaluation)(jnp.arange(number))
    return tuple(jax.tree.map(operator.itemgetter(evaluation), drawn) for evaluation in range(number))


def draw_batches(parts: Parts, keys: Keys, iteration: Array, feed: Any) -> tuple[Any, ...]:
    """The batches of an iteration, one for each that the estimator needs: leaves (R, ...), or (R, P, ...) where not shared."""
    keys_of = keys.batch_shared if parts.potential.is_batch_shared else keys.batch
    return batches_of(parts.potential, keys_of, iteration, feed, parts.num_batches)


def batches_of(potential: Potential, keys: Array, iteration: Array, feed: Any, number: int) -> tuple[Any, ...]:
    """`number` batches of an iteration for each of the keys of shape (R, 2) or (R, P, 2), from data or from a stream."""
    is_stream = isinstance(feed, Stream)
    stored = None
    if is_stream:
        here = jax.tree.map(lambda leaf: leaf[iteration - feed.first], (feed.examples, feed.weights))
        num_data = jnp.broadcast_to(feed.num_data, here[1].shape[:-1])
        stored = Batch(here[0], here[1], num_data)

    def of_key(key, stored):
        return potential.augmented(key, iteration, stored) if is_stream else potential.batch(key, iteration, feed)

    def of_number(evaluation, stored):
        mapped = lambda key, stored: of_key(fold(key, evaluation), stored)  # noqa: E731
        for _ in keys.shape[:-1]:
            mapped = jax.vmap(mapped)
        return mapped(keys, stored)

    if number <= 2:
        each = operator.itemgetter
        return tuple(of_number(b, jax.tree.map(each(b), stored)) for b in range(number))
    found = jax.vmap(of_number)(jnp.arange(number), stored)
    return tuple(jax.tree.map(operator.itemgetter(b), found) for b in range(number))
