"""The weights of the bins at the start."""

import numpy as np

from isotherm.foundation.errors import check_choice, refuse


def starting_masses(start: str | tuple[float, ...], number: int, is_cumulative: bool) -> np.ndarray:
    """The masses of the bins, shape (m,): of theta itself, or for a cumulative field of its increments.

    Args:
        start: "uniform", "decreasing" (linearly), "flat" (for a cumulative field 0.1 everywhere), or theta itself.
        number: m.
        is_cumulative: whether theta is a running sum.
    """
    if isinstance(start, str):
        check_choice("start", start, ("uniform", "decreasing", "flat", "pilot"))
        if start == "pilot":
            refuse("start", "of a pilot only where there is one", "pilot", 'Give partition="auto", or a `Pilot`.')
        if start == "flat" and is_cumulative:
            return np.concatenate([[0.1], np.zeros(number - 1)])
        falling = np.arange(number, 0, -1.0)
        return falling / falling.sum() if start == "decreasing" else np.full(number, 1 / number)
    values = np.asarray(start, float)
    if values.shape != (number,) or not np.all(values > 0) or not np.all(np.isfinite(values)):
        refuse("start", f"{number} positive numbers", f"{values.shape}", "Give a value for every bin.")
    return np.diff(values, prepend=0.0) if is_cumulative else values


def masses_of(bins: np.ndarray, number: int, is_cumulative: bool) -> tuple[float, ...]:
    """Theta from the bins that a pilot met, none of them empty."""
    counts = np.bincount(bins, minlength=number) / max(len(bins), 1) + 1e-4
    theta = counts / counts.sum()
    return tuple(float(value) for value in (np.cumsum(theta) if is_cumulative else theta))
