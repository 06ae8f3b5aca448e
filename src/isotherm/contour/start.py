"""Theta at the start."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from isotherm.foundation.errors import check_choice, refuse, short


def as_theta(name: str, given: Any) -> Any:
    """The name of a start, or numbers as an array."""
    if isinstance(given, str):
        return given
    try:
        return np.asarray(given, float)
    except (TypeError, ValueError):
        return refuse(name, "positive numbers, one for every bin", short(given), "Give a value for every bin.")


def check_initial_theta(given: Any, number: int, name: str = "initial_theta") -> None:
    """Refuse what is neither the name of a start nor a positive number for each of `number` bins."""
    if isinstance(given, str):
        check_choice(name, given, ("uniform", "decreasing", "flat"))
    elif given.shape != (number,) or not np.all(given > 0) or not np.all(np.isfinite(given)):
        refuse(name, f"{number} positive numbers", f"{given.shape}", "Give a value for every bin.")


def starting_masses(given: Any, number: int, is_cumulative: bool) -> Any:
    """The masses of the bins, shape (m,): of theta itself, or for a cumulative field of its increments.

    Args:
        given: "uniform", "decreasing" (linearly), "flat" (for a cumulative field 0.1 everywhere), or theta itself.
        number: m.
        is_cumulative: whether theta is a running sum.
    """
    if not isinstance(given, str):
        return jnp.diff(given, prepend=0.0) if is_cumulative else given
    if given == "flat" and is_cumulative:
        return np.concatenate([[0.1], np.zeros(number - 1)])
    falling = np.arange(number, 0, -1.0)
    return falling / falling.sum() if given == "decreasing" else np.full(number, 1 / number)


def masses_of(bins: np.ndarray, number: int, is_cumulative: bool) -> np.ndarray:
    """Theta from the bins that a pilot met, none of them empty."""
    counts = np.bincount(bins, minlength=number) / max(len(bins), 1) + 1e-4
    theta = counts / counts.sum()
    return np.cumsum(theta) if is_cumulative else theta
