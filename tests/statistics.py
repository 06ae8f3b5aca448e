"""How a sample is judged: z-scores over independent repeats, with fixed thresholds."""

import numpy as np

# A right law passes with probability above 0.9999 at a fixed seed; a law that is off by 10 % must be far outside.
PASS = 4.0
FAIL = 6.0


def z_score(estimates: np.ndarray, truth: float) -> float:
    """Distance of the mean of independent estimates from the truth, in standard errors."""
    estimates = np.asarray(estimates, np.float64).reshape(-1)
    return float((estimates.mean() - truth) / (estimates.std(ddof=1) / np.sqrt(len(estimates))))


def relative_error(estimates: np.ndarray) -> float:
    """Standard error of the mean over the mean: what the test can see."""
    estimates = np.asarray(estimates, np.float64).reshape(-1)
    return float(abs(estimates.std(ddof=1) / np.sqrt(len(estimates)) / estimates.mean()))


def assert_law(estimates: np.ndarray, truth: float, wrong: float) -> None:
    """The truth fits, the wrong value does not, and an error of 10 % would be seen."""
    assert relative_error(estimates) < 0.1 / FAIL
    assert abs(z_score(estimates, truth)) < PASS
    assert abs(z_score(estimates, wrong)) > FAIL
