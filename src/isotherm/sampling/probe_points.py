"""Positions of some draws, as the measurement of a bias needs them: leaves of axes (chain, draw, ...)."""

from typing import Any

import jax
import numpy as np


def flat_numbers(tree: Any, lead: int) -> np.ndarray:
    """The numbers of positions with so many leading axes, in one array of double precision."""
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(tree)]
    return np.concatenate([leaf.reshape(*leaf.shape[:lead], -1) for leaf in leaves], axis=-1)


def centers_of(positions: Any, log_weights: np.ndarray) -> Any:
    """For every chain the mean of the positions (P, S, ...) of the others, or of its own where it is alone.

    What a chain has not seen yet cannot be told by a mean of its own: around that, slow chains look cold.
    """
    has_weight = np.isfinite(log_weights)
    counts = np.sum(has_weight, axis=1)
    others = np.sum(counts) - counts if np.sum(counts > 0) > 1 else counts

    def mean(leaf):
        shape = (-1, *(1,) * (leaf.ndim - 2))
        kept = leaf if has_weight.all() else np.where(has_weight.reshape(*has_weight.shape, *shape[1:]), leaf, 0.0)
        sums = np.sum(kept, axis=1, dtype=np.float64)
        sums = np.sum(sums, axis=0) - sums if np.sum(counts > 0) > 1 else sums
        return (sums / np.maximum(others, 1).reshape(shape)).astype(leaf.dtype)

    return jax.tree.map(mean, positions)


def moved(positions: Any, coordinates: np.ndarray, away: np.ndarray, side: float) -> Any:
    """Positions (P, S, ...) with some of their coordinates moved."""
    leaves, structure = jax.tree.flatten(positions)
    found, begin = [], 0
    for leaf in leaves:
        flat = np.array(leaf.reshape(*leaf.shape[:2], -1))
        is_here = (coordinates >= begin) & (coordinates < begin + flat.shape[-1])
        flat[..., coordinates[is_here] - begin] += (side * away[..., is_here]).astype(flat.dtype)
        begin += flat.shape[-1]
        found.append(flat.reshape(leaf.shape))
    return jax.tree.unflatten(structure, found)
