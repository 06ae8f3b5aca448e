"""BatchNorm statistics belong to a chain and to a draw."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import isotherm as iso
from isotherm.engine import iteration, program
from isotherm.networks import from_equinox, from_linen, from_nnx
from isotherm.predictive import predict

RNG = np.random.default_rng(0)
X = (3.0 + 2.0 * RNG.standard_normal((120, 3))).astype(np.float32)
Y = (X[:, 0] > 3.0).astype(np.int32)


class InNnx(nnx.Module):
    def __init__(self, rngs):
        self.first, self.norm = nnx.Linear(3, 4, rngs=rngs), nnx.BatchNorm(4, momentum=0.8, rngs=rngs)
        self.last = nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.norm(self.first(x))))


class InLinen(linen.Module):
    @linen.compact
    def __call__(self, x, train):
        hidden = linen.BatchNorm(use_running_average=not train, momentum=0.8)(linen.Dense(4)(x))
        return linen.Dense(2)(linen.relu(hidden))


class InEquinox(eqx.Module):
    first: eqx.nn.Linear
    norm: eqx.nn.BatchNorm
    last: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key)
        self.first, self.last = eqx.nn.Linear(3, 4, key=keys[0]), eqx.nn.Linear(4, 2, key=keys[1])
        self.norm = eqx.nn.BatchNorm(4, "batch", mode="ema", momentum=0.8)

    def __call__(self, x, state):
        hidden, state = self.norm(self.first(x), state)
        return self.last(jax.nn.relu(hidden)), state


def potential_in(library):
    options = {"batch_size": 30, "weight_decay": 1.0}
    if library == "nnx":
        return from_nnx(InNnx, "cross_entropy", (X, Y), **options)
    if library == "linen":
        return from_linen(InLinen(), "cross_entropy", (X, Y), train_argument="train", **options)
    model, state = eqx.nn.make_with_state(InEquinox)(jax.random.key(0))
    return from_equinox(model, "cross_entropy", (X, Y), state=state, **options)


def starts(potential):
    """Two networks far apart, whose statistics cannot agree."""
    start = potential.init
    near = start(jax.random.key(0)) if callable(start) else start
    return jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf), 4.0 * jnp.asarray(leaf) + 1.0]), near)


def sampled(potential, positions, num_chains):
    chosen = jax.tree.map(lambda leaf: leaf[:num_chains], positions)
    options = {"num_steps": 40, "thinning": 10, "num_chains": num_chains, "progress": False}
    return iso.sample(potential, iso.sghmc(1e-4), init=iso.per_chain(chosen), **options)


def assert_apart(potential):
    """The first of two chains has the very statistics that it has when it is alone."""
    together, alone = (sampled(potential, starts(potential), number) for number in (2, 1))
    for both, one in zip(jax.tree.leaves(together.model_state), jax.tree.leaves(alone.model_state), strict=True):
        np.testing.assert_allclose(both[:1], one, rtol=1e-4, atol=1e-5)
        if both.dtype == np.float32 and both.size > 10:
            assert not np.allclose(both[0, -1], both[1, -1], rtol=0.05)


@pytest.mark.parametrize("library", ["nnx", "linen", "equinox"])
def test_chains_keep_their_statistics_apart(library):
    assert_apart(potential_in(library))


def test_statistics_that_leak_would_be_seen(monkeypatch):
    def leaking(parts, state, inputs, number):
        after, seen = iteration.iterate(parts, state, inputs, number)
        common = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf.mean(axis=0), leaf.shape), after.model_state)
        return after._replace(model_state=common), seen

    monkeypatch.setattr(program, "iterate", leaking)
    with pytest.raises(AssertionError):
        assert_apart(potential_in("nnx"))


def test_running_statistics_are_those_of_the_recursion():
    potential = potential_in("nnx")
    run = iso.sample(potential, iso.sgd(1e-12), num_steps=3, init=potential.init, progress=False)
    weights = jax.tree.map(lambda leaf: leaf[0, 0], run.draws)
    mean = np.zeros(4)
    from isotherm.foundation.randomness import Purpose, fold, run_keys

    key = fold(run_keys(jnp.zeros(2, jnp.uint32), Purpose.BATCH, jnp.arange(1))[0], 0)
    for number in range(2):
        hidden = np.asarray(potential.batch(key, jnp.asarray(number)).examples[0]) @ weights["first.kernel"]
        mean = 0.8 * mean + 0.2 * (hidden + weights["first.bias"]).mean(axis=0)
        # A record holds the state before its own iteration.
        np.testing.assert_allclose(run.model_state["norm.mean"][0, number + 1], mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("library", ["nnx", "linen", "equinox"])
def test_predictions_use_each_draws_own_statistics(library):
    potential = potential_in(library)
    run = sampled(potential, starts(potential), 2)
    expected = np.zeros((len(X), 2))
    for chain in range(2):
        for draw in range(run.num_draws):
            weights, state = jax.tree.map(lambda leaf: leaf[chain, draw], (run.draws, run.model_state))  # noqa: B023
            logits = np.asarray(potential.outputs(weights, X, state), np.float64)
            expected += np.exp(logits - logits.max(axis=1, keepdims=True)) / np.exp(
                logits - logits.max(axis=1, keepdims=True)
            ).sum(axis=1, keepdims=True)
    found = predict(run, potential, X).probabilities
    np.testing.assert_allclose(found, expected / (2 * run.num_draws), atol=1e-5)
    swapped = jax.tree.map(lambda leaf: leaf[:, ::-1], run.model_state)

    class Swapped:
        draws, model_state, log_weights = run.draws, swapped, run.log_weights

    assert np.abs(predict(Swapped(), potential, X).probabilities - found).max() > 0.01
