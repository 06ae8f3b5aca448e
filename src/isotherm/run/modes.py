"""The weight of each mode."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from isotherm.foundation.errors import check_integer, refuse, short
from isotherm.foundation.nearest import nearest_centers
from isotherm.run.estimates import for_each, normalized_weights, used_pieces


def mode_masses(modes: Any, draws: Any, log_weights: np.ndarray, num_modes: int | None = None) -> np.ndarray:
    """See `Run.mode_masses`; draws and weights have axes (chain, draw, ...) or (run, chain, draw, ...)."""
    label, count = _labels(modes, draws, np.ndim(log_weights), num_modes)
    masses = np.zeros(count)
    for piece, mass in used_pieces(draws, normalized_weights(log_weights)):
        masses += np.bincount(np.asarray(label(piece), int), mass, minlength=count)[:count]
    return masses


def mode_indicators(modes: Any, draws: Any, lead: int, num_modes: int | None) -> Callable[[Any], np.ndarray]:
    """A function of many positions that returns a row of zeros for each, with a one at its mode."""
    label, count = _labels(modes, draws, lead, num_modes)
    return lambda positions: (np.asarray(label(positions), int)[:, None] == np.arange(count)).astype(float)


def _labels(modes: Any, draws: Any, lead: int, num_modes: int | None) -> tuple[Callable[[Any], Any], int]:
    """A function from many positions to the numbers of their modes, and how many modes there are."""
    if callable(modes):
        number = check_integer("num_modes", num_modes, 1, "Give the number of modes that the function returns.")
        return _checked(for_each(modes), number), number
    if not jax.tree_util.all_leaves([draws]):
        remedy = "Write `lambda x: jnp.argmin(...)` with `num_modes`, say."
        refuse(
            "modes", "a function from a position to a number, where positions are not one array", short(modes), remedy
        )
    centers, shape = np.asarray(modes), jax.tree.leaves(draws)[0].shape[lead:]
    if centers.dtype.kind not in "fiu" or centers.shape[1:] != shape or centers.ndim != len(shape) + 1:
        rule = f"centers of shape (num_modes, {', '.join(map(str, shape))}), or a function from a position to a number"
        refuse("modes", rule, short(modes), "Give one row for every mode.")
    size = math.prod(shape)
    rows = centers.reshape(len(centers), size)
    return lambda positions: nearest_centers(positions.reshape(len(positions), size), rows)[0], len(centers)


def _checked(label: Callable[[Any], Any], number: int) -> Callable[[Any], np.ndarray]:
    """`label`, which must return modes below `number`: other draws would be lost."""

    def checked(positions: Any) -> np.ndarray:
        found = np.asarray(label(positions), int)
        if found.size and not 0 <= found.min() <= found.max() < number:
            got = f"modes from {found.min()} to {found.max()}"
            remedy = "Count from 0; give draws outside all modes a number of their own."
            refuse("modes", f"a function that returns modes from 0 to {number - 1}", got, remedy)
        return found

    return checked
