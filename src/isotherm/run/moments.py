"""Weighted means, standard deviations and quantiles of every coordinate, on the host and in pieces."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from isotherm.foundation.errors import refuse, short
from isotherm.run.estimates import normalized_weights, pieces

# Quantiles need all draws of a coordinate at once: as many coordinates are looked at together as fit.
GROUP_BYTES = 256 << 20


def mean(draws: Any, log_weights: np.ndarray) -> Any:
    """The weighted mean of every coordinate, in double precision."""
    return _weighted_sum(lambda leaf, _: leaf, draws, normalized_weights(log_weights), draws)


def std(draws: Any, log_weights: np.ndarray) -> Any:
    """The weighted standard deviation of every coordinate, around its mean: a second pass loses no digits."""
    weights = normalized_weights(log_weights)
    center = _weighted_sum(lambda leaf, _: leaf, draws, weights, draws)
    squares = _weighted_sum(lambda leaf, middle: (leaf - middle) ** 2, draws, weights, center)
    return jax.tree.map(lambda leaf: np.asarray(np.sqrt(leaf)), squares)


def quantile(q: Any, draws: Any, log_weights: np.ndarray) -> Any:
    """The smallest value up to which at least `q` of the weight lies, for every coordinate; see `Run.quantile`."""
    try:
        levels = np.asarray(q, np.float64)
    except (TypeError, ValueError):
        levels = np.asarray(np.nan)
    if not np.all((levels >= 0.0) & (levels <= 1.0)):
        refuse("q", "between 0 and 1", short(q), "Give probabilities, such as 0.5 or [0.05, 0.95].")
    weights = normalized_weights(log_weights)
    used = weights.reshape(-1) > 0
    group = max(1, GROUP_BYTES // (8 * max(int(used.sum()), 1)))
    return jax.tree.map(lambda leaf: _leaf_quantile(levels, leaf, weights, group), draws)


def _leaf_quantile(levels: np.ndarray, leaf: Any, weights: np.ndarray, group: int) -> np.ndarray:
    shape = tuple(leaf.shape[weights.ndim :])
    size, found = math.prod(shape), []
    for first in range(0, size, group):
        columns, masses = [], []
        for piece, mass in pieces(leaf, weights):
            is_used = mass > 0
            columns.append(piece.reshape(len(piece), -1)[is_used, first : first + group])
            masses.append(mass[is_used])
        found.append(_column_quantiles(levels.reshape(-1), np.concatenate(columns), np.concatenate(masses)))
    together = np.concatenate(found, axis=1) if found else np.zeros((levels.size, 0))
    return together.reshape((*levels.shape, *shape))


def _column_quantiles(levels: np.ndarray, values: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Quantiles of every column, shape (levels, columns)."""
    order = np.argsort(values, axis=0, kind="stable")
    below = np.cumsum(mass[order], axis=0)
    found = np.empty((len(levels), values.shape[1]))
    for column in range(values.shape[1]):
        # Sums round: a level that is met to the last digits is met.
        total = below[-1, column]
        places = np.searchsorted(below[:, column], levels * total - 1e-12 * total, side="left")
        found[:, column] = values[order[np.minimum(places, len(values) - 1), column], column]
    return found


def _weighted_sum(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray], draws: Any, weights: np.ndarray, beside: Any
) -> Any:
    """The sum of weights times `function(leaf, leaf of beside)`; draws without weight may hold anything."""
    total: Any = None
    for piece, mass in pieces(draws, weights):
        is_used = mass > 0

        def add(leaf, other, mass=mass[is_used], is_used=is_used):
            return np.tensordot(mass, function(leaf[is_used].astype(np.float64), other), 1)

        part = jax.tree.map(add, piece, beside)
        total = part if total is None else jax.tree.map(np.add, total, part)
    return total
