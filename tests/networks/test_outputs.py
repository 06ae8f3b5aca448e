"""What outputs of a network mean: the loss says so, or the user does, and predictions are those of that."""

import warnings
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import isotherm as iso
from isotherm.networks import binary_cross_entropy, cross_entropy
from isotherm.predictive import Ensemble, outputs_of_draws, predict

IS_OPTIMIZED = False
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3)).astype(np.float32)
Y = (X[:, 0] > 0.3).astype(np.int32)
KERNELS = RNG.standard_normal((2, 5, 3, 1)).astype(np.float32)
BIASES = RNG.standard_normal((2, 5, 1)).astype(np.float32)
LOG_WEIGHTS = RNG.standard_normal((2, 5))


class InLinen(linen.Module):
    """One logit, with an axis of one or without."""

    is_flat: bool

    @linen.compact
    def __call__(self, x):
        found = linen.Dense(1)(x)
        return found[:, 0] if self.is_flat else found


class InEquinox(equinox.Module):
    """The same; the module sees one example."""

    layer: Any
    is_flat: bool = equinox.field(static=True)

    def __call__(self, x):
        found = self.layer(x)
        return found[0] if self.is_flat else found


class InNnx(nnx.Module):
    """The same."""

    def __init__(self, is_flat, rngs):
        self.layer, self.is_flat = nnx.Linear(3, 1, rngs=rngs), is_flat

    def __call__(self, x):
        found = self.layer(x)
        return found[:, 0] if self.is_flat else found


def potential_in(library, is_flat, loss, **options):
    data = (X, Y)
    if library == "nnx":
        return iso.from_nnx(lambda rngs: InNnx(is_flat, rngs), loss, data, **options)
    if library == "linen":
        return iso.from_linen(InLinen(is_flat), loss, data, **options)
    layer = equinox.nn.Linear(3, 1, key=jax.random.key(0))
    return iso.from_equinox(InEquinox(layer, is_flat), loss, data, **options)


def draws_in(library):
    """The same networks with the names and the axes of a library."""
    if library == "nnx":
        return {"layer.kernel": KERNELS, "layer.bias": BIASES}
    if library == "linen":
        return {"Dense_0": {"kernel": KERNELS, "bias": BIASES}}
    return {"layer.weight": np.swapaxes(KERNELS, 2, 3), "layer.bias": BIASES}


def own_loss(outputs, labels):
    return jnp.logaddexp(0.0, outputs.reshape(-1)) - labels * outputs.reshape(-1)


@pytest.mark.parametrize("library", ["nnx", "linen", "equinox"])
@pytest.mark.parametrize("is_flat", [True, False])
@pytest.mark.parametrize(
    ("loss", "options"), [("binary_cross_entropy", {}), (own_loss, {"outputs": "logit"})], ids=["built in", "own"]
)
def test_one_logit_is_that_of_class_one(library, is_flat, loss, options):
    potential = potential_in(library, is_flat, loss, **options)
    found = predict(Ensemble(draws_in(library), (), LOG_WEIGHTS), potential, X, labels=Y, batch_size=16)
    weights = (np.exp(LOG_WEIGHTS) / np.exp(LOG_WEIGHTS).sum()).reshape(-1)
    logits = (np.einsum("nd,csdk->csn", X, KERNELS) + BIASES).reshape(10, 40)
    each = 1 / (1 + np.exp(-logits))
    mean = weights @ each
    np.testing.assert_allclose(found.probabilities, np.stack([1 - mean, mean], axis=1), atol=1e-5)
    np.testing.assert_allclose(found.logits[:, 1] - found.logits[:, 0], weights @ logits, atol=1e-4)
    of_one = lambda p: -p * np.log(p) - (1 - p) * np.log(1 - p)  # noqa: E731
    np.testing.assert_allclose(found.entropy, of_one(mean), atol=1e-4)
    np.testing.assert_allclose(found.mutual_information, of_one(mean) - weights @ of_one(each), atol=1e-4)
    assert found.draw_accuracy is not None
    assert found.draw_nll is not None
    np.testing.assert_allclose(found.draw_accuracy, ((logits > 0) == Y).mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.draw_nll, -np.log(np.where(Y, each, 1 - each)).mean(axis=1), rtol=1e-4)


def linear(outputs):
    return lambda rngs: nnx.Linear(3, outputs, rngs=rngs)


def sampled(potential):
    return iso.sample(potential, iso.sgld(1e-3), num_steps=5, progress=False)


