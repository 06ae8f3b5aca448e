"""Standard errors and R-hat of weighted means, from sums over stretches of the chains.

The mean is m = sum w f / sum w. Its error is that of the sum of z = w (f - m) / sum w, to first order. Every chain is cut into
stretches, at least 128 in all, whose sums of z are merged in pairs until neighbors are no longer correlated. Stretches then count
as independent, and m has the variance B / (B - 1) sum_b z_b^2 (1 + 2 r), with r the remaining correlation of neighbors.
Correlations are taken around the mean of all chains: chains that stay apart are correlated with themselves, and end as one stretch
each.

Chains that see the same mini-batches share their noise, which does not average out over chains. The variance is then multiplied by
F = sum_b (sum of z_b over the chains of a run)^2 / sum of all z_b^2, if that is above 1. For independent chains it is 1 on average.

The error has 2 / (1 / k - 1 / B) degrees of freedom, B - 1 at most, where k = (sum z_b^2)^2 / sum z_b^4 stretches carry it: B / 3
if sums are normal, which gives B degrees, and fewer for heavy tails, whose intervals are wider.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from isotherm.foundation import checks
from isotherm.foundation.checks import Check

MAX_STRETCHES = 128
# Per chain, if it has as many draws. Chains with shared noise need more: their error is that of sums over chains.
_MIN_STRETCHES, _MIN_SHARED = 8, 32
# Neighbors with a correlation above this are merged. Larger values underestimate the errors of slow chains.
_MAX_CORRELATION = 0.15
# With fewer chains than this, intervals hold only if every chain has so many effective draws.
_MANY_CHAINS = 8
_DRAWS_PER_CHAIN = 5.0
# An excursion that happened once leaves fewer stretches than this to carry the error. Heavy tails alone seldom do.
_MIN_CARRYING, _MIN_DEGREES = 8.0, 3.0
# Larger ratios are printed without digits.
_MAX_DEVIATIONS = 1e3
# Rounding error of a variance, relative to the mean square.
_ROUNDING = 1e-13
# The tail of the weights matters only if the largest is above this many means.
_MIN_OVER_MEAN = 10.0
# R-hat below this is never reported; the p-value at which chains differ.
_MIN_R_HAT, _P_VALUE = 1.01, 1e-3


class Stretches(NamedTuple):
    """Sums over C chains of S stretches each, for K functions."""

    mass: np.ndarray  # Of the weights, shape (C, S).
    first: np.ndarray  # Of weights times values, shape (C, S, K).
    second: np.ndarray  # Of weights times squared values, shape (C, S, K).


class Errors(NamedTuple):
    """Errors of K means; arrays have shape (K,)."""

    mean: np.ndarray
    std_error: np.ndarray  # NaN if unknown.
    degrees: np.ndarray  # Of freedom of the error.
    effective_draws: np.ndarray
    spread: np.ndarray  # The weighted standard deviation.
    r_hat: np.ndarray  # NaN for a single draw.
    is_slow: np.ndarray  # Whether too few autocorrelation times fit into the run.
    is_rare: np.ndarray  # Whether a few stretches carry the error.
    tail: float  # The shape of the tail of the weights.
    num_halves: int  # The half-chains that R-hat compares.
    draws_within: np.ndarray  # Effective draws if all chains had one mean.
    drift: np.ndarray  # From the second half to the first eighth, in standard deviations; zero if chance explains it.
    is_single: bool  # Whether one draw has all of the weight.
    is_constant: np.ndarray  # Whether all draws have the same value.


def num_stretches(num_chains: int, num_draws: int, shares_noise: bool = False) -> int:
    """Stretches of a chain: the smallest power of two that gives `MAX_STRETCHES` in all, and no more than there are draws."""
    number, least = 1, _MIN_SHARED if shares_noise else _MIN_STRETCHES
    while (num_chains * number < MAX_STRETCHES or number < least) and 2 * number <= num_draws:
        number *= 2
    return number


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def errors_of(stretches: Stretches, log_weights: np.ndarray, num_sharing: int = 1) -> Errors:
    """Means, standard errors and R-hat, where each `num_sharing` chains in turn share their noise."""
    # A chain of weight zero, such as one that diverged, does not count.
    has_weight = stretches.mass.sum(axis=1) > 0
    runs = np.arange(len(has_weight))[has_weight] // num_sharing
    stretches = Stretches(*(part[has_weight] for part in stretches))
    mass, first, second = stretches
    total = mass.sum()
    mean = first.sum(axis=(0, 1)) / total
    square = second.sum(axis=(0, 1)) / total
    spread = np.maximum(square - mean**2, 0.0)
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
    num_used = np.count_nonzero(np.isfinite(log_weights))
    is_slow, is_rare = is_slow & ~is_constant, is_rare & ~is_constant
    is_unknown = is_slow | is_rare | (tail > checks.HEAVY_TAIL.limit) | is_constant
    return Errors(
        mean=mean,
        std_error=np.where(is_unknown, np.nan, np.sqrt(variance)),
        degrees=degrees,
        effective_draws=effective,
        spread=np.sqrt(spread),
        r_hat=np.where(is_constant, np.nan, _r_hat(stretches, num_used / num_chains)),
        is_slow=is_slow,
        is_rare=is_rare,
        tail=tail,
        num_halves=num_chains * min(mass.shape[1], 2),
        draws_within=draws_within,
        drift=np.where(is_constant, 0.0, _drift(stretches, draws_of_drift)),
        is_single=num_used == 1,
        is_constant=is_constant,
    )


def half_width(std_error: np.ndarray, degrees: np.ndarray, level: float) -> np.ndarray:
    """Half the width of an interval; NaN if the error is unknown."""
    return std_error * scipy.special.stdtrit(np.maximum(degrees, 1.0), 0.5 + 0.5 * level)


def _num_carrying(sums: np.ndarray) -> np.ndarray:
    """How many stretches carry the error, shape (K,); all if it is zero."""
    square, fourth = np.sum(sums**2, axis=(0, 1)), np.sum(sums**4, axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(fourth > 0, square**2 / fourth, sums.shape[0] * sums.shape[1])


def _variance(sums: np.ndarray, is_centered: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The variance of the mean, the number of merged stretches, and how many carry the variance; each of shape (K,).

    Sums that are centered chain by chain, which lowers squares and correlations, keep two stretches per chain.
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
            # Centering by the estimated mean lowers correlations by about one over the number of sums.
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


def _r_hat(stretches: Stretches, draws_per_chain: float) -> np.ndarray:
    """sqrt((n - 1) / n * (1 + B / W)) over weighted halves of chains of n draws; NaN for halves of fewer than two draws.

    B is the variance of their means, W that within them: 1 on average for independent draws, however few.
    """
    num_chains, length, number = stretches.first.shape
    halves = min(length, 2)
    mass, first, second = (part.reshape(num_chains * halves, length // halves, -1).sum(axis=1) for part in stretches)
    draws = draws_per_chain / halves
    if len(mass) < 2 or draws < 2:
        return np.full(number, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = mass / mass.sum()
        mean = np.where(mass > 0, first / mass, 0.0)
        within = np.sum(share * np.where(mass > 0, second / mass - mean**2, 0.0), axis=0)
        between = np.sum(share * (mean - np.sum(share * mean, axis=0)) ** 2, axis=0)
        between *= len(mass) / (len(mass) - 1)
        squared = (1.0 - 1.0 / draws) * (1.0 + between / np.maximum(within, 0.0))
        return np.where(between > 0, np.sqrt(np.maximum(squared, 1.0)), 1.0)


def _max_r_hat(num_halves: int, draws_within: np.ndarray) -> np.ndarray:
    """The threshold of R-hat, shape (K,): at most 1.05, higher for many functions, lower for many draws.

    For chains that agree R-hat^2 - 1 is about a chi-square with a degree less than halves, over the effective draws. For few draws
    a larger value may be chance, which is a check of its own (`checks.LARGE_R_HAT`).
    """
    degrees = max(num_halves - 1, 1)
    chance = scipy.special.chdtri(degrees, _P_VALUE / len(draws_within))
    expected = chance / np.maximum(draws_within, 1.0)
    usual = (checks.DISAGREEMENT.limit**2 - 1.0) * chance / scipy.special.chdtri(degrees, _P_VALUE)
    return np.sqrt(1.0 + np.clip(2.0 * expected, _MIN_R_HAT**2 - 1.0, np.maximum(usual, expected)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _drift(stretches: Stretches, draws_within: np.ndarray) -> np.ndarray:
    """See `Errors.drift`."""
    length = stretches.mass.shape[1]
    if length < 2:
        return np.zeros(stretches.first.shape[2])
    early, late = (
        [part[:, span].sum(axis=(0, 1)) for part in stretches]
        for span in (slice(max(length // 8, 1)), slice(length // 2, None))
    )
    spread = np.sqrt(np.maximum(late[2] / late[0] - (late[1] / late[0]) ** 2, 1e-300))
    moved = (early[1] / early[0] - late[1] / late[0]) / spread
    total = stretches.mass.sum()
    error = np.sqrt((total / early[0] + total / late[0]) / np.maximum(draws_within, 1.0))
    limit = scipy.special.ndtri(1.0 - _P_VALUE / (2 * len(moved)))
    return np.where((np.abs(moved) > 1.5 * limit * error) & (np.abs(moved) > checks.DRIFT.limit), moved, 0.0)


def tail_that_matters(log_weights: np.ndarray) -> float:
    """`tail_shape`, or minus infinity if no weight is far above the mean."""
    flat = _finite(log_weights)
    is_flat = flat.size == 0 or _MIN_OVER_MEAN * np.exp(flat - flat.max()).mean() > 1.0
    return -np.inf if is_flat else tail_shape(flat)


def tail_shape(log_weights: np.ndarray) -> float:
    """The shape k of a generalized Pareto tail of the weights; above 0.5 they have no variance. Minus infinity for bounded ones.

    Reference:
        Zhang and Stephens 2009, equations (4) to (8); Vehtari et al. 2024, "Pareto smoothed importance sampling".
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


