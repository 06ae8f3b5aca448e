"""Positions of many leaves inside the engine, and what users still see of them."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.engine import packing
from isotherm.engine.packing import Packing
from isotherm.kernels import SGLD, within
from isotherm.kernels.kernel import Kernel
from isotherm.kernels.sgld import PositionState


@pytest.fixture(autouse=True)
def few_leaves_are_packed(monkeypatch):
    monkeypatch.setattr(packing, "MIN_LEAVES", 2)


TREE = {"a": np.arange(6.0, dtype=np.float32).reshape(2, 3), "b": (np.float32(7.0), np.arange(4, dtype=np.float16))}


def energy(x):
    return 0.5 * jnp.sum((x["a"] - 1.0) ** 2) + 0.5 * x["b"][0] ** 2 + 2.0 * jnp.sum(x["b"][1].astype(jnp.float32) ** 2)


def shapes_of(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), tree)


def start(dtype=np.float32):
    return {"a": np.zeros((2, 3), np.float32), "b": (np.zeros((), np.float32), np.zeros(4, dtype))}


def test_a_tree_comes_back():
    tree = jax.tree.map(jnp.asarray, TREE)
    way = Packing.of(tree, SGLD())
    packed = way.pack(tree)
    assert shapes_of(packed) == {"float16": ((4,), "float16"), "float32": ((7,), "float32")}
    np.testing.assert_array_equal(packed["float32"], [0, 1, 2, 3, 4, 5, 7])
    jax.tree.map(np.testing.assert_array_equal, way.unpack(packed), tree)
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf + 1, leaf + 2]), tree)
    again = way.unpack(way.pack(many))
    assert shapes_of(again) == shapes_of(many)
    jax.tree.map(np.testing.assert_array_equal, again, many)


def test_few_leaves_stay_as_they_are(monkeypatch):
    monkeypatch.undo()
    few, many = [jnp.zeros(2)] * 15, [jnp.zeros(2)] * 16
    assert Packing.of(few, SGLD()).pack(few) is few
    assert Packing.of(many, SGLD()).pack(many)["float32"].shape == (32,)


def test_one_leaf_and_kernels_that_tell_leaves_apart_keep_the_tree():
    one = jnp.zeros((2, 3))
    assert Packing.of(one, SGLD()).pack(one) is one
    tree = start()
    assert Packing.of(tree, within(SGLD(), (np.zeros(3), np.ones(3)))).pack(tree) is tree
    assert Packing.of(tree, within(SGLD(), (0.0, 1.0))).structure is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_users_see_their_tree(dtype):
    """In energies, `collect`, draws, best positions and loops by hand."""
    seen = []

    def collected(x):
        seen.append(shapes_of(x))
        return x

    sampler = iso.sgld(0.05)
    run = iso.sample(
        energy,
        sampler,
        num_steps=40,
        num_chains=2,
        init=start(dtype),
        collect=collected,
        track_best=True,
        progress=False,
    )
    assert all(shapes == shapes_of(start(dtype)) for shapes in seen)
    expected = jax.tree.map(lambda leaf: (2, 40, *leaf.shape), start(dtype))
    assert jax.tree.map(lambda leaf: leaf.shape, run.draws) == expected
    assert shapes_of(run.stats["best_position"]) == shapes_of(
        jax.tree.map(lambda leaf: np.zeros((2, *leaf.shape), leaf.dtype), start(dtype))
    )
    best = np.argmin(np.asarray(run.energies), axis=1)
    for chain in range(2):
        np.testing.assert_array_equal(run.stats["best_position"]["a"][chain], run.draws["a"][chain, best[chain]])
    state = sampler.init(energy, start(dtype), num_chains=2)
    for _ in range(3):
        state, _ = sampler.step(jax.random.key(0), state)
    jax.tree.map(lambda leaf, draws: np.testing.assert_array_equal(leaf, draws[:, 3]), state.position, run.draws)


def test_the_law_of_every_leaf():
    """Variances 1, 1 and 1/4; leaves that were mixed up would have others."""
    run = iso.sample(energy, iso.sgld(0.05), num_steps=20_000, num_chains=8, burn_in=500, init=start(), progress=False)
    a, (b, c) = run.draws["a"], run.draws["b"]
    np.testing.assert_allclose(np.mean(a, axis=(0, 1)), 1.0, atol=0.05)
    np.testing.assert_allclose(np.var(a, axis=(0, 1)), 1.0 / (1 - 0.025), rtol=0.06)
    np.testing.assert_allclose(np.var(b), 1.0 / (1 - 0.025), rtol=0.06)
    np.testing.assert_allclose(np.var(c, axis=(0, 1)), 0.25 / (1 - 0.1), rtol=0.06)


@dataclasses.dataclass(frozen=True, eq=False)
class OneLeafOnly(Kernel):
    """A user's kernel, which moves `a` and nothing else."""

    def init(self, position: Any) -> PositionState:
        return PositionState(position)

    def step(self, state, gradient, noise, move, curvature=None):
        x = state.position
        return PositionState({**x, "a": x["a"] - move.step_size * gradient["a"]})


def test_a_kernel_of_ones_own_sees_the_tree():
    sampler = iso.Sampler(OneLeafOnly(), 0.1)
    run = iso.sample(energy, sampler, num_steps=100, init=start(), progress=False)
    np.testing.assert_allclose(run.draws["a"][0, -1], 1.0, atol=1e-3)
    assert np.all(run.draws["b"][1] == 0)
