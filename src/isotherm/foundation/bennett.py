"""Bennett's acceptance ratio: the ratio of two normalizing constants from draws of both densities.

Reference:
    Bennett 1976, "Efficient estimation of free energy differences from Monte Carlo data", with as many draws of each.
"""

import numpy as np
from scipy.special import expit

# Works of up to 1e30 need about 70 steps to bracket the root, and 140 to find it.
_MAX_STEPS, _TOLERANCE = 200, 1e-10
# Works beyond this count as infinite.
LARGEST = 1e30


def log_ratio(cold: np.ndarray, hot: np.ndarray) -> np.ndarray:
    """Log ratios of the constants of cold densities over hot ones.

    Args:
        cold: works log(hot density / cold density) of draws from the cold density, shape (draw, pair). Infinite values are draws
            outside the other's support.
        hot: the same of draws from the hot density.

    Returns:
        An array of shape (pair,).
    """
    # Works may reach 1e30, so the bracket grows from where the middle draws are.
    middle = -0.5 * (
        np.median(np.clip(cold, -LARGEST, LARGEST), axis=0) + np.median(np.clip(hot, -LARGEST, LARGEST), axis=0)
    )
    width = 1.0 + np.abs(middle)
    low, high = middle - width, middle + width
    for _ in range(_MAX_STEPS):
        is_high, is_low = score(cold, hot, low) < 0, score(cold, hot, high) > 0
        if not np.any(is_high | is_low):
            break
        low, high = np.where(is_high, low - 2.0 * (high - low), low), np.where(is_low, high + 2.0 * (high - low), high)
    for _ in range(_MAX_STEPS):
        center = 0.5 * (low + high)
        if np.max(high - low) < _TOLERANCE:
            break
        is_low = score(cold, hot, center) > 0
        low, high = np.where(is_low, center, low), np.where(is_low, high, center)
    return 0.5 * (low + high)


def score(cold: np.ndarray, hot: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Falls through zero where `center` is the log ratio: acceptances from the hot density minus those from the cold one."""
    return np.sum(expit(-hot - center), axis=0) - np.sum(expit(cold + center), axis=0)


def slope(cold: np.ndarray, hot: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Minus the derivative of the score."""
    return np.sum(_bell(hot + center), axis=0) + np.sum(_bell(cold + center), axis=0)


def _bell(value: np.ndarray) -> np.ndarray:
    return expit(value) * expit(-value)