def _finite(log_weights: np.ndarray) -> np.ndarray:
    flat = np.asarray(log_weights, np.float64)
    return flat[np.isfinite(flat)]


def checks_of(errors: Errors) -> tuple[Check, ...]:
    """Errors that are unknown, and chains that disagree."""
    return tuple([*_unknown_errors(errors), *_chains(errors)])


def _unknown_errors(errors: Errors) -> Iterator[Check]:
    if errors.is_single:
        yield checks.ONE_DRAW.found("The error is unknown: there is one draw.", "Run longer, or lower `thinning`.")
    elif np.any(errors.is_constant):
        yield checks.CONSTANT.found(
            "The error is unknown: all draws have the same value. An event in none or all of the draws may still be possible or "
            "uncertain."
        )
    if errors.tail > checks.HEAVY_TAIL.limit:
        yield checks.HEAVY_TAIL.found(
            f"The error is unknown: the weights have so heavy a tail (shape {errors.tail:.2f}, above {checks.HEAVY_TAIL.limit}) "
            "that one more draw may change the mean.",
            "Flatten less (`zeta`), or reweight to a temperature closer to that of the run.",
            shape=errors.tail,
        )
    if np.any(errors.is_slow):
        number = float(np.min(errors.effective_draws[errors.is_slow]))
        text = f"The error is unknown: chains mix slowly, and the run holds about {number:.2g} independent draws."
        remedy = f"Run longer, or use {_MANY_CHAINS} chains or more."
        yield checks.SLOW_MIXING.found(text, remedy, effective_draws=number)
    if np.any(errors.is_rare):
        text = "The error is unknown: a few stretches of the run carry it, such as the one visit to a mode or to a far tail."
        yield checks.RARE_EVENTS.found(text, "Run longer, until such rare events have happened many times.")


