"""Scores of class probabilities: hand-computed cases, scikit-learn on random ones, weights, refusals."""

import numpy as np
import pytest
from sklearn import metrics

from isotherm.predictive import classification as cl

# Three examples, three classes. Top classes 0, 1, 1; right, wrong, right.
P = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 1.0, 0.0]])
Y = np.array([0, 2, 1])
W = np.array([1.0, 2.0, 5.0])


def random_case(num_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(num_classes), 200)
    return p, rng.integers(num_classes, size=200), rng.exponential(size=200)


@pytest.mark.parametrize("num_classes", [2, 5])
def test_agrees_with_scikit_learn(num_classes):
    p, y, w = random_case(num_classes)
    classes = list(range(num_classes))
    for weights in (None, w):
        right = metrics.accuracy_score(y, p.argmax(axis=1), sample_weight=weights)
        assert cl.accuracy(p, y, weights) == pytest.approx(right, rel=1e-12)
        loss = metrics.log_loss(y, p, sample_weight=weights, labels=classes)
        assert cl.nll(p, y, weights) == pytest.approx(loss, rel=1e-12)
        half = metrics.brier_score_loss(y, p, sample_weight=weights, labels=classes, scale_by_half=True)  # pyright: ignore[reportArgumentType]
        assert cl.brier(p, y, weights) == pytest.approx(2 * half, rel=1e-12)


def test_brier_of_two_classes_is_twice_that_of_one():
    p, y, w = random_case(2)
    assert cl.brier(p, y, w) == pytest.approx(2 * metrics.brier_score_loss(y, p[:, 1], sample_weight=w), rel=1e-12)


def test_accuracy_by_hand():
    assert cl.accuracy(P, Y) == pytest.approx(2 / 3)
    assert cl.accuracy(P, Y, W) == 6 / 8
    # The first of two equal classes is the prediction.
    assert cl.accuracy([[0.5, 0.5], [0.5, 0.5]], [0, 1], [3.0, 1.0]) == 0.75


def test_nll_by_hand():
    # Labels have 1/2, 1/8 and 1: one, three and no times log 2.
    assert cl.nll(P, Y) == pytest.approx(4 / 3 * np.log(2))
    assert cl.nll(P, Y, W) == pytest.approx((1 + 2 * 3) / 8 * np.log(2))
    assert cl.nll(P, Y, is_sum=True) == pytest.approx(4 * np.log(2))
    assert cl.nll(P, Y, W, is_sum=True) == pytest.approx(7 * np.log(2))
    assert cl.nll([[1.0, 0.0]], [1]) == pytest.approx(30 * np.log(10))


def test_brier_by_hand():
    # 1/4 + 1/16 + 1/16 = 3/8; 1/64 + 9/16 + 49/64 = 43/32; 0.
    assert cl.brier(P, Y) == pytest.approx((3 / 8 + 43 / 32) / 3)
    assert cl.brier(P, Y, W) == pytest.approx((3 / 8 + 2 * 43 / 32) / 8)


def test_brier_ood_by_hand():
    # Sums of squares: 1/4 + 1/16 + 1/16 = 3/8; 1/64 + 9/16 + 1/64 = 19/32; 1. Each over three classes.
    assert cl.brier_ood(P) == pytest.approx((3 / 8 + 19 / 32 + 1) / 9)
    assert cl.brier_ood(P, W) == pytest.approx((3 / 8 + 2 * 19 / 32 + 5) / 24)
    assert cl.brier_ood(np.full((7, 100), 0.01)) == pytest.approx(1e-4)


