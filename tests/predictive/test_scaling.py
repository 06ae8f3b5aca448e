"""Temperature scaling: known temperatures are found, weights count, the likelihood never falls, refusals."""

import numpy as np
import pytest
from scipy.special import softmax

from isotherm.predictive.classification import fit_temperature, nll, scaled


def labeled(num, seed=0):
    """True logits and labels drawn from their softmax."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(num, 4))
    p = softmax(logits, axis=1)
    return logits, (rng.random((num, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(0, 3)


@pytest.mark.parametrize("truth", [0.3, 2.5, 40.0])
def test_finds_the_temperature(truth):
    logits, labels = labeled(20_000)
    # The standard error is about 1 %: 10 % off would be seen.
    assert fit_temperature(truth * logits, labels) == pytest.approx(truth, rel=0.04)
    # Scaling is exact, whatever the sample.
    assert fit_temperature(truth * logits, labels) == pytest.approx(truth * fit_temperature(logits, labels), rel=1e-9)


def test_log_probabilities_serve_as_logits():
    logits, labels = labeled(500)
    shifted = np.log(softmax(3 * logits, axis=1))
    assert fit_temperature(shifted, labels) == pytest.approx(fit_temperature(3 * logits, labels), rel=1e-9)


def test_weights_by_hand():
    # Right with share r = 6/8 or 7/8, saying softmax(4 / T): T = 4 / log(r / (1 - r)).
    logits, labels = np.tile([4.0, 0.0], (4, 1)), [0, 0, 0, 1]
    assert fit_temperature(logits, labels) == pytest.approx(4 / np.log(3), rel=1e-9)
    assert fit_temperature(logits, labels, [1.0, 2.0, 4.0, 1.0]) == pytest.approx(4 / np.log(7), rel=1e-9)


def test_never_worse_than_no_scaling():
    rng = np.random.default_rng(1)
    for _ in range(20):
        logits, labels = rng.normal(size=(30, 3)) * rng.exponential(3.0), rng.integers(3, size=30)
        weights = rng.exponential(size=30)
        fitted = fit_temperature(logits, labels, weights)
        best = nll(scaled(logits, fitted), labels, weights)
        for other in np.clip([1.0, 0.9 * fitted, 1.1 * fitted], 1e-3, 1e3):
            assert best <= nll(scaled(logits, other), labels, weights) + 1e-12


def test_bounds():
    logits = np.array([[3.0, 0.0], [-1.0, 1.0]])
    assert fit_temperature(logits, [0, 1]) == 1e-3
    assert fit_temperature(1e4 * logits, [0, 1]) == 1e-3
    assert fit_temperature(logits, [1, 0]) == 1e3
    assert fit_temperature(np.ones((2, 2)), [0, 1]) == 1.0
    # The example that is not separated has no weight.
    assert fit_temperature(logits, [0, 0], [1.0, 0.0]) == 1e-3


def test_scaled_by_hand():
    # Square roots of 9 : 1 are 3 : 1.
    np.testing.assert_allclose(scaled(np.log([[[9.0, 1.0]]]), 2.0), [[[0.75, 0.25]]])
    np.testing.assert_allclose(scaled([[1e5, 0.0]], 1.0), [[1.0, 0.0]])


def test_refusals():
    logits, labels = labeled(5)
    with pytest.raises(ValueError, match=r"`logits` must be of shape \(examples, classes\); got shape \(4,\)"):
        scaled(logits[0], 1.0)
    with pytest.raises(ValueError, match=r"`logits` must be .* got shape \(1, 5, 4\). Average the draws first"):
        fit_temperature(logits[None], labels)
    with pytest.raises(ValueError, match=r"`logits` must be finite; got -inf. Clip probabilities"):
        fit_temperature([[-np.inf, 0.0]], [1])
    with pytest.raises(ValueError, match="`labels` must be integers"):
        fit_temperature(logits, labels * 1.0)
    with pytest.raises(ValueError, match=r"`weights` must be of shape \(5,\)"):
        fit_temperature(logits, labels, [1.0])
    with pytest.raises(ValueError, match=r"`temperature` must be a finite real number above 0; got 0.0. Take it from"):
        scaled(logits, 0.0)
