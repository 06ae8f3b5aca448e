"""Telling outliers by a score: hand-computed cases, scikit-learn on random ones with ties, weights, refusals."""

import numpy as np
import pytest
from sklearn import metrics

from isotherm.predictive.ood import auroc, entropy_cdf, fpr95


def random_case(seed=0):
    """Scores rounded to tenths, so that many are equal."""
    rng = np.random.default_rng(seed)
    inside, outside = rng.normal(size=150).round(1), rng.normal(0.7, 1.2, size=90).round(1)
    return inside, outside, rng.exponential(size=150), rng.exponential(size=90)


@pytest.mark.parametrize("weighted", [(False, False), (True, False), (False, True), (True, True)])
def test_auroc_agrees_with_scikit_learn(weighted):
    inside, outside, v, w = random_case()
    v, w = (array if flag else None for array, flag in zip((v, w), weighted, strict=True))
    weights = np.concatenate([np.ones(150) if v is None else v, np.ones(90) if w is None else w])
    is_outside = np.repeat([0, 1], [150, 90])
    known = metrics.roc_auc_score(is_outside, np.concatenate([inside, outside]), sample_weight=weights)
    assert auroc(inside, outside, v, w) == pytest.approx(known, rel=1e-12)


def test_auroc_by_hand():
    # Outside 1 beats inside 0 and ties with 1: 1/2 (1 + 1/2). Outside 3 beats both.
    assert auroc([1.0, 0.0], [1.0, 3.0]) == pytest.approx((0.75 + 1) / 2)
    # Inside shares 3/4 at 1 and 1/4 at 0: outside 1 gets 1/4 + 3/8. Outside shares 1/5 and 4/5.
    assert auroc([1.0, 0.0], [1.0, 3.0], [3.0, 1.0], [2.0, 8.0]) == pytest.approx(0.2 * 0.625 + 0.8)
    assert auroc([0.0, 1.0], [2.0]) == 1.0
    assert auroc([2.0], [0.0, 1.0]) == 0.0
    assert auroc([1.0], [1.0]) == 0.5


def test_fpr95_by_hand():
    # 19 of the 20 inside scores 0..19 are at most 18; of the outside ones 17, 18, 18.5, 30 two are.
    inside, outside = np.arange(20.0)[::-1], [30.0, 18.0, 18.5, 17.0]
    assert fpr95(inside, outside) == 0.5
    assert fpr95(inside, outside, outside_weights=[1.0, 5.0, 1.0, 3.0]) == 0.8
    # Weight 81 at score 19 makes shares of 1/100, so that 95 % is reached there only.
    assert fpr95(inside, outside, np.where(inside == 19, 81.0, 1.0)) == 0.75
    assert fpr95(inside, outside, level=0.9) == 0.25
    assert fpr95(inside, outside, level=1.0) == 0.75


def test_fpr95_agrees_with_the_roc_curve():
    inside, outside, v, w = random_case(1)
    # Inliers are positive, and a low score speaks for them.
    is_inside = np.repeat([1, 0], [150, 90])
    fpr, tpr, _ = metrics.roc_curve(
        is_inside, -np.concatenate([inside, outside]), sample_weight=np.concatenate([v, w]), drop_intermediate=False
    )
    for level in (0.5, 0.8, 0.95):
        assert fpr95(inside, outside, v, w, level=level) == pytest.approx(fpr[np.argmax(tpr >= level)], rel=1e-12)


def test_cdf_by_hand():
    # Shares 1/8 at 3, 2/8 + 4/8 at 1, 1/8 at 0.
    values, weights = [3.0, 1.0, 0.0, 1.0], [1.0, 2.0, 1.0, 4.0]
    grid, cdf = entropy_cdf(values, weights=weights)
    np.testing.assert_array_equal(grid, [0, 1, 3])
    np.testing.assert_allclose(cdf, [1 / 8, 7 / 8, 1])
    np.testing.assert_allclose(entropy_cdf(values)[1], [1 / 4, 3 / 4, 1])
    # Right-continuous: the jump at 1 is in F(1) and not just below.
    below = np.nextafter(1.0, 0.0)
    np.testing.assert_allclose(entropy_cdf(values, [-1.0, below, 1.0, 9.0], weights)[1], [0, 1 / 8, 7 / 8, 1])


@pytest.mark.parametrize("rate", [auroc, fpr95])
def test_rates_refuse(rate):
    with pytest.raises(ValueError, match=r"`inside` must be of shape \(examples,\); got shape \(1, 2\)"):
        rate([[1.0, 2.0]], [1.0])
    with pytest.raises(ValueError, match=r"`outside` must be of shape \(examples,\); got shape \(0,\)"):
        rate([1.0], [])
    with pytest.raises(ValueError, match="`outside` must be finite; got inf"):
        rate([1.0], [np.inf])
    with pytest.raises(ValueError, match=r"`inside_weights` must be of shape \(1,\)"):
        rate([1.0], [1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="`outside_weights` must be finite and non-negative"):
        rate([1.0], [1.0], [1.0], [-1.0])


def test_others_refuse():
    for level in (0.0, 1.1):
        with pytest.raises(ValueError, match="`level` must be a finite real number above 0 and at most 1"):
            fpr95([1.0], [1.0], level=level)
    with pytest.raises(ValueError, match="`values` must be finite; got nan"):
        entropy_cdf([np.nan])
    with pytest.raises(ValueError, match="`grid` must be finite; got inf"):
        entropy_cdf([1.0], [np.inf])
    with pytest.raises(ValueError, match=r"`weights` must be of shape \(1,\)"):
        entropy_cdf([1.0], weights=[1.0, 2.0])