def test_weights_of_examples_are_no_reason_to_call_a_classifier_a_regression():
    targets = np.stack([Y, RNG.uniform(0.1, 1.0, 40)], axis=1).astype(np.float32)
    weighted = lambda outputs, rows: rows[:, 1] * cross_entropy(outputs, rows[:, 0])  # noqa: E731
    potential = iso.from_nnx(linear(2), weighted, (X, targets), outputs="logits")
    run = sampled(potential)
    logits, weights = outputs_of_draws(run, potential, X)
    expected = np.einsum("s,snc->nc", weights, np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(predict(run, potential, X).probabilities, expected, atol=1e-5)


def poisson(outputs, counts):
    return jnp.exp(outputs[:, 0]) - counts * outputs[:, 0]


@pytest.mark.parametrize("targets", [Y, 3 * Y, Y + 0.5], ids=["zero and one", "whole", "real"])
def test_nobody_guesses_from_the_targets(targets):
    """A rate of counts 0 and 1 is no logit: what a network returns is for the loss to say, or the user."""
    potential = iso.from_nnx(linear(1), poisson, (X, targets))
    run = sampled(potential)
    with pytest.raises(ValueError, match=r"got a loss of your own that does not say .* outputs=\"logits\" .*_of_draws"):
        predict(run, potential, X)
    said = iso.from_nnx(linear(1), poisson, (X, targets), outputs="values")
    with pytest.raises(ValueError, match=r"`potential` must be that of a classifier; got the loss of a regression\."):
        predict(run, said, X)
    assert outputs_of_draws(run, said, X)[0].shape == (5, 40, 1)


WRONG = {
    "a kind": (
        linear(1),
        own_loss,
        Y,
        {"outputs": "logitz"},
        r"`outputs` must be one of .*; got 'logitz'. Did you mean",
    ),
    "the other": (
        linear(2),
        "cross_entropy",
        Y,
        {"outputs": "logit"},
        r'`outputs` must be "logits" for .*; got \'logit\'',
    ),
    "one class": (
        linear(1),
        "cross_entropy",
        0 * Y,
        {},
        r'two outputs or more.*; got outputs \(1,\)\. .*"binary_cross_entropy"',
    ),
    "no classes": (lambda rngs: InNnx(True, rngs), "cross_entropy", Y, {}, r"two outputs or more.*; got outputs \(\)"),
    "own one": (linear(1), own_loss, Y, {"outputs": "logits"}, r'two outputs .* of your own say outputs="logit"'),
    "two logits": (
        linear(2),
        "binary_cross_entropy",
        Y,
        {},
        r"`network` must be one with a single output .* \(2,\)\. Give",
    ),
    "labels 1 and 2": (
        linear(1),
        "binary_cross_entropy",
        Y + 1,
        {},
        r"labels 0 and 1; got targets from 1 to 2\. Write",
    ),
    "signs": (linear(1), "binary_cross_entropy", 2 * Y - 1, {}, r"labels 0 and 1; got targets from -1 to 1\. Write"),
    "shares": (linear(1), "binary_cross_entropy", Y * 0.5, {}, r"got targets from 0 to 0.5 that are not whole\. Write"),
    "one-hot": (linear(1), "binary_cross_entropy", np.eye(2)[Y], {}, r"one label for every example; got .* \(40, 2\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_outputs_that_do_not_suit_the_loss_are_refused(name):
    module, loss, targets, options, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        iso.from_nnx(module, loss, (X, targets), **options)


@pytest.mark.parametrize("labels", [Y, Y[:, None], Y.astype(bool), Y.astype(np.float32), Y.astype(np.uint8)])
def test_labels_of_two_classes_have_any_type(labels):
    potential = iso.from_nnx(linear(1), "binary_cross_entropy", (X, labels))
    weights = {"kernel": jnp.asarray(KERNELS[0, 0]), "bias": jnp.asarray(BIASES[0, 0])}
    logits = (X @ KERNELS[0, 0] + BIASES[0, 0])[:, 0].astype(np.float64)
    expected = np.sum(np.log1p(np.exp(logits)) - Y * logits)
    assert float(potential.full_energy(weights)) == pytest.approx(expected, rel=1e-5)


def test_a_sigmoid_ahead_of_the_loss_is_told():
    ended = lambda rngs: nnx.Sequential(nnx.Linear(3, 1, rngs=rngs), nnx.sigmoid)  # noqa: E731
    with pytest.warns(UserWarning, match=r"ends in a sigmoid, .*between 0.5 and 0.73\. Return the logit") as told:
        iso.from_nnx(ended, "binary_cross_entropy", (X, Y))
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iso.from_nnx(lambda rngs: nnx.Sequential(nnx.Linear(3, 1, rngs=rngs), nnx.tanh), "binary_cross_entropy", (X, Y))


@pytest.mark.parametrize("loss", ["squared_error", iso.networks.Gaussian(0.5)])
def test_targets_whose_axes_stand_in_another_order_are_refused(loss):
    """Written as one vector, (3, 2) and (2, 3) have the same length, and other numbers beside one another."""
    targets = RNG.standard_normal((40, 3, 2)).astype(np.float32)
    module = lambda rngs: nnx.Sequential(nnx.Linear(3, 6, rngs=rngs), lambda x: x.reshape(-1, 2, 3))  # noqa: E731
    with pytest.raises(ValueError, match=r"`data` must be .* targets of shape \(40, 2, 3\); got shape \(40, 3, 2\)"):
        sampled(iso.from_nnx(module, loss, (X, targets)))
    weights = {"kernel": jnp.zeros((3, 6)), "bias": jnp.zeros(6)}
    flat, whole = (iso.from_nnx(linear(6), loss, (X, rows)) for rows in (targets.reshape(40, 6), targets))
    assert float(flat.full_energy(weights)) == pytest.approx(float(whole.full_energy(weights)))


@pytest.mark.parametrize("name", ["prepare", "log_prior"])
@pytest.mark.parametrize("library", ["nnx", "linen"])
def test_functions_of_one_argument_are_checked_when_the_potential_is_built(name, library):
    module: Any = linear(2) if library == "nnx" else linen.Dense(2)
    build: Any = getattr(iso, f"from_{library}")
    for wrong, message in ((lambda a, b: a, "one argument; got one of \\(a, b\\)"), (3, "a function; got 3")):
        with pytest.raises(ValueError, match=f"`{name}` must be a function.*{message.removeprefix('a function')}"):
            build(module, "cross_entropy", (X, Y), **{name: wrong})
    with pytest.raises(ValueError, match=r"`data` must be a pair \(inputs, targets\); got ndarray"):
        build(module, "cross_entropy", X)


def test_extreme_logits_have_finite_losses():
    found = binary_cross_entropy(jnp.array([[200.0], [-200.0]]), jnp.array([0, 1]))
    np.testing.assert_allclose(found, [200.0, 200.0])
