"""Weighted averages of networks: by hand, from a disk, and with every weight honored."""

import dataclasses

import jax
import numpy as np
import pytest
from flax import nnx

import isotherm as iso
from isotherm.predictive import Ensemble, outputs_of_draws, predict

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 3)).astype(np.float32)
Y = RNG.integers(0, 4, 50).astype(np.int32)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    potential = iso.networks.from_nnx(
        lambda rngs: nnx.Linear(3, 4, rngs=rngs), "cross_entropy", (X, Y), batch_size=25, weight_decay=1.0
    )
    folder = tmp_path_factory.mktemp("runs") / "run"
    run = iso.sample(
        potential,
        iso.icsgld(0.02, partition=(50.0, 80.0, 10), gain=0.2, zeta=2.0, field="theta"),
        num_steps=200,
        thinning=20,
        num_chains=2,
        init=potential.init,
        out=folder,
        progress=False,
    )
    return potential, run, folder


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def by_hand(run):
    """Logits (S, N, C) and normalized weights (S,) of all draws."""
    kernel, bias = (np.asarray(run.draws[name], np.float64) for name in ("kernel", "bias"))
    logits = np.einsum("nd,csdk->csnk", X, kernel) + bias[..., None, :]
    weights = np.exp(np.asarray(run.log_weights, np.float64))
    return logits.reshape(-1, 50, 4), weights.reshape(-1) / weights.sum()


def test_probabilities_and_logits_are_averaged_with_weights(sampled):
    potential, run, _ = sampled
    logits, weights = by_hand(run)
    assert weights.max() > 2 * weights.min()
    found = predict(run, potential, X, batch_size=16)
    np.testing.assert_allclose(found.probabilities, np.einsum("s,snc->nc", weights, softmax(logits)), atol=1e-5)
    own = -(softmax(logits) * np.log(softmax(logits))).sum(axis=-1)
    np.testing.assert_allclose(found.mean_entropy, weights @ own, atol=1e-5)
    np.testing.assert_allclose(found.mutual_information, found.entropy - weights @ own, atol=1e-5)
    by_logits = predict(run, potential, X, by="logits").probabilities
    np.testing.assert_allclose(by_logits, softmax(np.einsum("s,snc->nc", weights, logits)), atol=1e-5)
    assert np.abs(by_logits - found.probabilities).max() > 1e-4
    # The control: equal weights give something else.
    equal = dataclasses.replace(run, log_weights=np.zeros_like(np.asarray(run.log_weights)))
    assert np.abs(predict(equal, potential, X).probabilities - found.probabilities).max() > 1e-3


def test_every_network_is_judged_alone(sampled):
    potential, run, _ = sampled
    logits, _ = by_hand(run)
    found = predict(run, potential, X, labels=Y, batch_size=16)
    assert found.draw_accuracy is not None
    assert found.draw_nll is not None
    np.testing.assert_allclose(found.draw_accuracy, (logits.argmax(axis=-1) == Y).mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.draw_nll, -np.log(softmax(logits)[:, np.arange(50), Y]).mean(axis=1), rtol=1e-4)
    assert found.best_accuracy == pytest.approx((logits.argmax(axis=-1) == Y).mean(axis=1).max())


def test_draws_may_lie_on_a_disk(sampled):
    potential, run, folder = sampled
    stored = iso.load(folder)
    np.testing.assert_array_equal(predict(stored, potential, X).probabilities, predict(run, potential, X).probabilities)


def test_logits_are_scaled_before_they_are_averaged(sampled):
    potential, run, _ = sampled
    logits, weights = by_hand(run)
    found = predict(run, potential, X, scale=2.0).probabilities
    np.testing.assert_allclose(found, np.einsum("s,snc->nc", weights, softmax(logits / 2)), atol=1e-5)


def test_outputs_of_all_draws(sampled):
    potential, run, _ = sampled
    logits, weights = by_hand(run)
    outputs, found = outputs_of_draws(run, potential, X, batch_size=7)
    np.testing.assert_allclose(outputs, logits, atol=1e-4)
    np.testing.assert_allclose(found, weights, rtol=1e-5)


def test_draws_without_weight_are_not_evaluated(sampled):
    potential, run, _ = sampled
    log_weights = np.array(run.log_weights)
    log_weights[0] = -np.inf
    draws = jax.tree.map(
        lambda leaf: np.where(np.isfinite(log_weights[..., *[None] * (leaf.ndim - 2)]), leaf, np.nan), run.draws
    )
    found = predict(dataclasses.replace(run, draws=draws, log_weights=log_weights), potential, X)
    assert np.all(np.isfinite(found.probabilities))
    assert len(found.draw_weights) == 10


def test_wrong_input_is_refused(sampled):
    potential, run, _ = sampled
    with pytest.raises(ValueError, match="`by` must be one of"):
        predict(run, potential, X, by="votes")
    with pytest.raises(ValueError, match="`labels` must be given"):
        _ = predict(run, potential, X).best_accuracy
    with pytest.raises(ValueError, match="`scale` must be"):
        predict(run, potential, X, scale=0.0)