def _chains(errors: Errors) -> Iterator[Check]:
    """Chains that have not converged, that disagree, or that are too short to tell."""
    if np.any(errors.drift):
        worst = float(np.max(np.abs(errors.drift)))
        far = f"up to {worst:.2g}" if worst < _MAX_DEVIATIONS else "many"
        text = f"The start of the run is {far} standard deviations from its end: chains were still in their burn-in."
        yield checks.DRIFT.found(text, "Lengthen the burn-in (`burn_in`), or run longer.", deviations=worst)
    r_hat = np.nan_to_num(errors.r_hat, nan=1.0)
    is_apart = r_hat > _max_r_hat(errors.num_halves, errors.draws_within)
    if np.any(is_apart):
        worst = float(np.max(r_hat[is_apart]))
        shown = f"{worst:.3g}" if worst < _MAX_DEVIATIONS else "above 1,000"
        text = f"Chains disagree (R-hat {shown}): each has seen only a part of the distribution."
        yield checks.DISAGREEMENT.found(text, "Errors hold if their starts follow the distribution.", r_hat=worst)
    is_short = (r_hat > checks.LARGE_R_HAT.limit) & ~is_apart
    if np.any(is_short):
        worst, number = float(np.max(r_hat[is_short])), float(np.min(errors.draws_within[is_short]))
        text = f"R-hat is {worst:.3g}, with about {number:.0f} effective draws: too few to tell whether chains agree."
        yield checks.LARGE_R_HAT.found(text, "Run longer.", r_hat=worst, effective_draws=number)
        return
    is_few = np.isfinite(errors.std_error) & (errors.std_error > 0)
    is_few &= errors.effective_draws < checks.FEW_DRAWS.limit
    if np.any(is_few):
        number = float(np.min(errors.effective_draws[is_few]))
        text = f"There are only about {number:.0f} effective draws: errors are rough."
        yield checks.FEW_DRAWS.found(text, "Run longer.", effective_draws=number)
