"""How much weight is in each mode, with its error."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from isotherm.foundation.errors import check_integer, refuse, short
from isotherm.foundation.nearest import nearest_centers
from isotherm.run.estimates import Estimate, estimate_each, for_each, normalized_weights, pieces

if TYPE_CHECKING:
    from isotherm.run.bias import Bias


def mode_masses(modes: Any, draws: Any, log_weights: np.ndarray, num_modes: int | None = None) -> np.ndarray:
    """Weight of the draws that belong to each mode.

    Args:
        modes: centers, shape (num_modes, *position shape): a draw belongs to the nearest one; or a function that maps a
            position to the number of its mode.
        draws: axes (chain, draw, ...), or (run, chain, draw, ...).
        log_weights: the same axes up to the draws.
        num_modes: how many modes there are, where `modes` is a function.
    """
    label, count = _labels(modes, draws, log_weights, num_modes)
    masses = np.zeros(count)
    for piece, mass in pieces(draws, normalized_weights(log_weights)):
        is_used = mass > 0
        labels = np.asarray(label(jax.tree.map(lambda leaf: leaf[is_used], piece)), int)  # noqa: B023
        masses += np.bincount(labels, mass[is_used], minlength=count)[:count]
    return masses


def estimate_mode_masses(
    modes: Any,
    draws: Any,
    log_weights: np.ndarray,
    num_modes: int | None = None,
    bias: "Bias | None" = None,
    are_particles: bool = False,
    shares_noise: bool = False,
) -> Estimate:
    """The same as the means of indicators, with errors; leaves have shape (num_modes,)."""
    label, count = _labels(modes, draws, log_weights, num_modes)

    def indicators(positions):
        return (np.asarray(label(positions), int)[:, None] == np.arange(count)).astype(float)

    return estimate_each(indicators, draws, log_weights, bias, are_particles, shares_noise)


def _labels(modes: Any, draws: Any, log_weights: np.ndarray, num_modes: int | None) -> tuple[Callable[[Any], Any], int]:
    """A function from many positions to the numbers of their modes, and how many modes there are."""
    if callable(modes):
        number = check_integer("num_modes", num_modes, 1, "Say how many modes the function names.")
        return _within(for_each(modes), number), number
    if not jax.tree_util.all_leaves([draws]):
        remedy = "Write `lambda x: jnp.argmin(...)` with `num_modes`, say."
        refuse(
            "modes", "a function from a position to a number, where positions are not one array", short(modes), remedy
        )
    centers, one = np.asarray(modes), jax.tree.leaves(draws)[0].shape[np.ndim(log_weights) :]
    if centers.dtype.kind not in "fiu" or centers.shape[1:] != one or centers.ndim != len(one) + 1:
        rule = f"centers of shape (num_modes, {', '.join(map(str, one))}), or a function from a position to a number"
        refuse("modes", rule, short(modes), "Give one row for every mode.")

    count, size = len(centers), math.prod(one)
    rows = centers.reshape(count, size)
    return lambda positions: nearest_centers(positions.reshape(len(positions), size), rows)[0], count


def _within(label: Callable[[Any], Any], number: int) -> Callable[[Any], np.ndarray]:
    """The function, which may name no mode that is not there: its draws would be lost."""

    def checked(positions: Any) -> np.ndarray:
        found = np.asarray(label(positions), int)
        if found.size and not 0 <= found.min() <= found.max() < number:
            got = f"modes from {found.min()} to {found.max()}"
            remedy = "Count from 0; draws that belong to none are a mode of their own."
            refuse("modes", f"a function that names modes from 0 to {number - 1}", got, remedy)
        return found

    return checked
