"""How well a score separates examples like the training data (inside) from outliers (outside), which should have higher scores.

Differs from the thesis: it shows only the distribution of entropies; the two rates are additions.
"""

import numpy as np
from numpy.typing import ArrayLike

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_real
from isotherm.predictive.checks import check_values, check_weights

# Sums of equal weights reach a level such as 19/20 only up to rounding.
ROUNDING = 1e-12


@checked_call(prefix="iso.predictive.")
def auroc(
    inside: ArrayLike,
    outside: ArrayLike,
    inside_weights: ArrayLike | None = None,
    outside_weights: ArrayLike | None = None,
) -> float:
    """Area under the ROC curve: P(outside score > inside score) + P(equal) / 2.

    One half is chance, one is perfect separation. It costs O(n log n).

    Args:
        inside: scores of examples like the training data, such as their predictive entropies.
        outside: scores of outliers, which should be higher.
        inside_weights: non-negative weights of the inside examples; equal if None.
        outside_weights: the same for the outside examples.

    Example:
        >>> auroc([0.0, 1.0], [1.0, 2.0], outside_weights=[1.0, 3.0])
        0.9375

    Reference:
        Hendrycks and Gimpel 2017.
    """
    low, v, high, w = checked_sides(inside, outside, inside_weights, outside_weights)
    order = np.argsort(low)
    total = np.concatenate([[0.0], np.cumsum(v[order])])
    below, upto = (total[np.searchsorted(low[order], high, side)] for side in ("left", "right"))
    return float(np.average((below + upto) / 2, weights=w) / total[-1])


@checked_call(prefix="iso.predictive.")
def fpr95(
    inside: ArrayLike,
    outside: ArrayLike,
    inside_weights: ArrayLike | None = None,
    outside_weights: ArrayLike | None = None,
    level: float = 0.95,
) -> float:
    """Share of outliers that are accepted when 95 % of the inliers are accepted.

    The positives are the inliers. An example is accepted when its score is at most t, the least inside score with P(inside
    score <= t) >= level. Returned is the false positive rate P(outside score <= t): zero is best. Authors who call the outliers
    positive report another number under the same name.

    Args:
        inside: scores of examples like the training data.
        outside: scores of outliers, which should be higher.
        inside_weights: non-negative weights of the inside examples; equal if None.
        outside_weights: the same for the outside examples.
        level: share of inliers to accept, above 0 and at most 1.

    Example:
        >>> fpr95([0.0, 1.0, 2.0, 9.0], [1.5, 3.0, 4.0, 5.0], level=0.75)
        0.25

    Reference:
        Liang et al. 2018.
    """
    level = check_real("level", level, "0.95 is usual.", above=0.0, maximum=1.0)
    low, v, high, w = checked_sides(inside, outside, inside_weights, outside_weights)
    scores, cdf = entropy_cdf(low, weights=v)
    threshold = scores[np.argmax(cdf >= level - ROUNDING)]
    return float(np.average(high <= threshold, weights=w))


@checked_call(prefix="iso.predictive.")
def entropy_cdf(
    values: ArrayLike, grid: ArrayLike | None = None, weights: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted empirical distribution function, right-continuous: F(x) = sum_i w_i 1{v_i <= x} / sum_i w_i.

    On outliers a good model has high entropies: the lower curve is better.

    Args:
        values: entropies or other scores, one for each example.
        grid: where to evaluate F; the sorted distinct values if None.
        weights: non-negative weights of the examples; equal if None.

    Returns:
        The grid and F on it.

    Example:
        >>> entropy_cdf([2.0, 0.0, 2.0, 1.0], grid=[0.5, 1.0, 3.0])
        (array([0.5, 1. , 3. ]), array([0.25, 0.5 , 1.  ]))
    """
    values = check_values("values", values)
    w = check_weights("weights", weights, len(values))
    points = np.unique(values) if grid is None else check_values("grid", grid)
    order = np.argsort(values)
    total = np.concatenate([[0.0], np.cumsum(w[order])])
    return points, total[np.searchsorted(values[order], points, side="right")] / total[-1]


def checked_sides(
    inside: ArrayLike, outside: ArrayLike, inside_weights: ArrayLike | None, outside_weights: ArrayLike | None
) -> tuple[np.ndarray, ...]:
    """Scores and weights of the inside examples, then of the outside ones."""
    low, high = check_values("inside", inside), check_values("outside", outside)
    v = check_weights("inside_weights", inside_weights, len(low))
    return low, v, high, check_weights("outside_weights", outside_weights, len(high))
