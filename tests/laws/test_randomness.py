"""Random numbers: the right bits, the right laws, and no stream used twice."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from isotherm.foundation.randomness import Purpose, chain_keys, normals, run_keys, student_t, threefry, uniforms, words
from isotherm.potentials.batches import batch_indices, permute

IS_OPTIMIZED = False

KEY = jnp.array([17, 4], jnp.uint32)


def test_threefry_has_the_bits_of_jax():
    first, second = jnp.arange(50, dtype=jnp.uint32), jnp.arange(50, dtype=jnp.uint32) * 7
    ours = jnp.concatenate(threefry(KEY[0], KEY[1], first, second))
    assert jnp.array_equal(ours, threefry_2x32(KEY, jnp.concatenate([first, second])))


def test_numbers_of_an_iteration_do_not_depend_on_how_many_are_drawn():
    many, few = words(KEY, jnp.arange(100), 5), words(KEY, jnp.arange(40, 43), 5)
    assert jnp.array_equal(many[40:43], few)
    assert len(np.unique(many)) == many.size


def test_normals_uniforms_and_student_t_follow_their_laws():
    iterations = jnp.arange(40_000)
    drawn = np.asarray(normals(KEY, iterations, (3,)), np.float64).reshape(-1)
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    assert stats.kstest(1.02 * drawn, "norm").pvalue < 1e-3
    assert stats.kstest(np.asarray(uniforms(KEY, iterations, 2)).reshape(-1), "uniform").pvalue > 1e-3
    heavy = np.asarray(student_t(KEY, iterations, 5.0, (2,), jnp.float32), np.float64).reshape(-1)
    assert stats.kstest(heavy, "t", args=(5,)).pvalue > 1e-3
    assert stats.kstest(heavy, "t", args=(7,)).pvalue < 1e-3
    # Both words of a counter are used: neighbors must not be correlated.
    assert abs(np.corrcoef(drawn[0::3], drawn[1::3])[0, 1]) < 0.02


def test_no_key_serves_two_purposes_chains_or_runs():
    of_run = [run_keys(jnp.zeros(2, jnp.uint32), purpose, jnp.arange(4)) for purpose in Purpose]
    every = [np.asarray(keys).reshape(-1, 2) for keys in of_run]
    every += [np.asarray(chain_keys(keys, 5)).reshape(-1, 2) for keys in of_run]
    flat = np.concatenate(every)
    assert len(np.unique(flat, axis=0)) == len(flat)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 17, 100, 1023, 4096, 19_953, 50_000])
def test_permutation_is_one(size):
    for number in (size, jnp.asarray(size)):
        images = permute(KEY, jnp.arange(size), number)
        assert sorted(images.tolist()) == list(range(size))


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("size", [3, 5, 7, 10, 37])
def test_permutations_put_every_pair_everywhere_equally_often(size, is_known):
    number = size if is_known else jnp.asarray(size)
    keys = jax.vmap(lambda k: jax.random.key_data(jax.random.key(k)))(jnp.arange(200_000))
    images = np.asarray(jax.jit(jax.vmap(lambda key: permute(key, jnp.arange(2), number)))(keys))
    counts = np.bincount(images[:, 0] * size + images[:, 1], minlength=size**2).reshape(size, size)
    off_diagonal = counts[~np.eye(size, dtype=bool)]
    assert counts.trace() == 0
    assert stats.chisquare(off_diagonal).pvalue > 1e-4


@pytest.mark.parametrize("size", [1000, 1009, 50_000])
def test_batches_vary_as_draws_without_replacement_do(size):
    keys = jax.vmap(lambda k: jax.random.key_data(jax.random.key(k)))(jnp.arange(4000))
    images = np.asarray(jax.vmap(lambda key: permute(key, jnp.arange(100), size))(keys), np.float64) / size
    # Order of rows, halves of it, and the last digit of the row: features that a weak bijection would keep.
    for feature in (images, images % 0.5, (images * size) % 10 / 10):
        expected = np.var(feature) / 100 * (1 - 99 / (size - 1))
        assert np.var(feature.mean(axis=1)) == pytest.approx(expected, rel=4 * math.sqrt(2 / 4000))


def test_an_epoch_sees_every_example_once_with_a_short_last_batch():
    size, batch = 23, 5
    for epoch in range(3):
        seen = []
        for place in range(5):
            indices, weights = batch_indices(KEY, epoch * 5 + place, size, batch, "epochs")
            seen += np.asarray(indices)[np.asarray(weights) > 0].tolist()
            assert float(weights.sum()) == (3 if place == 4 else 5)
        assert sorted(seen) == list(range(size))


def test_epochs_have_different_orders_and_a_growing_buffer_needs_no_new_program():
    compiled = jax.jit(lambda k, n: batch_indices(KEY, k, n, 4, "epochs")[0])
    assert not jnp.array_equal(compiled(0, 20), compiled(5, 20))
    for size in (4, 9, 1000):
        assert int(compiled(0, size).max()) < size
    assert compiled._cache_size() == 1  # pyright: ignore