def test_calibration_by_hand():
    # Four bins. Confidence 0.5 is in (0.25, 0.5], 0.75 in (0.5, 0.75], 1 in (0.75, 1]; (0, 0.25] is empty.
    found = cl.calibration(P, Y, num_bins=4, weights=W)
    np.testing.assert_allclose(found.edges, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(found.mass, [0, 1 / 8, 2 / 8, 5 / 8])
    np.testing.assert_allclose(found.confidence, [np.nan, 0.5, 0.75, 1])
    np.testing.assert_allclose(found.accuracy, [np.nan, 1, 0, 1])
    # Gaps 0.5, 0.75, 0 with shares 1/8, 2/8, 5/8.
    assert found.error == pytest.approx(0.25)
    assert found.largest == pytest.approx(0.75)
    assert cl.calibration(P, Y, num_bins=4).error == pytest.approx((0.5 + 0.75) / 3)
    # One bin: accuracy 6/8 against confidence (0.5 + 2 * 0.75 + 5) / 8 = 7/8.
    assert cl.calibration(P, Y, num_bins=1, weights=W).error == pytest.approx(1 / 8)


def test_calibration_agrees_with_a_loop_over_bins():
    p, y, w = random_case(3, seed=1)
    top, error, gaps = p.max(axis=1), 0.0, []
    for low, high in zip(np.arange(15) / 15, np.arange(1, 16) / 15, strict=True):
        chosen = (top > low) & (top <= high)
        if chosen.any():
            right = np.average(p[chosen].argmax(axis=1) == y[chosen], weights=w[chosen])
            gaps.append(abs(right - np.average(top[chosen], weights=w[chosen])))
            error += w[chosen].sum() / w.sum() * gaps[-1]
    found = cl.calibration(p, y, weights=w)
    assert found.error == pytest.approx(error, rel=1e-12)
    assert found.largest == pytest.approx(max(gaps), rel=1e-12)
    assert found.error != pytest.approx(cl.calibration(p, y).error, rel=0.05)


def test_bins_of_no_weight_are_empty():
    found = cl.calibration(P, Y, num_bins=4, weights=[0.0, 0.0, 2.0])
    np.testing.assert_allclose(found.accuracy, [np.nan, np.nan, np.nan, 1])
    assert (found.error, found.largest) == (0.0, 0.0)


def test_entropy_by_hand():
    # 1/2 log 2 + 2/4 log 4 = 3/2 log 2; 2/8 log 8 + 3/4 log(4/3); 0.
    np.testing.assert_allclose(cl.entropy(P), [1.5 * np.log(2), 0.75 * np.log(2) + 0.75 * np.log(4 / 3), 0], atol=1e-15)


def test_mutual_information_is_never_negative():
    assert cl.mutual_information([[0.5, 0.5]], [0.5])[0] == pytest.approx(np.log(2) - 0.5)
    assert cl.mutual_information([[0.5, 0.5]], [np.log(2) + 1e-12])[0] == 0.0


def test_ensemble_by_hand():
    # Example 0: draws [1, 0] and [0, 1] of shares 1/4 and 3/4, each certain, so all entropy is disagreement.
    # Example 1: both flat, so none is.
    draws = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]
    found = cl.ensemble_uncertainty(draws, draw_weights=[2.0, 6.0])
    np.testing.assert_allclose(found.probabilities, [[0.25, 0.75], [0.5, 0.5]])
    mixed = 0.25 * np.log(4) + 0.75 * np.log(4 / 3)
    np.testing.assert_allclose(found.entropy, [mixed, np.log(2)])
    np.testing.assert_allclose(found.mutual_information, [mixed, 0], atol=1e-15)
    np.testing.assert_allclose(cl.ensemble_uncertainty(draws).probabilities, 0.5)


def test_ensemble_agrees_with_direct_sums():
    rng = np.random.default_rng(2)
    draws, w = rng.dirichlet(np.ones(4), (6, 10)), rng.exponential(size=6)
    mean = np.einsum("s,snc->nc", w / w.sum(), draws)
    unsure = np.einsum("s,sn->n", w / w.sum(), -np.sum(draws * np.log(draws), axis=2))
    found = cl.ensemble_uncertainty(draws, w)
    np.testing.assert_allclose(found.probabilities, mean, rtol=1e-12)
    np.testing.assert_allclose(found.mutual_information, -np.sum(mean * np.log(mean), axis=1) - unsure, rtol=1e-10)


def test_draws_of_no_weight_are_not_read():
    draws = np.array([P, np.full_like(P, np.nan)])
    np.testing.assert_allclose(cl.ensemble_uncertainty(draws, [2.0, 0.0]).probabilities, P)


def test_summary_has_the_weighted_scores():
    p, y, w = random_case()
    assert cl.summarize(p, y, w) == {
        "accuracy": cl.accuracy(p, y, w),
        "nll": cl.nll(p, y, w),
        "brier": cl.brier(p, y, w),
        "ece": cl.calibration(p, y, weights=w).error,
    }
    plain = cl.summarize(p, y)
    assert all(abs(value - plain[name]) > 1e-3 for name, value in cl.summarize(p, y, w).items())


