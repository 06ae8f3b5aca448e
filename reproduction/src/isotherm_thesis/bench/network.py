"""SGHMC on a multilayer perceptron, beside a scan written by hand with the same update."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from isotherm.api import sample
from isotherm.foundation.randomness import fold, normals_like, words
from isotherm.potentials import from_likelihood
from isotherm.samplers import sghmc
from isotherm_thesis.bench.timing import Measurement, rates

_SIZES = (64, 266, 266, 10)
_NUM_DATA, _BATCH = 10_000, 256
_STEP_SIZE, _FRICTION = 1e-7, 0.1


def forward(weights: list[tuple[Any, Any]], inputs: Any) -> Any:
    """Logits of a perceptron with ReLU."""
    for w, b in weights[:-1]:
        inputs = jax.nn.relu(inputs @ w + b)
    w, b = weights[-1]
    return inputs @ w + b


def log_likelihood(weights: Any, examples: Any) -> Any:
    """Log probability of each label."""
    inputs, labels = examples
    return jnp.take_along_axis(jax.nn.log_softmax(forward(weights, inputs)), labels[:, None], axis=1)[:, 0]


def log_prior(weights: Any) -> Any:
    """A standard normal prior, up to a constant."""
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(weights))


def init_weights(key: Any, sizes: tuple[int, ...] = _SIZES) -> Any:
    """He-normal weights and zero biases."""
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(sizes[:-1], sizes[1:], keys, strict=True)
    return [(jax.random.normal(k, (m, n)) * np.sqrt(2 / m), jnp.zeros(n)) for m, n, k in pairs]


def make_data(sizes: tuple[int, ...] = _SIZES) -> tuple[np.ndarray, np.ndarray]:
    """Random inputs with random labels: only the time matters."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((_NUM_DATA, sizes[0])).astype(np.float32)
    return inputs, rng.integers(sizes[-1], size=_NUM_DATA).astype(np.int32)


def overhead_rows(num_steps: int = 2_000) -> list[Measurement]:
    """Steps per second of `iso.sample` beside scans written by hand: with JAX's random numbers, and with the same ones."""
    data, start = make_data(), init_weights(jax.random.key(0))
    potential = from_likelihood(log_likelihood, log_prior, data, batch_size=_BATCH, batching="replacement")
    sampler = sghmc(step_size=_STEP_SIZE, friction=_FRICTION)

    def ours():
        return sample(potential, sampler, num_steps=num_steps, thinning=num_steps, init=start, progress=False).energies

    compiled = jax.jit(by_hand, static_argnums=(0, 4))
    key = jax.random.key(0)
    on_device = jax.tree.map(jnp.asarray, data)
    mine, theirs, same = rates(
        num_steps,
        ours,
        lambda: compiled(_numbers_of_jax, key, start, on_device, num_steps),
        lambda: compiled(_same_numbers, key, start, on_device, num_steps),
    )
    size = sum(leaf.size for leaf in jax.tree.leaves(start))
    work = f"SGHMC, perceptron of {size} weights, batch {_BATCH}, steps/s"
    return [
        Measurement(work, "scan by hand, jax.random", mine, theirs),
        Measurement(work, "scan by hand, our random numbers", mine, same),
    ]


def by_hand(numbers: Callable[..., tuple[Any, Any]], key: Any, weights: Any, data: Any, num_steps: int) -> Any:
    """The same update as a plain scan, as a user of JAX would write it."""

    def energy(weights, batch):
        return -log_prior(weights) - _NUM_DATA / _BATCH * jnp.sum(log_likelihood(weights, batch))

    def step(carry, iteration):
        weights, momentum = carry
        rows, noise = numbers(key, iteration, weights)
        value, gradient = jax.value_and_grad(energy)(weights, jax.tree.map(lambda leaf: leaf[rows], data))
        spread = jnp.sqrt(2 * _STEP_SIZE * _FRICTION)
        momentum = jax.tree.map(
            lambda v, g, xi: (1 - _FRICTION) * v - _STEP_SIZE * g + spread * xi, momentum, gradient, noise
        )
        return (jax.tree.map(jnp.add, weights, momentum), momentum), value

    start = (weights, jax.tree.map(jnp.zeros_like, weights))
    (weights, _), values = lax.scan(step, start, jnp.arange(num_steps))
    return values, weights


def _numbers_of_jax(key: Any, iteration: Any, weights: Any) -> tuple[Any, Any]:
    key_batch, key_noise = jax.random.split(jax.random.fold_in(key, iteration))
    leaves, structure = jax.tree.flatten(weights)
    keys = jax.random.split(key_noise, len(leaves))
    noise = [jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
    return jax.random.randint(key_batch, (_BATCH,), 0, _NUM_DATA), jax.tree.unflatten(structure, noise)


def _same_numbers(key: Any, iteration: Any, weights: Any) -> tuple[Any, Any]:
    key_words = jax.random.key_data(key)
    rows = words(fold(key_words, 0), iteration[None], _BATCH)[0] % _NUM_DATA
    noise = normals_like(fold(key_words, 1), iteration[None], weights)
    return rows.astype(jnp.int32), jax.tree.map(lambda leaf: leaf[0], noise)
