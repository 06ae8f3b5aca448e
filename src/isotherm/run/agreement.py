"""Whether the chains of a run agree with one another, and its start with its end, from sums over stretches of the chains."""

from typing import NamedTuple

import numpy as np
import scipy

from isotherm.foundation import checks

MAX_STRETCHES = 128
# Of every chain, where it has as many draws: fewer do not tell how well each of them is known; more where chains share their noise,
# whose error is that of their sums.
_MIN_STRETCHES, _MIN_SHARED = 8, 32
# R-hat below this is never reported; and the p-value at which chains differ.
_MIN_R_HAT, _P_VALUE = 1.01, 1e-3


class Stretches(NamedTuple):
    """Sums over C chains of S stretches each, for K functions.

    Attributes:
        mass: of the weights, shape (C, S).
        first: of weights times values, shape (C, S, K).
        second: of weights times squared values, shape (C, S, K).
    """

    mass: np.ndarray
    first: np.ndarray
    second: np.ndarray


def num_stretches(num_chains: int, num_draws: int, shares_noise: bool = False) -> int:
    """Stretches of a chain: the smallest power of two that gives `MAX_STRETCHES` in all, and no more than there are draws."""
    number, least = 1, _MIN_SHARED if shares_noise else _MIN_STRETCHES
    while (num_chains * number < MAX_STRETCHES or number < least) and 2 * number <= num_draws:
        number *= 2
    return number


def r_hat_of(stretches: Stretches, draws_per_chain: float) -> np.ndarray:
    """sqrt((n - 1) / n * (1 + B / W)) over halves of chains of n draws, each half counting with its weight.

    B is the variance of their means, W that within them: 1 on average for independent draws, however few. NaN where halves have
    fewer than two draws.
    """
    num_chains, length, number = stretches.first.shape
    halves = min(length, 2)
    parts = (part.reshape(num_chains * halves, length // halves, -1).sum(axis=1) for part in stretches)
    mass, first, second = parts
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


def largest_r_hat(num_halves: int, draws_within: np.ndarray) -> np.ndarray:
    """What R-hat may be, shape (K,): at most 1.05, more for many functions, of which some differ by chance, less for many draws.

    For chains that agree R-hat^2 - 1 is about a chi-square of the halves less one over the effective draws. Of few draws a larger
    one may be chance: then nobody knows, which is another check (`checks.LARGE_R_HAT`).
    """
    degrees = max(num_halves - 1, 1)
    chance = scipy.special.chdtri(degrees, _P_VALUE / len(draws_within))
    expected = chance / np.maximum(draws_within, 1.0)
    usual = (checks.DISAGREEMENT.limit**2 - 1.0) * chance / scipy.special.chdtri(degrees, _P_VALUE)
    return np.sqrt(1.0 + np.clip(2.0 * expected, _MIN_R_HAT**2 - 1.0, np.maximum(usual, expected)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def drift_of(stretches: Stretches, draws_within: np.ndarray) -> np.ndarray:
    """How far the start of the run is from its end, of whose mean so many draws tell; see `Errors`."""
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
