"""Scores and intervals of the predicted distributions of real targets, for an ensemble of weighted draws.

Draw s predicts `means[s, i]` for example i, with the noise standard deviation sigma_si where `noise` is given: one number, one
for each draw, or one for each draw and example. The prediction for example i is the mixture sum_s v_s N(means[s, i],
sigma_si^2), or the draws themselves without noise. `draw_weights` are importance weights of the draws, of any sum (v_s is their
share); `weights` are weights w_i of the examples. Both are non-negative, and equal if None. Draws of weight zero are not read,
so that a diverged chain may hold NaN.

Differs from the thesis: it reports `rmse` of the weighted mean on the UCI data; the other scores are additions.
"""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_real, refuse
from isotherm.predictive.checks import as_numbers, check_values, check_weights

# Halves the bracket of a quantile to below the rounding of float64.
NUM_BISECTIONS = 60
# Sums of equal weights reach a level such as 19/20 only up to rounding.
ROUNDING = 1e-12


@checked_call(prefix="iso.predictive.")
def predictive_mean(means: ArrayLike, draw_weights: ArrayLike | None = None) -> np.ndarray:
    """Weighted mean over draws, sum_s v_s means[s, i], one for each example.

    Example:
        >>> predictive_mean([[0.0, 2.0], [4.0, 6.0]], draw_weights=[3.0, 1.0])
        array([1., 3.])
    """
    mu, v, _ = _draws(means, draw_weights)
    return v @ mu


