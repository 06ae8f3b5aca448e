"""Plots of a run with Matplotlib."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from isotherm.foundation.errors import refuse, short
from isotherm.foundation.optional import require
from isotherm.foundation.positions import columns, coordinate_name, coordinate_names, shapes_of
from isotherm.run.estimates import normalized_weights

if TYPE_CHECKING:
    from isotherm.run.run import Run

_MAX_POINTS = 2_000
# Longer legends hide the plot.
_MAX_NAMED = 8


def canvas(axes: Any, count: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure and an array of its axes: those given, or `count` new ones below each other on a figure of `size` inches."""
    if axes is not None:
        axes = np.atleast_1d(axes)
        return axes[0].figure, axes
    figure = require("matplotlib.figure", "plots").Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(count, 1, squeeze=False)[:, 0]


def plot_trace(run: "Run", coordinates: Any = None, axes: Any = None) -> Any:
    """Coordinates of every chain against iterations. Returns a Matplotlib figure.

    Args:
        run: the run.
        coordinates: names as in the summary, or numbers counted through the leaves of a position; None for the first two.
        axes: Matplotlib axes, one for each coordinate; None makes a figure.
    """
    values, names = _chosen(run, coordinates)
    figure, axes = canvas(axes, len(names), (8, 2.2 * len(names)))
    for axis, one, name in zip(axes, values, names, strict=True):
        _lines(run, axis, one)
        axis.set_ylabel(name)
    axes[-1].set_xlabel("iteration")
    _name_chains(axes[0])
    return figure


def plot_density(run: "Run", coordinates: Any = None, bins: int = 100, limits: Any = None, axes: Any = None) -> Any:
    """The weighted density of one coordinate, or of two with a color bar. Returns a Matplotlib figure.

    Args:
        run: the run.
        coordinates: one or two: names as in the summary, or numbers counted through the leaves of a position; None for the first
            two.
        bins: cells along an axis.
        limits: (low, high) of the axes; None for the range of the draws.
        axes: Matplotlib axes; None makes a figure.
    """
    if limits is not None and (np.shape(limits) != (2,) or not limits[0] < limits[1]):
        refuse("limits", "(low, high) with low below high", short(limits), "Write `limits=(-2.5, 2.5)`, say.")
    values, names = _chosen(run, coordinates)
    values, names = values[:2], names[:2]
    figure, (axis,) = canvas(axes, 1, (5.0, 4))
    weights, *flat = _used(run, *values)
    axis.set_xlabel(names[0])
    if len(flat) == 1:
        axis.hist(flat[0], bins=bins, weights=weights, density=True, range=limits, color="C0")
        axis.set_ylabel("density")
        return figure
    span = None if limits is None else [limits, limits]
    *_, image = axis.hist2d(*flat, bins=bins, weights=weights, range=span, density=True, cmap="magma")
    axis.set_ylabel(names[1])
    if limits is not None:
        axis.set_aspect("equal")
    figure.colorbar(image, ax=axis, label="density")
    return figure


def plot_energy(run: "Run", bins: int = 60, axes: Any = None) -> Any:
    """Energies against iterations, and their weighted distribution. Returns a Matplotlib figure.

    Args:
        run: the run.
        bins: cells of the distribution.
        axes: two Matplotlib axes; None makes a figure.
    """
    figure, axes = canvas(axes, 2, (8, 4.4))
    energies = np.asarray(run.energies, np.float64)
    _lines(run, axes[0], energies)
    axes[0].set_xlabel("iteration")
    axes[0].set_ylabel("energy")
    _name_chains(axes[0])
    weights, flat = _used(run, energies)
    axes[1].hist(flat, bins=bins, weights=weights, color="C0")
    axes[1].set_xlabel("energy")
    axes[1].set_ylabel("weight")
    return figure


def _used(run: "Run", *values: np.ndarray) -> list[np.ndarray]:
    """Weights and values of draws with weight. Histograms refuse the NaN of diverged chains."""
    weights = normalized_weights(np.asarray(run.log_weights))
    return [one.reshape(-1)[weights.reshape(-1) > 0] for one in (weights, *values)]


def _lines(run: "Run", axis: Any, values: np.ndarray) -> None:
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


def _chosen(run: "Run", coordinates: Any) -> tuple[list[np.ndarray], list[str]]:
    """Values of coordinates, each with the axes of the log weights, and their names."""
    lead = run.log_weights.ndim
    shapes = shapes_of(run.draws, lead)
    size = sum(math.prod(shape) for shape in shapes.values())
    if coordinates is None:
        coordinates = tuple(range(min(size, 2)))
    asked = coordinates if isinstance(coordinates, (tuple, list)) else (coordinates,)
    names = coordinate_names(shapes) if any(isinstance(one, str) for one in asked) else []

    def places(one):
        """Numbers of a coordinate or of all coordinates of a leaf; empty if there is none."""
        if isinstance(one, str):
            return [place for place, name in enumerate(names) if name == one or name.startswith(f"{one}[")]
        return [int(one)] if isinstance(one, (int, np.integer)) and 0 <= one < size else []

    found = [places(one) for one in asked]
    if not all(found) or not found:
        remedy = 'Names are those of the summary, as "beta[3]" or "beta"; numbers are counted through the leaves.'
        refuse("coordinates", f"names, or numbers from 0 to {size - 1}", short(coordinates), remedy)
    kept, order = np.unique(np.concatenate(found), return_inverse=True)
    values = np.moveaxis(columns(run.draws, lead, kept), -1, 0)
    return [values[place] for place in order], [coordinate_name(shapes, int(kept[place])) for place in order]
