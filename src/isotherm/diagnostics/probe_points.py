"""Positions of some draws, as the measurement of a bias needs them: leaves of axes (chain, draw, ...)."""

from typing import Any

import jax
import numpy as np


def centers_of(positions: Any, log_weights: np.ndarray, wells: np.ndarray) -> Any:
    """For every chain and well the mean of the positions (P, S, ...) of the other chains there; leaves (P, W, ...).

    What a chain has not seen yet cannot be told by a mean of its own: around that, slow chains look cold. Where no other chain was
    in a well, it is the mean of the others anywhere, or of a chain that is alone its own.
    """
    has_weight = np.isfinite(log_weights)
    # Of every well and then of all, (W + 1, P, S).
    members = np.stack([has_weight & (wells == well) for well in range(np.max(wells) + 1)] + [has_weight])
    counts = np.sum(members, axis=2)
    is_alone = np.sum(counts[-1] > 0) <= 1
    others = counts if is_alone else np.sum(counts, axis=1, keepdims=True) - counts
    is_met = others[:-1].T > 0

    def mean(leaf):
        lead = (leaf.shape[0], leaf.shape[1], -1)
        flat = np.where(has_weight[..., None], leaf.reshape(lead), 0.0)
        sums = np.stack([np.einsum("ps,psi->pi", here, flat, dtype=np.float64) for here in members])
        sums = sums if is_alone else np.sum(sums, axis=1, keepdims=True) - sums
        means = sums / np.maximum(others, 1)[..., None]
        found = np.where(is_met[..., None], np.swapaxes(means[:-1], 0, 1), means[-1][:, None])
        return found.reshape(leaf.shape[0], len(members) - 1, *leaf.shape[2:]).astype(leaf.dtype)

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
