"""Separates draws into wells that are far apart, and finds the centers of wells."""

from typing import Any

import jax
import numpy as np

# A cut separates wells if the means of its sides are this many times the sum of their spreads apart (a normal distribution cut in
# two has 1.3, a uniform one 1.7, the last hundredth of an exponential one 2.5),
_MIN_DISTANCE = 3.0
# or if a share _STRAY of the draws takes more room between the sides than a share _NEAR at either side.
_STRAY, _NEAR = 1 / 500, 1 / 50
# Axes and principal directions to try; the least number and share of draws of a well; the most wells.
_NUM_AXES, _NUM_DIRECTIONS, _MIN_DRAWS, _MIN_SHARE, _MAX_WELLS = 8, 3, 10, 0.01, 64


def separate(values: np.ndarray) -> np.ndarray:
    """The well of every row of `values`, shape (n, d), counted from 0.

    Draws are cut along axes and principal directions, recursively, wherever a cut leaves a gap.

    Example:
        >>> left = np.linspace(-1.0, 1.0, 20)[:, None]
        >>> np.bincount(separate(np.concatenate([left, left + 9.0]))).tolist()
        [20, 20]
    """
    labels = np.zeros(len(values), int)
    waiting, number = [0], 1
    while waiting and number < _MAX_WELLS:
        own = waiting.pop(0)
        rows = np.flatnonzero(labels == own)
        upper = _upper_part(values[rows], max(_MIN_DRAWS, int(_MIN_SHARE * len(values))))
        if upper is not None:
            labels[rows[upper]] = number
            waiting += [own, number]
            number += 1
    return labels


def _upper_part(values: np.ndarray, least: int) -> np.ndarray | None:
    """Which rows lie beyond the widest gap with `least` rows on each side; None if there is none."""
    if len(values) < 2 * least:
        return None
    scaled = values - np.mean(values, axis=0)
    deviation = np.std(scaled, axis=0)
    scaled = scaled / np.where(deviation > 0, deviation, 1.0)
    directions = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, :_NUM_DIRECTIONS]
    found = [(_gap(np.sort(along), least), along) for along in (*scaled.T[:_NUM_AXES], *(scaled @ directions).T)]
    gaps = [(*gap, along) for gap, along in found if gap is not None]
    if not gaps:
        return None
    _, place, along = max(gaps, key=lambda gap: gap[0])
    return along > place


def _gap(rising: np.ndarray, least: int) -> tuple[float, float] | None:
    """How far apart the sides of the widest gap in sorted numbers are, and its place; None if there is none."""
    number = len(rising)
    counts = np.arange(1, number)
    first, second = (np.cumsum(rising**power)[:-1] for power in (1, 2))
    total, square = np.sum(rising), np.sum(rising**2)
    low, high = first / counts, (total - first) / (number - counts)
    spreads = np.sqrt(np.maximum(second / counts - low**2, 0.0))
    spreads += np.sqrt(np.maximum((square - second) / (number - counts) - high**2, 0.0))
    is_large = (counts >= least) & (number - counts >= least)
    distances = np.where(is_large, (high - low) / np.maximum(spreads, 1e-9), 0.0)
    best = int(np.argmax(distances))
    stray, near = max(int(_STRAY * number), 1), max(int(_NEAR * number), least)
    if distances[best] > _MIN_DISTANCE:
        # The emptiest place between the means: the best cut may leave a few draws on the wrong side.
        between = np.flatnonzero((rising > low[best]) & (rising < high[best]))
        if len(between) == 0:  # Repeated values, of rejected moves.
            return float(distances[best]), float(0.5 * (low[best] + high[best]))
        first, last = between[0], max(between[-1] + 1 - stray, between[0] + 1)
        emptiest = first + int(np.argmax(rising[first + stray : last + stray] - rising[first:last]))
        return float(distances[best]), float(np.mean(rising[[emptiest, emptiest + stray]]))
    begin = np.arange(near, number - near - stray)
    if len(begin) == 0:
        return None
    room = rising[begin + stray] - rising[begin]
    beside = np.maximum(rising[begin] - rising[begin - near], rising[begin + stray + near] - rising[begin + stray])
    ratios = room / np.maximum(beside, 1e-9)
    widest = begin[int(np.argmax(ratios))]
    if np.max(ratios) <= 1.0:
        return None
    return float(distances[widest]), float(np.mean(rising[[widest, widest + stray]]))


def centers_of(positions: Any, log_weights: np.ndarray, wells: np.ndarray) -> Any:
    """For every chain and well the mean of the positions (P, S, ...) of the other chains there; leaves (P, W, ...).

    Around its own mean a slow chain would look cold. If no other chain was in a well, its center is the mean of the others
    anywhere; a single chain has centers of its own.
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
