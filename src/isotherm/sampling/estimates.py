"""Estimates from weighted draws. Every one honours the weights, and none needs all draws in memory at once."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from isotherm.errors import check_integer, refuse

_PIECE_BYTES = 64 << 20


def normalised_weights(log_weights: np.ndarray) -> np.ndarray:
    """Weights over runs, chains and draws that sum to one."""
    flat = np.asarray(log_weights, np.float64)
    highest = flat.max()
    if not np.isfinite(highest):
        refuse("log_weights", "finite for some draw", f"{highest} at most", "Every chain diverged: lower `step_size`.")
    weights = np.exp(flat - highest)
    return weights / weights.sum()


def effective_sample_size(log_weights: np.ndarray) -> float:
    """Kish's effective number of draws, from the weights alone: 1 / sum of squared weights. Knows nothing of autocorrelation."""
    return float(1.0 / np.sum(normalised_weights(log_weights) ** 2))


def pieces(draws: Any, weights: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Draws and weights, flattened over runs and chains, in pieces along the draws that fit in memory."""
    leaves = jax.tree.leaves(draws)
    row = sum(leaf.size // max(leaf.shape[2], 1) * leaf.dtype.itemsize for leaf in leaves)
    length = max(1, _PIECE_BYTES // max(row, 1))
    for start in range(0, weights.shape[2], length):
        span = slice(start, start + length)
        piece = jax.tree.map(lambda leaf: _flat(np.asarray(leaf[:, :, span])), draws)  # noqa: B023
        yield piece, _flat(weights[:, :, span])


def expectation(function: Callable[[Any], Any], draws: Any, log_weights: np.ndarray) -> Any:
    """The weighted mean of `function` over draws."""
    weights = normalised_weights(log_weights)
    each = jax.jit(jax.vmap(function))
    total: Any = None
    for piece, mass in pieces(draws, weights):
        is_used = mass > 0
        values = each(jax.tree.map(lambda leaf: leaf[is_used], piece))  # noqa: B023
        part = jax.tree.map(lambda leaf: np.tensordot(mass[is_used], np.asarray(leaf, np.float64), 1), values)  # noqa: B023
        total = part if total is None else jax.tree.map(np.add, total, part)
    return total


def systematic_indices(weights: np.ndarray, num: int, seed: int) -> np.ndarray:
    """`num` indices of flat weights, each drawn about num * weight times, with one random offset."""
    check_integer("num", num, 1, "Give the number of draws wanted.")
    points = (np.random.default_rng(seed).random() + np.arange(num)) / num
    total = np.cumsum(weights)
    return np.searchsorted(total / total[-1], points, side="right").clip(0, len(weights) - 1)


def resample(draws: Any, log_weights: np.ndarray, num: int, seed: int) -> Any:
    """`num` draws of equal weight, by systematic resampling over runs, chains and draws."""
    weights = normalised_weights(log_weights)
    chosen = systematic_indices(weights.reshape(-1), num, seed)
    run, chain, draw = np.unravel_index(chosen, weights.shape)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[run, chain, draw], draws)


def mode_masses(modes: Any, draws: Any, log_weights: np.ndarray, num_modes: int | None = None) -> np.ndarray:
    """Weight of the draws that belong to each mode.

    Args:
        modes: centres, shape (num_modes, *position shape): a draw belongs to the nearest one; or a function that maps a
            position to the number of its mode.
        draws: axes (run, chain, draw, ...).
        log_weights: axes (run, chain, draw).
        num_modes: how many modes there are, where `modes` is a function.
    """
    if callable(modes):
        count = check_integer("num_modes", num_modes, 1, "Say how many modes the function names.")
        label = jax.jit(jax.vmap(modes))
    else:
        centres = np.asarray(modes)
        count = len(centres)

        def label(positions):
            squares = ((positions - centre) ** 2 for centre in centres)
            return np.argmin([square.reshape(len(positions), -1).sum(axis=1) for square in squares], axis=0)

    masses = np.zeros(count)
    for piece, mass in pieces(draws, normalised_weights(log_weights)):
        is_used = mass > 0
        labels = np.asarray(label(jax.tree.map(lambda leaf: leaf[is_used], piece)), int)  # noqa: B023
        masses += np.bincount(labels, mass[is_used], minlength=count)[:count]
    return masses


def _flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, *array.shape[3:])
