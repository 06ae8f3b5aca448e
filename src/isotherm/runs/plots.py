"""Pictures of a run, with Matplotlib."""

from typing import Any

import jax
import numpy as np

from isotherm.runs.canvas import canvas
from isotherm.runs.estimates import normalized_weights
from isotherm.runs.run_estimates import RunEstimates

_MOST_POINTS = 2_000


def plot_trace(run: RunEstimates, coordinates: tuple[int, ...] = (0, 1), axes: Any = None) -> Any:
    """The first coordinates of every chain against the iteration. Returns Matplotlib's figure."""
    flat = _flat_coordinates(run)
    coordinates = tuple(c for c in coordinates if c < flat.shape[-1])
    figure, axes = canvas(axes, len(coordinates), (8, 2.2 * len(coordinates)))
    stride = -(-run.num_draws // _MOST_POINTS)
    for axis, coordinate in zip(axes, coordinates, strict=True):
        for chain in flat[..., ::stride, coordinate].reshape(-1, len(run.iterations[::stride])):
            axis.plot(run.iterations[::stride], chain, lw=0.6, alpha=0.8)
        axis.set_ylabel(f"x[{coordinate}]")
    axes[-1].set_xlabel("iteration")
    return figure


def plot_density(
    run: RunEstimates, coordinates: tuple[int, ...] = (0, 1), bins: int = 100, limits: Any = None, axes: Any = None
) -> Any:
    """The weighted density of one coordinate, or of two. Returns Matplotlib's figure."""
    flat = _flat_coordinates(run)
    weights = normalized_weights(np.asarray(run.log_weights)).reshape(-1)
    chosen = [flat[..., c].reshape(-1) for c in coordinates if c < flat.shape[-1]]
    figure, (axis,) = canvas(axes, 1, (4.4, 4))
    # Draws of diverged chains may be NaN, which histograms refuse; their weight is zero.
    is_used = weights > 0
    if len(chosen) == 1:
        axis.hist(chosen[0][is_used], bins=bins, weights=weights[is_used], density=True, range=limits, color="C0")
        axis.set_xlabel("x[0]")
        axis.set_ylabel("density")
        return figure
    span = None if limits is None else [limits, limits]
    first, second = (values[is_used] for values in chosen)
    axis.hist2d(first, second, bins=bins, weights=weights[is_used], range=span, cmap="magma")
    axis.set_xlabel(f"x[{coordinates[0]}]")
    axis.set_ylabel(f"x[{coordinates[1]}]")
    axis.set_aspect("equal")
    return figure


def plot_energy(run: RunEstimates, bins: int = 60, axes: Any = None) -> Any:
    """Energies of the draws against the iteration, and their weighted distribution. Returns Matplotlib's figure."""
    figure, axes = canvas(axes, 2, (8, 4.4))
    energies = np.asarray(run.energies, np.float64)
    stride = -(-run.num_draws // _MOST_POINTS)
    for chain in energies[..., ::stride].reshape(-1, len(run.iterations[::stride])):
        axes[0].plot(run.iterations[::stride], chain, lw=0.6, alpha=0.8)
    axes[0].set_xlabel("iteration")
    axes[0].set_ylabel("energy")
    weights = normalized_weights(np.asarray(run.log_weights)).reshape(-1)
    is_used = weights > 0
    axes[1].hist(energies.reshape(-1)[is_used], bins=bins, weights=weights[is_used], color="C0")
    axes[1].set_xlabel("energy")
    axes[1].set_ylabel("weight")
    return figure


def _flat_coordinates(run: RunEstimates) -> np.ndarray:
    """Draws with all coordinates of a position along the last axis."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(run.draws)]
    lead = run.log_weights.ndim
    return np.concatenate([leaf.reshape(*leaf.shape[:lead], -1) for leaf in leaves], axis=-1)
