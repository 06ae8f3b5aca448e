"""Some numbers of all draws, without a copy of the others: positions may be networks."""

from typing import Any

import jax
import numpy as np


def columns(draws: Any, lead: int, places: np.ndarray) -> np.ndarray:
    """The numbers at `places`, which rise, counted through the leaves of positions; after `lead` axes of the draws.

    Example:
        >>> columns({"a": np.zeros((5, 2)), "b": np.ones((5, 3))}, 1, np.array([1, 4])).tolist()[0]
        [0.0, 1.0]
    """
    found, first = [], 0
    for leaf in jax.tree.leaves(draws):
        size = int(np.prod(leaf.shape[lead:]))
        here = places[(places >= first) & (places < first + size)] - first
        first += size
        if len(here):
            # A view of an array in memory; one on disk is read leaf by leaf.
            flat = np.asarray(leaf).reshape(*leaf.shape[:lead], size)
            found.append(np.asarray(flat[..., here], np.float64))
    return np.concatenate(found, axis=-1)
