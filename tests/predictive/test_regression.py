"""Predicted distributions of real targets: quadrature, closed forms, scikit-learn, weights, refusals."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn import metrics

from isotherm.predictive import regression as rg

RNG = np.random.default_rng(0)
MEANS = RNG.normal(1.0, 2.0, size=(6, 4))
NOISE = RNG.uniform(0.3, 2.0, size=(6, 4))
TARGETS = RNG.normal(1.0, 2.0, size=4)
V = RNG.exponential(size=6)
W = RNG.exponential(size=4)


def integrated(cdf, target, breaks):
    """The score by its definition, with the integrand cut where it jumps."""
    points = np.sort(np.concatenate([[-40.0, 40.0, target], breaks]))
    return sum(quad(lambda x: (cdf(x) - (target <= x)) ** 2, a, b, limit=200)[0] for a, b in pairwise(points))


def test_rmse():
    # Errors 0, 3 and 4.
    assert rg.rmse([1.0, 2.0, 3.0], [1.0, 5.0, -1.0]) == pytest.approx(np.sqrt(25 / 3))
    assert rg.rmse([1.0, 2.0, 3.0], [1.0, 5.0, -1.0], [1.0, 2.0, 5.0]) == pytest.approx(np.sqrt((18 + 80) / 8))
    square = metrics.mean_squared_error(TARGETS, MEANS[0], sample_weight=W)
    assert rg.rmse(MEANS[0], TARGETS, W) == pytest.approx(np.sqrt(square), rel=1e-12)


def test_predictive_mean():
    np.testing.assert_allclose(rg.predictive_mean(MEANS), MEANS.mean(axis=0))
    np.testing.assert_allclose(rg.predictive_mean([[0.0, 1.0], [8.0, 1.0]], [1.0, 3.0]), [6.0, 1.0])


@pytest.mark.parametrize("noise", [0.7, NOISE[:, 0], NOISE])
def test_nll_is_that_of_the_mixture(noise):
    sd = np.broadcast_to(noise[:, None] if np.ndim(noise) == 1 else noise, MEANS.shape)
    losses = -np.log(V / V.sum() @ norm.pdf(TARGETS, MEANS, sd))
    assert rg.gaussian_nll(MEANS, noise, TARGETS, V, W) == pytest.approx(W @ losses / W.sum(), rel=1e-12)
    assert rg.gaussian_nll(MEANS, noise, TARGETS, V) == pytest.approx(losses.mean(), rel=1e-12)
    assert abs(rg.gaussian_nll(MEANS, noise, TARGETS) - losses.mean()) > 1e-2


def test_nll_far_away_does_not_overflow():
    # -log N(100; 0, 1) = 5000 + log(2 pi) / 2, and half of the weight is on that draw; the other is farther still.
    found = rg.gaussian_nll([[0.0], [-900.0]], 1.0, [100.0])
    assert found == pytest.approx(5000 + 0.5 * np.log(2 * np.pi) + np.log(2), rel=1e-14)


def test_crps_of_draws_is_the_integral():
    v = V / V.sum()
    known = [integrated(lambda x, i=i: v @ (MEANS[:, i] <= x), TARGETS[i], MEANS[:, i]) for i in range(4)]
    assert rg.crps(MEANS, TARGETS, V, W) == pytest.approx(W @ known / W.sum(), rel=1e-8)
    assert rg.crps(MEANS, TARGETS, V) == pytest.approx(np.mean(known), rel=1e-8)
    assert abs(rg.crps(MEANS, TARGETS) - np.mean(known)) > 1e-2


def test_crps_of_draws_by_hand():
    # Draws 0, 1, 4 of shares 1/2, 1/4, 1/4 against 3: E|X - y| = 1.5 + 0.5 + 0.25 = 2.25;
    # pairs: 1/8 * 1 + 1/8 * 4 + 1/16 * 3 = 13/16; 36/16 - 13/16.
    assert rg.crps([[1.0], [0.0], [4.0]], [3.0], [1.0, 2.0, 1.0]) == pytest.approx(23 / 16)
    assert rg.crps([[5.0]], [3.0]) == 2.0
    # The example at 5 scores 3, with share 1/4.
    means = [[1.0, 5.0], [0.0, 5.0], [4.0, 5.0]]
    assert rg.crps(means, [3.0, 2.0], [1.0, 2.0, 1.0], [3.0, 1.0]) == pytest.approx(0.75 * 23 / 16 + 0.25 * 3)


@pytest.mark.parametrize("noise", [0.7, NOISE[:, 0], NOISE])
def test_crps_of_the_mixture_is_the_integral(noise):
    sd = np.broadcast_to(noise[:, None] if np.ndim(noise) == 1 else noise, MEANS.shape)
    v = V / V.sum()
    known = [
        integrated(lambda x, i=i: v @ norm.cdf(x, MEANS[:, i], sd[:, i]), TARGETS[i], MEANS[:, i]) for i in range(4)
    ]
    assert rg.crps(MEANS, TARGETS, V, W, noise) == pytest.approx(W @ known / W.sum(), rel=1e-8)
    assert rg.crps(MEANS, TARGETS, V, noise=noise) == pytest.approx(np.mean(known), rel=1e-8)
    assert abs(rg.crps(MEANS, TARGETS, noise=noise) - np.mean(known)) > 1e-2


def test_crps_of_one_gaussian():
    # sigma (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)) with z = (y - mu) / sigma: Gneiting and Raftery 2007.
    mu, sd, y = 1.0, 0.5, 1.8
    z = (y - mu) / sd
    known = sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert rg.crps([[mu]], [y], noise=sd) == pytest.approx(known, rel=1e-12)
    assert rg.crps([[mu]] * 3, [y], draw_weights=[1.0, 2.0, 3.0], noise=sd) == pytest.approx(known, rel=1e-12)


def test_small_noise_gives_the_scores_of_draws():
    assert rg.crps(MEANS, TARGETS, V, W, 1e-9) == pytest.approx(rg.crps(MEANS, TARGETS, V, W), rel=1e-7)
    for plain, noisy in zip(rg.intervals(MEANS, 0.7, V), rg.intervals(MEANS, 0.7, V, 1e-9), strict=True):
        np.testing.assert_allclose(noisy, plain, atol=1e-7)


def test_intervals_of_draws():
    rng = np.random.default_rng(1)
    means, v = rng.normal(size=(50, 7)), rng.exponential(size=50)
    for weights in (v, None):
        found = rg.intervals(means, 0.8, weights)
        known = np.quantile(
            means, [0.1, 0.9], axis=0, method="inverted_cdf", weights=v if weights is not None else None
        )
        np.testing.assert_array_equal(found, known)
    # By hand: shares 1/10, 6/10, 3/10 at 0, 1, 2. F is 0.1, 0.7, 1, and 0.05 and 0.95 are reached at 0 and 2.
    draws = [[2.0], [0.0], [1.0]]
    assert np.ravel(rg.intervals(draws, 0.9, [3.0, 1.0, 6.0])).tolist() == [0.0, 2.0]
    assert np.ravel(rg.intervals(draws, 0.4, [3.0, 1.0, 6.0])).tolist() == [1.0, 1.0]
    assert np.ravel(rg.intervals(draws, 0.4)).tolist() == [0.0, 2.0]


def test_twenty_equal_draws_reach_their_level():
    low, high = rg.intervals(np.arange(20.0)[:, None], level=0.9)
    assert (low[0], high[0]) == (0.0, 18.0)


def test_intervals_of_the_mixture():
    v = V / V.sum()
    low, high = rg.intervals(MEANS, 0.8, V, NOISE)
    np.testing.assert_allclose(v @ norm.cdf(low, MEANS, NOISE), 0.1, rtol=1e-10)
    np.testing.assert_allclose(v @ norm.cdf(high, MEANS, NOISE), 0.9, rtol=1e-10)
    assert np.abs(np.subtract(rg.intervals(MEANS, 0.8, None, NOISE), (low, high))).min() > 1e-3
    one = rg.intervals([[1.0]], 0.95, noise=2.0)
    np.testing.assert_allclose(np.ravel(one), [1 - 2 * 1.959963985, 1 + 2 * 1.959963985], rtol=1e-8)


def test_coverage():
    # Inside, at the lower end, at the upper end, above.
    low, high, targets = np.zeros(4), np.ones(4), [0.5, 0.0, 1.0, 1.5]
    assert rg.coverage(low, high, targets) == 0.75
    assert rg.coverage(low, high, targets, [1.0, 1.0, 2.0, 4.0]) == 0.5


def test_targets_of_the_model_are_covered():
    rng = np.random.default_rng(2)
    means, part = rng.normal(scale=3.0, size=(5, 20_000)), rng.choice(5, p=V[:5] / V[:5].sum(), size=20_000)
    targets = means[part, np.arange(20_000)] + 0.5 * rng.normal(size=20_000)
    share = rg.coverage(*rg.intervals(means, 0.9, V[:5], 0.5), targets)
    # The standard error is 0.002.
    assert abs(share - 0.9) < 0.0085


def test_draws_of_no_weight_are_not_read():
    bad, v = np.concatenate([MEANS, np.full((1, 4), np.nan)]), np.append(V, 0.0)
    noise = np.append(NOISE[:, 0], np.nan)
    np.testing.assert_allclose(rg.predictive_mean(bad, v), rg.predictive_mean(MEANS, V))
    assert rg.crps(bad, TARGETS, v) == pytest.approx(rg.crps(MEANS, TARGETS, V))
    assert rg.gaussian_nll(bad, noise, TARGETS, v) == pytest.approx(rg.gaussian_nll(MEANS, noise[:-1], TARGETS, V))


def scores(means=MEANS, noise: object = 1.0, targets=TARGETS, v=V, w=W):
    yield lambda: rg.gaussian_nll(means, noise, targets, v, w)  # pyright: ignore[reportArgumentType]
    yield lambda: rg.crps(means, targets, v, w, noise)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"means": MEANS[0]}, r"`means` must be of shape \(draws, examples\); got shape \(4,\). Put the draws first"),
        ({"means": MEANS * np.nan}, "`means` must be finite in draws that have weight; got nan. Give diverged draws"),
        ({"noise": NOISE[0]}, r"`noise` must be a number or of shape \(6,\) or \(6, 4\); got shape \(4,\)"),
        ({"noise": 0.0}, "`noise` must be finite and above 0; got smallest 0.0"),
        ({"noise": np.nan}, "`noise` must be finite and above 0; got smallest nan"),
        ({"targets": TARGETS[:2]}, r"`targets` must be of shape \(4,\); got shape \(2,\)"),
        ({"targets": TARGETS * np.inf}, "`targets` must be finite"),
        ({"v": V[:2]}, r"`draw_weights` must be of shape \(6,\); got shape \(2,\)"),
        ({"v": -V}, "`draw_weights` must be finite and non-negative"),
        ({"w": W[:2]}, r"`weights` must be of shape \(4,\); got shape \(2,\)"),
        ({"w": 0 * W}, "`weights` must be .* with a positive sum"),
    ],
)
def test_scores_refuse(change, message):
    for score in scores(**change):
        with pytest.raises(ValueError, match=message):
            score()


def test_others_refuse():
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="`level` must be a finite real number above 0 and below 1"):
            rg.intervals(MEANS, level)
    with pytest.raises(ValueError, match=r"`draw_weights` must be of shape \(6,\)"):
        rg.intervals(MEANS, draw_weights=[1.0])
    with pytest.raises(ValueError, match=r"`draw_weights` must be of shape \(6,\)"):
        rg.predictive_mean(MEANS, [1.0])
    with pytest.raises(ValueError, match=r"`mean` must be of shape \(examples,\); got shape \(6, 4\)"):
        rg.rmse(MEANS, TARGETS)
    with pytest.raises(ValueError, match=r"`targets` must be of shape \(4,\)"):
        rg.rmse(MEANS[0], [1.0])
    with pytest.raises(ValueError, match=r"`weights` must be of shape \(4,\)"):
        rg.rmse(MEANS[0], TARGETS, [1.0])
    with pytest.raises(ValueError, match=r"`low` must be at most `high`; got 1.0 above 0.0. Swap the two ends"):
        rg.coverage([1.0], [0.0], [0.5])
    with pytest.raises(ValueError, match=r"`high` must be of shape \(1,\)"):
        rg.coverage([1.0], [2.0, 2.0], [0.5])
    with pytest.raises(ValueError, match=r"`weights` must be of shape \(1,\)"):
        rg.coverage([0.0], [1.0], [0.5], [1.0, 1.0])