LABELS = {
    "too few": (Y[:25], r"`labels` must be integers of shape \(50,\); got shape \(25,\) of int32"),
    "too many": (np.tile(Y, 2), r"`labels` must be integers of shape \(50,\); got shape \(100,\)"),
    "one-hot": (np.eye(4)[Y], r"got shape \(50, 4\) of float64\. .* `labels.argmax\(-1\)`"),
    "a column": (Y[:, None], r"got shape \(50, 1\)"),
    "between classes": (Y + 0.4, r"got shape \(50,\) of float64"),
    "below zero": (np.where(Y == 2, -1, Y), r"`labels` must be in \[0, 4\); got -1 to 3. Number the classes from 0"),
    "from one": (Y + 1, r"`labels` must be in \[0, 4\); got 1 to 4"),
    "names": (np.array(list("abcd"))[Y], r"got shape \(50,\) of <U1"),
    "ragged": ([[0], [1, 2]], "`labels` must be integers of shape"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_that_are_none_of_the_classes_are_refused(sampled, name):
    potential, run, _ = sampled
    labels, message = LABELS[name]
    with pytest.raises(ValueError, match=message):
        predict(run, potential, X, labels=labels, batch_size=16)


@pytest.mark.parametrize("labels", [Y.astype(np.uint8), Y.tolist(), jax.numpy.asarray(Y)])
def test_labels_of_any_integer_type_are_taken(sampled, labels):
    potential, run, _ = sampled
    found, known = (predict(run, potential, X, labels=given).draw_nll for given in (labels, Y))
    np.testing.assert_array_equal(found, known)


def test_every_prediction_of_an_example_is_judged():
    """Two labels for each of 50 examples, in batches of 16 of which the last one is filled up."""
    pairs = np.stack([Y, (Y + 1) % 4], axis=1)
    module = lambda rngs: nnx.Sequential(nnx.Linear(3, 8, rngs=rngs), lambda x: x.reshape(*x.shape[:-1], 2, 4))  # noqa: E731

    def loss(outputs, labels):
        return iso.networks.cross_entropy(outputs, labels).sum(axis=1)

    potential = iso.from_nnx(module, loss, (X, pairs), batch_size=25, outputs="logits")
    run = iso.sample(potential, iso.sgld(1e-3), num_steps=4, progress=False)
    outputs, weights = outputs_of_draws(run, potential, X)
    found = predict(run, potential, X, labels=pairs, batch_size=16)
    assert found.draw_accuracy is not None
    assert found.draw_nll is not None
    np.testing.assert_allclose(found.draw_accuracy, (outputs.argmax(axis=-1) == pairs).mean(axis=(1, 2)), atol=1e-6)
    of_labels = np.take_along_axis(softmax(outputs), pairs[None, ..., None], axis=-1)
    np.testing.assert_allclose(found.draw_nll, -np.log(of_labels).mean(axis=(1, 2, 3)), rtol=1e-4)
    mean = np.einsum("s,sntc->ntc", weights, softmax(outputs))
    np.testing.assert_allclose(found.entropy, -(mean * np.log(mean)).sum(axis=-1), atol=1e-5)
    assert found.mutual_information.shape == (50, 2)
    with pytest.raises(ValueError, match=r"`labels` must be integers of shape \(50, 2\); got shape \(50,\)"):
        predict(run, potential, X, labels=Y)


def test_classes_that_are_ruled_out_have_no_entropy():
    mask = np.array([0.0, 0.0, -np.inf, 0.0], np.float32)
    module = lambda rngs: nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), lambda x: x + mask)  # noqa: E731
    potential = iso.from_nnx(module, "cross_entropy", (X, np.where(Y == 2, 0, Y)), batch_size=25)
    draws = {"layers.0.kernel": np.zeros((1, 2, 3, 4), np.float32), "layers.0.bias": np.zeros((1, 2, 4), np.float32)}
    found = predict(Ensemble(draws, (), np.zeros((1, 2))), potential, X)
    np.testing.assert_allclose(found.probabilities, np.tile([1 / 3, 1 / 3, 0, 1 / 3], (50, 1)), atol=1e-6)
    np.testing.assert_allclose(found.mean_entropy, np.log(3), atol=1e-5)


def test_inputs_and_draws_that_do_not_suit_the_network_are_refused(sampled):
    potential, run, _ = sampled
    holed = X.copy()
    holed[[3, 7]] = np.nan
    with pytest.raises(ValueError, match=r"`inputs` must be .*; got NaN for 2 of 50 examples, the first .* number 3\."):
        predict(run, potential, holed)
    for function in (predict, outputs_of_draws):
        with pytest.raises(ValueError, match="`inputs` must be at least one example; got 0 examples"):
            function(run, potential, X[:0])
        with pytest.raises(ValueError, match="`batch_size` must be an integer of at least 1"):
            function(run, potential, X, batch_size=0)
        other = iso.from_nnx(lambda rngs: nnx.Linear(3, 5, rngs=rngs), "cross_entropy", (X, Y))
        with pytest.raises(
            ValueError, match=r"`run` must be draws of .* shape \(5,\) at bias; got shape \(4,\) at bias"
        ):
            function(run, other, X)
    kernel, bias = np.zeros((2, 3, 3, 4)), np.zeros((2, 3, 4))
    for draws, log_weights, message in (
        ({"kernel": kernel}, np.zeros((2, 3)), r"shape \(4,\) at bias; got nothing at bias"),
        (
            {"kernel": kernel, "bias": bias},
            np.zeros(6),
            r"axes \(chain, draw, \.\.\.\); got log weights of shape \(6,\)",
        ),
        ({"kernel": kernel, "bias": bias}, np.zeros((3, 2)), r"leaves of shape \(3, 2, \.\.\.\); got a leaf of"),
        ({"kernel": kernel, "bias": bias}, np.full((2, 3), np.nan), "`log_weights` must be finite for some draw"),
    ):
        with pytest.raises(ValueError, match=message):
            predict(Ensemble(draws, (), log_weights), potential, X)
