"""Weighted averages of networks: by hand, from a disk, and with every weight honored."""

import dataclasses

import jax
import numpy as np
import pytest
from flax import nnx

import isotherm as iso
from isotherm.predictive import outputs_of_draws, predict

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 3)).astype(np.float32)
Y = RNG.integers(0, 4, 50).astype(np.int32)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    potential = iso.potentials.from_nnx(
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