def test_integer_weights_repeat_examples():
    p, y, _ = random_case()
    counts = np.random.default_rng(3).integers(0, 4, len(y))
    repeated = cl.summarize(np.repeat(p, counts, axis=0), np.repeat(y, counts))
    assert cl.summarize(p, y, counts) == pytest.approx(repeated, rel=1e-12)


def test_probabilities_in_single_precision_are_accepted():
    p, y, _ = random_case()
    assert cl.nll(p.astype(np.float32), y.astype(np.uint8)) == pytest.approx(cl.nll(p, y), rel=1e-5)
    assert cl.entropy([[1.000005, -0.000005]])[0] == 0.0


SCORES = [cl.accuracy, cl.nll, cl.brier, cl.calibration, cl.summarize]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(
    ("p", "y", "w", "message"),
    [
        (P[0], Y, None, r"`probabilities` must be of shape \(examples, classes\); got shape \(3,\)"),
        (np.zeros((0, 3)), Y[:0], None, r"`probabilities` must be of shape .* got shape \(0, 3\)"),
        (P * 2 - 0.5, Y, None, r"`probabilities` must be finite and in \[0, 1\]; got values in \[-0.5, 1.5\]"),
        (P * np.nan, Y, None, r"`probabilities` must be finite and in \[0, 1\].*softmax"),
        (P * 0.99, Y, None, "`probabilities` must be rows that sum to 1; got a row of sum 0.99"),
        (P, Y[:2], None, r"`labels` must be integers of shape \(3,\); got shape \(2,\)"),
        (P, Y * 1.0, None, r"`labels` must be integers of shape \(3,\); got shape \(3,\) of float64"),
        (P, Y + 1, None, r"`labels` must be in \[0, 3\); got 1 to 3. Number the classes from 0"),
        (P, Y - 1, None, r"`labels` must be in \[0, 3\); got -1 to 1"),
        (P, Y, W[:2], r"`weights` must be of shape \(3,\); got shape \(2,\)"),
        (P, Y, W - 2, "`weights` must be finite and non-negative with a positive sum; got smallest -1.0"),
        (P, Y, W * 0, "`weights` must be .* sum 0.0. Subtract the largest log weight"),
        (P, Y, W * np.inf, "`weights` must be finite"),
    ],
)
def test_scores_refuse(score, p, y, w, message):
    with pytest.raises(ValueError, match=message):
        score(p, y, weights=w)


def test_others_refuse():
    with pytest.raises(ValueError, match=r"`num_bins` must be an integer of at least 1; got 0. 15 is usual"):
        cl.calibration(P, Y, num_bins=0)
    with pytest.raises(ValueError, match="`probabilities` must be rows that sum to 1"):
        cl.entropy(P / 2)
    with pytest.raises(ValueError, match=r"`weights` must be of shape \(3,\)"):
        cl.brier_ood(P, W[:2])
    with pytest.raises(ValueError, match="`probabilities` must be rows that sum to 1"):
        cl.brier_ood(P / 2)
    with pytest.raises(ValueError, match=r"`mean_entropy` must be of shape \(3,\); got shape \(2,\)"):
        cl.mutual_information(P, [0.0, 0.0])
    with pytest.raises(ValueError, match=r"`mean_entropy` must be finite; got nan. Leave out"):
        cl.mutual_information(P, [0.0, np.nan, 0.0])
    with pytest.raises(ValueError, match=r"`probabilities_of_draws` must be of shape \(draws, examples, classes\)"):
        cl.ensemble_uncertainty(P)
    with pytest.raises(ValueError, match="`probabilities_of_draws` must be rows that sum to 1"):
        cl.ensemble_uncertainty([P, P / 2])
    with pytest.raises(ValueError, match=r"`draw_weights` must be of shape \(2,\)"):
        cl.ensemble_uncertainty([P, P], [1.0])
    with pytest.raises(ValueError, match="`draw_weights` must be finite and non-negative"):
        cl.ensemble_uncertainty([P, P], [1.0, -1.0])
    with pytest.raises(ValueError, match=r"`draw_weights` must be .* got none"):
        cl.ensemble_uncertainty(np.zeros((0, 3, 3)))