@checked_call(prefix="iso.predictive.")
def rmse(mean: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Root of the weighted mean over examples of (mean_i - y_i)^2.

    Example:
        >>> rmse([1.0, 3.0], [1.0, 1.0], weights=[3.0, 1.0])
        1.0
    """
    mean = check_values("mean", mean)
    errors = mean - check_values("targets", targets, len(mean))
    return float(np.sqrt(np.average(errors**2, weights=check_weights("weights", weights, len(mean)))))


@checked_call(prefix="iso.predictive.")
def gaussian_nll(
    means: ArrayLike,
    noise: ArrayLike,
    targets: ArrayLike,
    draw_weights: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> float:
    """Negative log density of the mixture: the weighted mean over examples of -log sum_s v_s N(y_i; means_si, sigma_si^2).

    Example:
        >>> round(gaussian_nll([[0.0], [0.0]], [1.0, 2.0], [0.0], draw_weights=[1.0, 3.0]), 4)
        1.3889
    """
    if noise is None:
        remedy = "Draws without noise have no density; `crps` scores them."
        refuse("noise", "the standard deviation of a target", "None", remedy)
    mu, v, sd = _draws(means, draw_weights, noise)
    y = check_values("targets", targets, mu.shape[1])
    w = check_weights("weights", weights, len(y))
    log_density = -0.5 * ((y - mu) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return float(np.average(-np.logaddexp.reduce(log_density + np.log(v)[:, None], axis=0), weights=w))


@checked_call(prefix="iso.predictive.")
def crps(
    means: ArrayLike,
    targets: ArrayLike,
    draw_weights: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    noise: ArrayLike | None = None,
) -> float:
    """Continuous ranked probability score: the weighted mean over examples of the integral of (F_i(x) - 1{y_i <= x})^2 dx.

    It is E|X - y| - E|X - X'| / 2 for independent X and X' from the predicted distribution, in the unit of the targets, and the
    absolute error when all draws agree. Both forms are exact:

        draws:    E|X - X'| / 2 = sum_s V_s (1 - V_s) (x_(s+1) - x_(s)), sorted, with V_s the weight up to x_(s)
        mixture:  E|X| = A(mu, sigma^2) = 2 sigma phi(mu / sigma) + mu (2 Phi(mu / sigma) - 1) for every normal part

    The first costs O(S log S) for S draws and each example, the second O(S^2).

    Example:
        >>> crps([[0.0], [2.0]], [1.0]), round(crps([[0.0]], [0.0], noise=1.0), 4)
        (0.5, 0.2337)

    Reference:
        Gneiting and Raftery 2007, equation (21); Grimit et al. 2006.
    """
    mu, v, sd = _draws(means, draw_weights, noise)
    y = check_values("targets", targets, mu.shape[1])
    w = check_weights("weights", weights, len(y))
    if noise is None:
        order = np.argsort(mu, axis=0)
        total = np.cumsum(v[order], axis=0)[:-1]
        spread = np.sum(total * (1 - total) * np.diff(np.take_along_axis(mu, order, axis=0), axis=0), axis=0)
        return float(np.average(v @ np.abs(mu - y) - spread, weights=w))
    spread = np.zeros_like(y)
    # Each draw against the draws before it: no array is larger than `means`.
    for s in range(len(v)):
        pairs = _absolute(mu[:s] - mu[s], np.hypot(sd[:s], sd[s]))
        spread += v[s] * (v[:s] @ pairs) + 0.5 * v[s] ** 2 * _absolute(0.0, np.sqrt(2) * sd[s])
    return float(np.average(v @ _absolute(y - mu, sd) - spread, weights=w))


@checked_call(prefix="iso.predictive.")
def intervals(
    means: ArrayLike, level: float = 0.9, draw_weights: ArrayLike | None = None, noise: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Central prediction intervals: the quantiles (1 - level)/2 and (1 + level)/2 of each example's predicted distribution.

    The quantile q is the least x with F(x) >= q: one of the draws, or found by bisection where noise is given.

    Args:
        means: shape (draws, examples).
        level: probability inside, above 0 and below 1.
        draw_weights: importance weights of the draws.
        noise: standard deviations; without it the intervals are those of the mean and too narrow for new targets.

    Example:
        >>> low, high = intervals([[0.0], [1.0], [2.0], [3.0]], level=0.5)
        >>> low, high
        (array([0.]), array([2.]))
    """
    level = check_real("level", level, "0.9 is usual.", above=0.0, below=1.0)
    mu, v, sd = _draws(means, draw_weights, noise)
    low, high = (_quantile(mu, v, None if noise is None else sd, q) for q in ((1 - level) / 2, (1 + level) / 2))
    return low, high


@checked_call(prefix="iso.predictive.")
def coverage(low: ArrayLike, high: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Share of targets inside their intervals, ends included: sum_i w_i 1{low_i <= y_i <= high_i} / sum_i w_i.

    Example:
        >>> coverage([0.0, 0.0], [1.0, 1.0], [1.0, 2.0], weights=[3.0, 1.0])
        0.75
    """
    low = check_values("low", low)
    high, y = check_values("high", high, len(low)), check_values("targets", targets, len(low))
    if (low > high).any():
        refuse("low", "at most `high`", f"{low[low > high][0]} above {high[low > high][0]}", "Swap the two ends.")
    return float(np.average((low <= y) & (y <= high), weights=check_weights("weights", weights, len(low))))


def _absolute(mu: np.ndarray | float, sd: np.ndarray) -> np.ndarray:
    """E|X| of a normal X: A(mu, sigma^2) of Grimit et al. 2006."""
    z = mu / sd
    return sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * z**2) + mu * (2 * scipy.special.ndtr(z) - 1)


def _quantile(mu: np.ndarray, v: np.ndarray, sd: np.ndarray | None, q: float) -> np.ndarray:
    if sd is None:
        order = np.argsort(mu, axis=0)
        place = np.argmax(np.cumsum(v[order], axis=0) >= q - ROUNDING, axis=0)
        return np.take_along_axis(mu, np.take_along_axis(order, place[None], axis=0), axis=0)[0]
    # A mixture's quantile lies between the smallest and the largest quantile of its parts.
    parts = mu + sd * scipy.special.ndtri(q)
    low, high = parts.min(axis=0), parts.max(axis=0)
    for _ in range(NUM_BISECTIONS):
        middle = (low + high) / 2
        is_below = v @ scipy.special.ndtr((middle - mu) / sd) < q
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return (low + high) / 2


def _draws(means: ArrayLike, draw_weights: ArrayLike | None, noise: ArrayLike | None = 1.0) -> tuple[np.ndarray, ...]:
    """Means, normalized weights, and standard deviations of the draws with weight."""
    mu = as_numbers("means", means)
    if mu.ndim != 2 or not mu.size:
        remedy = "Put the draws first. Of outputs with an axis of one take `outputs[..., 0]`."
        refuse("means", "of shape (draws, examples)", f"shape {mu.shape}", remedy)
    v = check_weights("draw_weights", draw_weights, len(mu))
    sd = as_numbers("noise", 1.0 if noise is None else noise)
    if sd.shape not in ((), (len(mu),), mu.shape):
        rule = f"a number or of shape ({len(mu)},) or {mu.shape}"
        refuse("noise", rule, f"shape {sd.shape}", "Give the standard deviation of each draw.")
    sd = np.broadcast_to(sd[:, None] if sd.ndim == 1 else sd, mu.shape)
    mu, sd, v = mu[v > 0], sd[v > 0], v[v > 0] / v.sum()
    if not np.isfinite(mu).all():
        remedy = "Give diverged draws the weight zero."
        refuse("means", "finite in draws that have weight", mu[~np.isfinite(mu)][0], remedy)
    if not (np.isfinite(sd).all() and (sd > 0).all()):
        refuse("noise", "finite and above 0", f"smallest {sd.min()}", "Give a standard deviation, not its logarithm.")
    return mu, v, sd
