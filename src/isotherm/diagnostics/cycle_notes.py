"""Whether the cycles of a run end in regions of their own."""

import jax
import numpy as np

from isotherm.run.run_estimates import RunEstimates

# Coordinates of each leaf that are looked at, and draws of a cycle that say something of its spread.
_MOST_COORDINATES, _FEWEST_DRAWS = 5, 4
# The variance between cycles over that within: below 1 where a cycle goes through all of the distribution.
_LARGEST_RATIO = 1.5


def notes_on_cycles(run: RunEstimates) -> list[str]:
    """What cycles that do not mix say of the masses of modes; nothing for samplers without cycles or without noise."""
    # Times of selected draws, and of a run that was stopped, are plain numbers.
    window = getattr(run.times, "window", None)
    if window is None or not run.config.get("temperature"):
        return []
    cycles = run.iterations // window.cycle_length
    lead = run.log_weights.ndim
    leaves = [leaf for leaf in jax.tree.leaves(run.draws) if np.prod(leaf.shape) > 0]
    ratios = [ratio_between(_some(leaf, lead), cycles) for leaf in leaves]
    if max(ratios, default=0.0) < _LARGEST_RATIO:
        return []
    return [
        "Cycles end in regions of their own, and stay there while draws are taken: the masses of modes are those of the descents, "
        "not of the distribution. Sample for a larger part of a cycle, with longer steps, or use replica exchange "
        '(`iso.resgld(step_size, ladder="auto")`).'
    ]


def _some(leaf: np.ndarray, lead: int) -> np.ndarray:
    """The first coordinates of a leaf, (chain, draw, coordinate)."""
    if leaf.ndim > lead:
        leaf = leaf[(..., *(0,) * (leaf.ndim - lead - 1), slice(_MOST_COORDINATES))]
    found = np.asarray(leaf, np.float64)
    num_draws = found.shape[lead - 1]
    chains = found.reshape(int(np.prod(found.shape[: lead - 1])), num_draws, -1)
    # Chains that diverged are reported elsewhere.
    return chains[np.all(np.isfinite(chains), axis=(1, 2))]


def ratio_between(values: np.ndarray, cycles: np.ndarray) -> float:
    """The largest ratio, over coordinates, of the variance of the means of cycles to the mean variance within them.

    Args:
        values: (chain, draw, coordinate).
        cycles: the cycle of each draw.

    Example:
        >>> import numpy as np
        >>> apart = np.array([[[0.0], [0.1], [0.0], [0.1], [5.0], [5.1], [5.0], [5.1]]])
        >>> ratio_between(apart, np.array([0, 0, 0, 0, 1, 1, 1, 1])) > 1_000
        True
    """
    groups = [values[:, cycles == cycle] for cycle in np.unique(cycles) if np.sum(cycles == cycle) >= _FEWEST_DRAWS]
    if not groups or len(groups) * len(values) < 2:
        return 0.0
    means = np.concatenate([group.mean(axis=1) for group in groups])
    within = np.mean(np.concatenate([group.var(axis=1) for group in groups]), axis=0)
    between = means.var(axis=0)
    return float(np.max(np.where(within > 0, between / np.maximum(within, 1e-300), 0.0)))
