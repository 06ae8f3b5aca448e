"""BatchNorm statistics of drawn networks: plain means over batches of the data, of whatever module and momentum."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import isotherm as iso
from isotherm.predictive import Ensemble, fit_swag, predict, refresh_statistics

IS_OPTIMIZED = False
RNG = np.random.default_rng(0)
X = (3.0 + 2.0 * RNG.standard_normal((120, 3))).astype(np.float32)
Y = (X[:, 0] > 3.0).astype(np.int32)
FIRST, SECOND = (RNG.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4, 2)))
EPSILON = 1e-5


class InNnx(nnx.Module):
    """Two layers, each normalized."""

    def __init__(self, momentum, rngs):
        self.first, self.second = nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 2, rngs=rngs)
        self.low = nnx.BatchNorm(4, momentum=momentum, epsilon=EPSILON, rngs=rngs)
        self.high = nnx.BatchNorm(2, momentum=momentum, epsilon=EPSILON, rngs=rngs)

    def __call__(self, x):
        return self.high(self.second(jnp.tanh(self.low(self.first(x)))))


class InLinen(linen.Module):
    """The same; `is_told` whether it has an argument that says if it trains."""

    momentum: float

    @linen.compact
    def __call__(self, x):
        options: Any = {"use_running_average": False, "momentum": self.momentum, "epsilon": EPSILON}
        hidden = linen.BatchNorm(name="low", **options)(linen.Dense(4, name="first")(x))
        return linen.BatchNorm(name="high", **options)(linen.Dense(2, name="second")(jnp.tanh(hidden)))


class InEquinox(eqx.Module):
    """The same."""

    first: Any
    second: Any
    low: Any
    high: Any

    def __init__(self, mode, momentum, key):
        self.first, self.second = eqx.nn.Linear(3, 4, key=key), eqx.nn.Linear(4, 2, key=key)
        self.low, self.high = (
            eqx.nn.BatchNorm(size, "batch", mode=mode, momentum=momentum, eps=EPSILON) for size in (4, 2)
        )

    def __call__(self, x, state):
        hidden, state = self.low(self.first(x), state)
        return self.high(self.second(jnp.tanh(hidden)), state)


def made(library, momentum, batch_size, **options):
    """A potential, the weights in its names, and a reader of its states: means and variances of both layers."""
    arguments = ("cross_entropy", (X, Y))
    options |= {"batch_size": batch_size, "weight_decay": 1.0}
    weights = {"first.kernel": FIRST, "first.bias": np.ones(4), "second.kernel": SECOND, "second.bias": np.ones(2)}
    ones = {"low.scale": np.ones(4), "low.bias": np.zeros(4), "high.scale": np.ones(2), "high.bias": np.zeros(2)}
    every = {name: np.asarray(leaf, np.float32) for name, leaf in (weights | ones).items()}
    if library == "nnx":
        potential = iso.from_nnx(lambda rngs: InNnx(momentum, rngs), *arguments, **options)
        return (
            potential,
            every,
            lambda state: [state[f"{layer}.{part}"] for layer in ("low", "high") for part in ("mean", "var")],
        )
    if library == "linen":
        potential = iso.from_linen(InLinen(momentum), *arguments, **options)
        nested: Any = {layer: {} for layer in ("first", "second", "low", "high")}
        for name, leaf in every.items():
            layer, part = name.split(".")
            nested[layer][part] = leaf
        return (
            potential,
            nested,
            lambda state: [state["batch_stats"][layer][part] for layer in ("low", "high") for part in ("mean", "var")],
        )
    mode = library.removeprefix("equinox ")
    model, state = eqx.nn.make_with_state(InEquinox)(mode, momentum, jax.random.key(0))
    names = {"first.kernel": "first.weight", "second.kernel": "second.weight"}
    scaled = {name.replace("scale", "weight"): leaf for name, leaf in every.items()}
    own = {names.get(name, name): leaf.T if name in names else leaf for name, leaf in scaled.items()}
    potential = iso.from_equinox(model, *arguments, state=state, **options)
    return potential, own, lambda state: [leaf for leaf in state.values() if np.ndim(leaf)]


def by_hand(batches):
    """Means over batches of the means and variances of both layers, and the statistics themselves."""
    found = []
    for x in batches:
        low = x @ FIRST + 1.0
        hidden = np.tanh((low - low.mean(axis=0)) / np.sqrt(low.var(axis=0) + EPSILON))
        high = hidden @ SECOND + 1.0
        found.append([low.mean(axis=0), low.var(axis=0), high.mean(axis=0), high.var(axis=0)])
    return [np.mean(parts, axis=0) for parts in zip(*found, strict=True)]


LIBRARIES = ["nnx", "linen", "equinox batch", "equinox ema"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("momentum", "batch_size"), [(0.99, 30), (0.5, 30), (0.9, None)])
def test_statistics_are_plain_means_over_batches(library, momentum, batch_size):
    potential, weights, read = made(library, momentum, batch_size)
    # Of a network far away, whose statistics must not show.
    before = jax.tree.map(
        lambda leaf: leaf * 0 + 100 if leaf.dtype == np.float32 else leaf, potential.init_model_state()
    )
    after = refresh_statistics(potential, weights, before)
    number = 120 // (batch_size or 120)
    batches = [np.asarray(potential.batch(jnp.zeros(2, jnp.uint32), jnp.asarray(k)).examples[0]) for k in range(number)]
    expected = by_hand(batches)
    for found, known in zip(read(after), expected, strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-4, atol=1e-5)
    # The means of the first layer do not depend on the order of the batches.
    np.testing.assert_allclose(read(after)[0], (X @ FIRST + 1.0).mean(axis=0), rtol=1e-4)
    # And predictions normalize by them.
    low = (X @ FIRST + 1.0 - expected[0]) / np.sqrt(expected[1] + EPSILON)
    high = (np.tanh(low) @ SECOND + 1.0 - expected[2]) / np.sqrt(expected[3] + EPSILON)
    np.testing.assert_allclose(potential.outputs(weights, X, after), high, atol=1e-3)


@pytest.mark.parametrize("batch_size", [None, 40])
def test_networks_of_swag_have_statistics_of_their_own_whatever_the_batches(batch_size):
    potential, weights, _ = made("nnx", 0.99, batch_size)
    state = potential.init_model_state()
    several = lambda leaf: np.stack([[np.asarray(leaf) * factor for factor in (1.0, 1.1, 0.8)]])  # noqa: E731
    path = Ensemble(jax.tree.map(several, weights), jax.tree.map(several, state), np.zeros((1, 3)))
    drawn = fit_swag(path, rank=2).sample(2, potential=potential)
    for number in range(2):
        kernel, bias = (drawn.draws[f"first.{part}"][0, number] for part in ("kernel", "bias"))
        np.testing.assert_allclose(
            drawn.model_state["low.mean"][0, number], (X @ kernel + bias).mean(axis=0), rtol=1e-4
        )
    assert predict(drawn, potential, X).probabilities.shape == (120, 2)


class Count(nnx.Variable):
    """What a module keeps beside its weights."""


class WithAverages(nnx.Module):
    """Normalizes by a moving average of its own making, and counts its calls."""

    def __init__(self, rngs):
        self.layer = nnx.Linear(3, 2, rngs=rngs)
        self.average, self.calls = Count(jnp.full(3, 8.0)), Count(jnp.zeros((), jnp.int32))

    def __call__(self, x):
        self.average[...] = 0.75 * self.average[...] + 0.25 * x.mean(axis=0)
        self.calls[...] = self.calls[...] + 1
        return self.layer(x - self.average[...])


def test_averages_of_another_kind_are_those_of_the_module():
    potential = iso.from_nnx(WithAverages, "cross_entropy", (X, Y), batch_size=30)
    state = potential.init_model_state()
    after = refresh_statistics(potential, potential.init(jax.random.key(0)), state, 4)
    average = np.full(3, 8.0)
    for k in range(4):
        batch = potential.batch(jnp.zeros(2, jnp.uint32), jnp.asarray(k)).examples[0]
        average = 0.75 * average + 0.25 * np.asarray(batch).mean(axis=0)
    np.testing.assert_allclose(after["average"], average, rtol=1e-5)
    assert after["calls"] == 4


def test_a_linen_module_that_is_not_told_whether_it_trains_predicts_by_its_running_statistics():
    potential, _, read = made("linen", 0.9, 30)
    run = iso.sample(potential, iso.sgd(1e-3), num_steps=20, progress=False)
    found = predict(run, potential, X, batch_size=7).probabilities
    # Alone, an example has no statistics of a batch.
    np.testing.assert_allclose(predict(run, potential, X[:1]).probabilities, found[:1], atol=1e-5)
    assert np.ptp(read(run.model_state)[0]) > 0.1

    class Keeping(linen.Module):
        @linen.compact
        def __call__(self, x):
            known = self.variable("seen", "mean", jnp.zeros, (3,))
            known.value = 0.9 * known.value + 0.1 * x.mean(axis=0)
            return linen.Dense(2)(x - known.value)

    with pytest.raises(
        ValueError, match=r"`module` must be one that predicts without changing .*Give it an argument `train`"
    ):
        iso.from_linen(Keeping(), "cross_entropy", (X, Y))


def test_wrong_refreshes_are_refused():
    potential, weights, _ = made("nnx", 0.9, 30)
    state = potential.init_model_state()
    wrong: Any
    for wrong in (0, -1, 1.5, "all"):
        with pytest.raises(ValueError, match="`num_batches` must be an integer of at least 1"):
            refresh_statistics(potential, weights, state, wrong)
    streamed, _, _ = made("nnx", 0.9, 30, is_streamed=True)
    with pytest.raises(
        ValueError, match="`potential` must be one with its data on the device; got one with streamed data"
    ):
        refresh_statistics(streamed, weights, state)
