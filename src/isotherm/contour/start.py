"""The weights of the bins at the start."""

import numpy as np

from isotherm.errors import check_choice, refuse


def starting_masses(start: str | tuple[float, ...], number: int, is_cumulative: bool) -> np.ndarray:
    """The masses of the bins, shape (m,): of theta itself, or for a cumulative field of its increments.

    Args:
        start: "uniform", "decreasing" (linearly), "flat" (for a cumulative field 0.1 everywhere), or theta itself.
        number: m.
        is_cumulative: whether theta is a running sum.
    """
    if isinstance(start, str):
        check_choice("start", start, ("uniform", "decreasing", "flat"))
        if start == "flat" and is_cumulative:
            return np.concatenate([[0.1], np.zeros(number - 1)])
        falling = np.arange(number, 0, -1.0)
        return falling / falling.sum() if start == "decreasing" else np.full(number, 1 / number)
    values = np.asarray(start, float)
    if values.shape != (number,) or not np.all(values > 0) or not np.all(np.isfinite(values)):
        refuse("start", f"{number} positive numbers", f"{values.shape}", "Give a value for every bin.")
    return np.diff(values, prepend=0.0) if is_cumulative else values
