"""The inputs of the iterations: random keys, noise for many iterations at once, and batches."""

import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.engine.iteration import Inputs, Parts
from isotherm.foundation.randomness import Purpose, chain_keys, fold, normals_like, run_keys, words
from isotherm.potentials.batches import Batch
from isotherm.potentials.potential import Potential


class Stream(NamedTuple):
    """Batches of L iterations that the host gathered; for one run without the axis R."""

    first: Array  # The first iteration.
    examples: Any  # Leaves (R, L, B, n, ...), or (R, L, B, P, n, ...) if chains have batches of their own.
    weights: Array  # Of the examples, likewise.
    num_data: Array  # N.

    def batch(self, number: Any) -> Batch:
        """The batch of one number, of a stream without the axes R and B."""
        examples, weights = jax.tree.map(lambda leaf: leaf[number], (self.examples, self.weights))
        return Batch(examples, weights, self.num_data)


class Keys(NamedTuple):
    """Keys of a run by purpose: of shape (P, 2), or (2,) if chains share them. Several runs add a leading axis."""

    kernel: Array
    probe: Array
    potential: Array
    potential_shared: Array
    batch: Array
    batch_shared: Array
    coupling: Array
    measured: Array
    measured_shared: Array
    measured_batch: Array
    measured_batch_shared: Array
    words: Array


def open_streams(words: Any, runs: np.ndarray, num_chains: int) -> Keys:
    """Keys of runs of P chains, with the leading axes of `runs`, from the words of the seed. Equal run numbers give equal keys."""
    of_run = run_keys(words, np.arange(len(Purpose)).reshape(-1, *(1,) * runs.ndim), runs)
    of_chain = chain_keys(of_run, num_chains)
    noise, batch, measured_noise, measured_batch = (
        (of_chain[purpose], of_run[purpose])
        for purpose in (Purpose.POTENTIAL, Purpose.BATCH, Purpose.MEASURE_POTENTIAL, Purpose.MEASURE_BATCH)
    )
    kernel, probe, coupling = of_chain[Purpose.KERNEL], of_chain[Purpose.PROBE], of_run[Purpose.COUPLING]
    of_words = of_chain[Purpose.WORDS]
    return Keys(kernel, probe, *noise, *batch, coupling, *measured_noise, *measured_batch, of_words)


def draw_noise(parts: Parts, keys: Keys, iterations: Array, position: Any) -> Inputs:
    """Inputs of L iterations of one run, except batches: leaves (L, P, ...) or (L, ...)."""
    one = jax.tree.map(lambda leaf: leaf[0], position)
    noise = probe = None
    if parts.kernel.needs_noise:
        noise = jax.vmap(lambda key: normals_like(key, iterations, one), out_axes=1)(keys.kernel)
    if parts.kernel.needs_curvature:
        signs = lambda key: jax.tree.map(jnp.sign, normals_like(key, iterations, one))  # noqa: E731
        probe = jax.vmap(signs, out_axes=1)(keys.probe)
    own, shared = keys.potential, keys.potential_shared
    noises = potential_noises(parts.potential, shared, own, iterations, one, parts.num_batches)
    coupling = parts.coupling.draw(keys.coupling, iterations, parts.num_coupled(len(keys.kernel)))
    own_words = None
    if parts.needs_words:
        own_words = jax.vmap(lambda key: words(key, iterations, 2), out_axes=1)(keys.words)
    return Inputs(noise, probe, noises, (), coupling, own_words)


def potential_noises(
    potential: Potential, key_shared: Array, keys_own: Array, iterations: Array, one: Any, number: int
) -> tuple[Any, ...]:
    """Synthetic noise of `number` evaluations per iteration: a tuple of pytrees with leaves (L, P, ...)."""

    def of_evaluation(evaluation):
        def of_chain(key):
            return potential.draw(fold(key_shared, evaluation), fold(key, evaluation), iterations, one)

        return jax.vmap(of_chain, out_axes=1)(keys_own)

    shapes = jax.eval_shape(of_evaluation, 0)
    if not jax.tree.leaves(shapes):
        return (shapes,) * number
    if number == 1:
        return (of_evaluation(0),)
    noises = jax.vmap(of_evaluation)(jnp.arange(number))
    return tuple(jax.tree.map(operator.itemgetter(evaluation), noises) for evaluation in range(number))


def draw_batches(parts: Parts, keys: Keys, iteration: Array, stream: Any) -> tuple[Any, ...]:
    """Batches of an iteration of one run: leaves (...), or (P, ...) if chains have batches of their own."""
    key = keys.batch_shared if parts.potential.is_batch_shared else keys.batch
    return batches_of(parts.potential, key, iteration, stream, parts.num_batches)


def batches_of(potential: Potential, keys: Array, iteration: Array, stream: Any, number: int) -> tuple[Any, ...]:
    """`number` batches of an iteration, for keys of shape (2,) or (P, 2), from the potential's data or a stream."""
    stored = None
    if isinstance(stream, Stream):
        examples, weights = jax.tree.map(lambda leaf: leaf[iteration - stream.first], (stream.examples, stream.weights))
        stored = Batch(examples, weights, jnp.broadcast_to(stream.num_data, weights.shape[:-1]))

    def of_number(evaluation, stored):
        def of_key(key, stored):
            key = fold(key, evaluation)
            return potential.batch(key, iteration) if stored is None else potential.augmented(key, iteration, stored)

        return (jax.vmap(of_key) if keys.ndim == 2 else of_key)(keys, stored)

    if number <= 2:
        return tuple(of_number(b, jax.tree.map(operator.itemgetter(b), stored)) for b in range(number))
    batches = jax.vmap(of_number)(jnp.arange(number), stored)
    return tuple(jax.tree.map(operator.itemgetter(b), batches) for b in range(number))
