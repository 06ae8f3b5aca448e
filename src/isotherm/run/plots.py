"""Pictures of a run, with Matplotlib."""

import math
from typing import Any

import jax
import numpy as np

from isotherm.foundation.errors import refuse, short
from isotherm.foundation.optional import require
from isotherm.foundation.positions import coordinate_name, shapes_of
from isotherm.run.estimates import normalized_weights
from isotherm.run.run import Run

_MAX_POINTS = 2_000
# Legends with more lines hide the picture.
_MAX_NAMED = 8


def canvas(axes: Any, count: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure and its axes, an array: those given, or `count` new ones below each other, on a figure of `size` inches."""
    if axes is not None:
        axes = np.atleast_1d(axes)
        return axes[0].figure, axes
    figure = require("matplotlib.figure", "plots").Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(count, 1, squeeze=False)[:, 0]


def plot_trace(run: Run, coordinates: Any = None, axes: Any = None) -> Any:
    """See `Run.plot_trace`."""
    values, names = _chosen(run, coordinates)
    figure, axes = canvas(axes, len(names), (8, 2.2 * len(names)))
    for axis, one, name in zip(axes, values, names, strict=True):
        _lines(run, axis, one)
        axis.set_ylabel(name)
    axes[-1].set_xlabel("iteration")
    _name_chains(axes[0])
    return figure


def plot_density(run: Run, coordinates: Any = None, bins: int = 100, limits: Any = None, axes: Any = None) -> Any:
    """See `Run.plot_density`."""
    if limits is not None and (np.shape(limits) != (2,) or not limits[0] < limits[1]):
        refuse("limits", "(low, high) with low below high", short(limits), "Write `limits=(-2.5, 2.5)`, say.")
    values, names = _chosen(run, coordinates)
    values, names = values[:2], names[:2]
    weights = normalized_weights(np.asarray(run.log_weights)).reshape(-1)
    figure, (axis,) = canvas(axes, 1, (5.0, 4))
    # Draws of diverged chains may be NaN, which histograms refuse; their weight is zero.
    is_used = weights > 0
    flat = [one.reshape(-1)[is_used] for one in values]
    axis.set_xlabel(names[0])
    if len(flat) == 1:
        axis.hist(flat[0], bins=bins, weights=weights[is_used], density=True, range=limits, color="C0")
        axis.set_ylabel("density")
        return figure
    span = None if limits is None else [limits, limits]
    *_, image = axis.hist2d(*flat, bins=bins, weights=weights[is_used], range=span, density=True, cmap="magma")
    axis.set_ylabel(names[1])
    if limits is not None:
        axis.set_aspect("equal")
    figure.colorbar(image, ax=axis, label="density")
    return figure


def plot_energy(run: Run, bins: int = 60, axes: Any = None) -> Any:
    """See `Run.plot_energy`."""
    figure, axes = canvas(axes, 2, (8, 4.4))
    energies = np.asarray(run.energies, np.float64)
    _lines(run, axes[0], energies)
    axes[0].set_xlabel("iteration")
    axes[0].set_ylabel("energy")
    _name_chains(axes[0])
    weights = normalized_weights(np.asarray(run.log_weights)).reshape(-1)
    is_used = weights > 0
    axes[1].hist(energies.reshape(-1)[is_used], bins=bins, weights=weights[is_used], color="C0")
    axes[1].set_xlabel("energy")
    axes[1].set_ylabel("weight")
    return figure


def _lines(run: Run, axis: Any, values: np.ndarray) -> None:
    """A line for every chain of all runs."""
    stride = -(-run.num_draws // _MAX_POINTS)
    times = run.iterations[::stride]
    number = values.shape[-2]
    for place, chain in enumerate(values[..., ::stride].reshape(-1, len(times))):
        repeat, own = divmod(place, number)
        label = f"run {repeat}, chain {own}" if run.has_run_axis else f"chain {own}"
        axis.plot(times, chain, lw=0.6, alpha=0.8, label=label)


def _name_chains(axis: Any) -> None:
    if 1 < len(axis.get_lines()) <= _MAX_NAMED:
        axis.legend(loc="upper right", fontsize="x-small", ncols=4)


def _places(asked: Any, size: int, names: list[str]) -> list[int]:
    """The numbers of a coordinate, or of all coordinates of a leaf; none where there is no such thing."""
    if isinstance(asked, str):
        return [place for place, name in enumerate(names) if name == asked or name.startswith(f"{asked}[")]
    return [int(asked)] if isinstance(asked, (int, np.integer)) and 0 <= asked < size else []


def _chosen(run: Run, coordinates: Any) -> tuple[list[np.ndarray], list[str]]:
    """Some coordinates, counted through the leaves, each with the axes of the log weights; and their names."""
    lead = run.log_weights.ndim
    shapes = shapes_of(run.draws, lead)
    size = sum(math.prod(shape) for shape in shapes.values())
    if coordinates is None:
        coordinates = tuple(range(min(size, 2)))
    asked = coordinates if isinstance(coordinates, (tuple, list)) else (coordinates,)
    names = (
        [coordinate_name(shapes, number) for number in range(size)]
        if any(isinstance(one, str) for one in asked)
        else []
    )
    found = [_places(one, size, names) for one in asked]
    if not all(found) or not found:
        remedy = 'Names are those of the summary, as "beta[3]" or "beta"; numbers are counted through the leaves.'
        refuse("coordinates", f"names, or numbers from 0 to {size - 1}", short(coordinates), remedy)
    kept = [place for places in found for place in places]
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(run.draws)]
    flat = np.concatenate([leaf.reshape(*leaf.shape[:lead], -1) for leaf in leaves], axis=-1)
    return [flat[..., number] for number in kept], [coordinate_name(shapes, number) for number in kept]
