"""Standard errors of weighted means, from sums over stretches of the chains; and when there is none to be had.

The mean is m = sum w f / sum w. Its error is that of the sum of z = w (f - m) / sum w, to first order. Every chain is cut into
stretches, at least 128 in all, whose sums of z are merged in pairs until neighbors are no longer correlated: from then on
stretches count as independent, and m has the variance B / (B - 1) sum_b z_b^2 (1 + 2 r), with r the correlation of neighbors that
is left. Correlations are taken around the mean of all chains, so that chains which stay apart are seen to be correlated with
themselves, and end as one stretch each.

Chains that see the same mini-batches share their noise, of which the mean of many chains has as much as one chain. The variance is
then multiplied by F = sum_b (sum of z_b over the chains of a run)^2 / sum of all z_b^2, where that is above 1. For independent
chains it is 1 on average.

The error has 2 / (1 / k - 1 / B) degrees of freedom, B - 1 at most, where k = (sum z_b^2)^2 / sum z_b^4 stretches carry it: a third
of them if sums are normal, which gives B, and fewer for functions with a heavy tail, whose intervals are wider.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from isotherm.foundation import checks
from isotherm.foundation.checks import Check
from isotherm.run.agreement import MAX_STRETCHES, Stretches, drift_of, largest_r_hat, r_hat_of

# Neighbors with a correlation above this are merged. Larger values give errors that are too small for slow chains.
_MAX_CORRELATION = 0.15
# With fewer chains than this, chain by chain, an interval holds only if every chain has seen the distribution several times.
_MANY_CHAINS = 8
_DRAWS_PER_CHAIN = 5.0
# Of 128 stretches and more an excursion that happened once, and does not end within a stretch, leaves fewer than this to carry the
# error. Heavy tails alone seldom do.
_MIN_CARRYING, _MIN_DEGREES = 8.0, 3.0
# Ratios above this are not worth their digits.
_MAX_DEVIATIONS = 1e3
# Of a square: what rounding leaves of a variance.
_ROUNDING = 1e-13
# The least that the largest weight must be over the mean for a tail to be looked for.
_MIN_OVER_MEAN = 10.0


class Errors(NamedTuple):
    """What stretches say of K means.

    Attributes:
        mean: shape (K,).
        std_error: shape (K,); NaN where it is unknown.
        degrees: of freedom of the error, shape (K,).
        effective_draws: independent draws of equal weight with that error, shape (K,).
        spread: the standard deviation under the weights, shape (K,).
        r_hat: shape (K,); NaN for a single draw.
        is_slow: whether too few autocorrelation times fit into the run, shape (K,).
        is_rare: whether a few stretches carry the error, shape (K,).
        tail: the shape of the weights' tail; see `tail_shape`.
        num_halves: the parts that R-hat compares.
        draws_within: effective draws if all chains had one mean, shape (K,).
        drift: how far the first eighth of the run is from its second half, in standard deviations of that, shape (K,); zero where
            chance explains it.
        is_single: whether one draw has all of the weight.
        is_constant: whether all draws have the same value, shape (K,).
    """

    mean: np.ndarray
    std_error: np.ndarray
    degrees: np.ndarray
    effective_draws: np.ndarray
    spread: np.ndarray
    r_hat: np.ndarray
    is_slow: np.ndarray
    is_rare: np.ndarray
    tail: float
    num_halves: int
    draws_within: np.ndarray
    drift: np.ndarray
    is_single: bool
    is_constant: np.ndarray


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def errors_of(stretches: Stretches, log_weights: np.ndarray, num_sharing: int = 1) -> Errors:
    """Means, standard errors and R-hat; the weights say whether any error can be known.

    So many chains in turn share their noise.
    """
    # A chain without weight, such as one that diverged, says nothing of the error.
    has_weight = stretches.mass.sum(axis=1) > 0
    runs = np.arange(len(has_weight))[has_weight] // num_sharing
    stretches = Stretches(*(part[has_weight] for part in stretches))
    mass, first, second = stretches
    total = mass.sum()
    mean = first.sum(axis=(0, 1)) / total
    square = second.sum(axis=(0, 1)) / total
    spread = np.maximum(square - mean**2, 0.0)
    # Where all values are the same the sums leave rounding.
    is_constant = spread <= _ROUNDING * square
    spread = np.where(is_constant, 0.0, spread)
    sums = (first - mean * mass[..., None]) / total
    num_chains = len(mass)
    variance, merged, carrying = _variance(sums)
    is_alone = merged == num_chains
    if num_sharing > 1:
        of_runs = np.stack([sums[runs == run].sum(axis=0) for run in np.unique(runs)])
        factor = np.sum(of_runs**2, axis=(0, 1)) / np.sum(sums**2, axis=(0, 1))
        is_shared = factor > 1.0
        variance = np.where(is_shared, factor * variance, variance)
        merged = np.where(is_shared, np.minimum(merged, of_runs.shape[0] * of_runs.shape[1]), merged)
        carrying = np.where(is_shared, np.minimum(carrying, _num_carrying(of_runs)), carrying)
    degrees = np.minimum(merged - 1.0, 2.0 / np.maximum(1.0 / carrying - 1.0 / merged, 1e-12))
    # A single draw has no spread, which says nothing of how far it is from the mean.
    is_single = np.count_nonzero(np.isfinite(log_weights)) == 1
    effective = np.where((variance > 0) & ~is_constant, spread / variance, np.nan)
    of_chain = np.sum(sums, axis=1, keepdims=True) * (mass / np.sum(mass, axis=1, keepdims=True))[..., None]
    draws_within = spread / np.maximum(_variance(sums - of_chain, is_centered=True)[0], 1e-300)
    draws_of_drift = np.fmin(draws_within, effective) if num_sharing > 1 else draws_within
    is_slow = is_alone & (effective < _DRAWS_PER_CHAIN * num_chains) & (num_chains < _MANY_CHAINS)
    is_slow |= (merged - 1 < _MIN_DEGREES) & (variance > 0)
    is_rare = (degrees < _MIN_DEGREES) & (variance > 0) & ~is_slow
    if mass.size >= MAX_STRETCHES:
        is_rare |= _num_carrying(sums) < _MIN_CARRYING
    tail = tail_that_matters(log_weights)
    is_slow, is_rare = is_slow & ~is_constant, is_rare & ~is_constant
    is_unknown = is_slow | is_rare | (tail > checks.HEAVY_TAIL.limit) | is_constant
    known = np.where(is_unknown, np.nan, np.sqrt(variance))
    return Errors(
        mean,
        known,
        degrees,
        effective,
        np.sqrt(spread),
        np.where(is_constant, np.nan, r_hat_of(stretches, np.count_nonzero(np.isfinite(log_weights)) / num_chains)),
        is_slow,
        is_rare,
        tail,
        num_chains * min(mass.shape[1], 2),
        draws_within,
        np.where(is_constant, 0.0, drift_of(stretches, draws_of_drift)),
        is_single,
        is_constant,
    )


def _num_carrying(sums: np.ndarray) -> np.ndarray:
    """How many stretches carry the error, shape (K,); all where there is none."""
    square, fourth = np.sum(sums**2, axis=(0, 1)), np.sum(sums**4, axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(fourth > 0, square**2 / fourth, sums.shape[0] * sums.shape[1])


def _variance(sums: np.ndarray, is_centered: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The variance of the mean, the number of stretches once they are merged, and how many carry it; each of shape (K,).

    Where the mean of every chain was taken off, which lowers squares and correlations, two stretches of a chain stay apart.
    """
    number = sums.shape[2]
    variance, merged, carrying = np.zeros(number), np.zeros(number), np.zeros(number)
    is_open = np.ones(number, bool)
    while True:
        num_chains, length = sums.shape[:2]
        count = num_chains * length
        square = np.sum(sums**2, axis=(0, 1))
        products = np.sum(sums[:, 1:] * sums[:, :-1], axis=(0, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            # Around a mean that was estimated from the same sums, correlations are too low by about one over their number.
            together = 1.0 / max(length - 1, 1) if is_centered else 1.0 / count
            correlation = np.where(square > 0, products / square * length / max(length - 1, 1), 0.0) + together
        is_last = length == 1 or (is_centered and length == 2)
        is_done = is_open & ((correlation < _MAX_CORRELATION) | is_last)
        left = 0.0 if is_last else 2.0 * np.maximum(correlation, 0.0) * (length - 1) / length
        freed = length / max(length - 1, 1) if is_centered else count / max(count - 1, 1)
        variance[is_done] = (square * (1.0 + left))[is_done] * freed
        merged[is_done], carrying[is_done] = count, _num_carrying(sums)[is_done]
        is_open &= ~is_done
        if is_last:
            return variance, merged, carrying
        sums = sums.reshape(num_chains, length // 2, 2, number).sum(axis=2)


def tail_that_matters(log_weights: np.ndarray) -> float:
    """The shape of the tail, or minus infinity where no weight is far above the mean, whatever a fit to the largest says."""
    flat = _finite(log_weights)
    is_flat = flat.size == 0 or _MIN_OVER_MEAN * np.exp(flat - flat.max()).mean() > 1.0
    return -np.inf if is_flat else tail_shape(log_weights)


def tail_shape(log_weights: np.ndarray) -> float:
    """The shape k of a generalized Pareto tail of the weights; above 0.5 they have no variance. Minus infinity for bounded ones.

    Reference:
        Zhang and Stephens 2009, equations (4) to (8); the use for weights is Vehtari et al. 2024, "Pareto smoothed importance
        sampling".
    """
    flat = _finite(log_weights)
    number = int(min(len(flat) / 5, 3 * np.sqrt(len(flat))))
    if number < 5:
        return -np.inf
    tail = np.sort(np.partition(flat, len(flat) - number - 1)[-number - 1 :])
    excess = np.exp(tail[1:] - tail[-1]) - np.exp(tail[0] - tail[-1])
    if excess[number // 4] <= 0 or np.ptp(tail) < 1e-6:
        return -np.inf
    grid = 30 + int(np.sqrt(number))
    slopes = 1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    slopes = slopes / (3 * excess[int(number / 4 + 0.5) - 1]) + 1 / excess[-1]
    shapes = np.mean(np.log1p(-slopes[:, None] * excess), axis=1)
    likelihood = number * (np.log(-slopes / shapes) - shapes - 1)
    weights = np.exp(likelihood - likelihood.max())
    slope = np.sum(slopes * weights) / weights.sum()
    return float(np.mean(np.log1p(-slope * excess)))


def checks_of(errors: Errors) -> tuple[Check, ...]:
    """Errors that are unknown, and chains that disagree."""
    return tuple([*_unknown_errors(errors), *_chains(errors)])


def _unknown_errors(errors: Errors) -> Iterator[Check]:
    if errors.is_single:
        yield checks.ONE_DRAW.found("The error is unknown: there is one draw.", "Run longer, or lower `thinning`.")
    elif np.any(errors.is_constant):
        yield checks.CONSTANT.found(
            "The error is unknown: all draws have the same value. An event that no draw met, or that all met, may still be "
            "possible or uncertain."
        )
    if errors.tail > checks.HEAVY_TAIL.limit:
        yield checks.HEAVY_TAIL.found(
            f"The error is unknown: the weights have so heavy a tail (shape {errors.tail:.2f}, above {checks.HEAVY_TAIL.limit}) "
            "that a single further draw may change the mean.",
            "Flatten less (`zeta`), or reweight to a temperature closer to that of the run.",
            shape=errors.tail,
        )
    if np.any(errors.is_slow):
        number = float(np.min(errors.effective_draws[errors.is_slow]))
        yield checks.SLOW_MIXING.found(
            f"The error is unknown: chains mix so slowly that the run holds about {number:.2g} independent draws.",
            f"Run longer, or use {_MANY_CHAINS} chains or more.",
            effective_draws=number,
        )
    if np.any(errors.is_rare):
        yield checks.RARE_EVENTS.found(
            "The error is unknown: a few stretches of the run carry it, such as the one visit to a mode or to the far tail of what "
            "is averaged.",
            "Run longer, until such rare events have happened many times.",
        )


def _chains(errors: Errors) -> Iterator[Check]:
    """Chains that have not converged, that disagree, or that are too short to tell."""
    if np.any(errors.drift):
        worst = float(np.max(np.abs(errors.drift)))
        far = f"up to {worst:.2g}" if worst < _MAX_DEVIATIONS else "many"
        yield checks.DRIFT.found(
            f"The start of the run is {far} standard deviations from its end: chains were still in their burn-in.",
            "Lengthen the burn-in (`burn_in`), or run longer.",
            deviations=worst,
        )
    r_hat = np.nan_to_num(errors.r_hat, nan=1.0)
    is_apart = r_hat > largest_r_hat(errors.num_halves, errors.draws_within)
    if np.any(is_apart):
        worst = float(np.max(r_hat[is_apart]))
        shown = f"{worst:.3g}" if worst < _MAX_DEVIATIONS else "above 1,000"
        yield checks.DISAGREEMENT.found(
            f"Chains disagree with one another (R-hat {shown}): each has seen a part of the distribution only.",
            "Errors hold if their starts follow the distribution.",
            r_hat=worst,
        )
    is_short = (r_hat > checks.LARGE_R_HAT.limit) & ~is_apart
    if np.any(is_short):
        worst, number = float(np.max(r_hat[is_short])), float(np.min(errors.draws_within[is_short]))
        yield checks.LARGE_R_HAT.found(
            f"R-hat is {worst:.3g}, with about {number:.0f} effective draws: too few to tell whether chains agree.",
            "Run longer.",
            r_hat=worst,
            effective_draws=number,
        )
        return
    is_few = np.isfinite(errors.std_error) & (errors.std_error > 0)
    is_few &= errors.effective_draws < checks.FEW_DRAWS.limit
    if np.any(is_few):
        number = float(np.min(errors.effective_draws[is_few]))
        text = f"There are only about {number:.0f} effective draws: errors are rough."
        yield checks.FEW_DRAWS.found(text, "Run longer.", effective_draws=number)


def _finite(log_weights: np.ndarray) -> np.ndarray:
    flat = np.asarray(log_weights, np.float64).reshape(-1)
    return flat[np.isfinite(flat)]


def half_width(std_error: np.ndarray, degrees: np.ndarray, level: float) -> np.ndarray:
    """Half the width of an interval; NaN where the error is unknown."""
    return std_error * scipy.special.stdtrit(np.maximum(degrees, 1.0), 0.5 + 0.5 * level)
