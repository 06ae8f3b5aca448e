"""The style of all figures, and panels that several of them share.

A figure is as wide as a page of the documentation, where its text is then read at the size that is set here. A method has one color
in all figures. Legends stand below the panels.
"""

import itertools
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from isotherm.demo.result import Row
from isotherm.demo.scoring import variations_of
from isotherm.predictive.landscape import Landscape
from isotherm.run.run import Run
from isotherm.targets.target import Target

# Inches: 900 pixels at the 110 to an inch that `reproduce` writes.
WIDTH = 8.2
SMALL = 9.0
TRUTH = "black"
THESIS = "#444444"
_STYLE: Any = {
    "font.size": 9.5,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.5,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.edgecolor": "#666666",
    "lines.linewidth": 1.4,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
}
# The first name that a method's own contains decides, so that pICSGLD has the color of ICSGLD.
_COLORS = {
    "AWSGLD": "#c1121f",
    "AW-": "#c1121f",
    "ICSG": "#d55e00",
    "CSGLD": "#cc79a7",
    "CSGHMC": "#cc79a7",
    "DEO*": "#7b3fa0",
    "DEO": "#c39bd3",
    "VR": "#7b3fa0",
    "plain F": "#e69f00",
    "reSG": "#332288",
    "F = 1": "#332288",
    "F = 2": "#7788dd",
    "F = 4": "#88ccee",
    "naive": "#e69f00",
    "SEO": "#e69f00",
    "ADJ": "#999999",
    "cycSG": "#e69f00",
    "SVGD": "#8c564b",
    "pSGLD": "#56b4e9",
    "SGHMC": "#009e73",
    "SGLD": "#0072b2",
    "M-SGD": "#555555",
    "ConstSGD": "#777777",
    "EpsGreedy": "#b5a642",
    "Dropout": "#8c564b",
    "SGD": "#999999",
}
_BINS = 100
# Of a legend, on a line of the page.
_LETTERS = 125
# Decorates functions that draw: sizes of titles and legends are read when these are made.
styled = matplotlib.rc_context(_STYLE)


def color_of(method: str) -> str:
    """The color of a method, the same in all figures."""
    return next((color for name, color in _COLORS.items() if name in method), "#666666")


def page(rows: int, columns: int, height: float = 2.8, **grid: Any) -> tuple[Figure, Any]:
    """A figure of the width of a page with axes of shape (rows, columns); `height` is that of a row in inches."""
    return panels(rows, columns, (WIDTH / columns, height), **grid)


def mosaic(layout: Any, height: float, **grid: Any) -> tuple[Figure, dict[str, Any]]:
    """A figure of the width of a page with axes by name, laid out as by Matplotlib's `subplot_mosaic`; `height` is its own."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        return figure, figure.subplot_mosaic(layout, **grid)


def panels(rows: int, columns: int, size: tuple[float, float] = (3.3, 3.1), **grid: Any) -> tuple[Figure, Any]:
    """A figure with a grid of axes, always of shape (rows, columns); `size` is that of one panel in inches."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False, **grid)


def legend_below(figure: Figure, *axes: Any) -> None:
    """One legend for the whole figure, below its panels, of the labels in `axes`, in as many rows as the page needs."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    width = max(len(label) for label in found) + 7
    rows = -(-len(found) * width // _LETTERS)
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=-(-len(found) // rows),
        frameon=False,
        fontsize=SMALL,
    )


def color_bar(figure: Figure, drawn: Any, axes: Any, label: str) -> None:
    """A narrow color bar beside the axes."""
    bar = figure.colorbar(drawn, ax=axes, label=label, fraction=0.05, pad=0.02, format="%.2g")
    bar.ax.tick_params(labelsize=SMALL)


def show_truth(axis: Any, target: Target) -> float:
    """The true density of a target in the plane as a picture; returns its highest value, to use for others."""
    size = round(np.sqrt(len(target.truth.probabilities)))
    fine = target.truth.probabilities.reshape(_BINS, size // _BINS, _BINS, size // _BINS).sum(axis=(1, 3))
    _show(axis, fine, target, fine.max())
    axis.set_title("truth")
    return float(fine.max())


def show_draws(axis: Any, run: Run, target: Target, highest: float, title: str) -> None:
    """The weighted histogram of the first run in the plane, on the scale of the truth."""
    flat = np.asarray(run.draws)[0].reshape(-1, 2)
    log_weights = np.asarray(run.log_weights)[0].reshape(-1)
    span = [list(target.span)] * 2
    seen, _, _ = np.histogram2d(flat[:, 0], flat[:, 1], _BINS, span, weights=np.exp(log_weights - log_weights.max()))
    _show(axis, seen / seen.sum(), target, highest)
    axis.set_title(title)


def show_landscape(axis: Any, landscape: Landscape, limits: tuple[float, float], title: str) -> Any:
    """Losses in the plane of the paths, on the scale `limits` of their log10, with the paths, which start at their circles."""
    shown = np.log10(np.maximum(landscape.losses, 10 ** limits[0]))
    levels = np.linspace(*limits, 13)
    drawn = axis.contourf(landscape.xs, landscape.ys, shown, levels=levels, cmap="Greys", extend="both")
    for path, color in zip(landscape.paths, itertools.cycle(("#ff7f0e", "#00a6a6")), strict=False):
        axis.plot(*path.T, color=color, linewidth=1.0)
        axis.plot(*path[0], "o", color=color, markersize=6, markeredgecolor="black")
    axis.grid(visible=False)
    axis.set_title(title)
    return drawn


@styled
def draw_maps(runs: dict[str, Run], target: Target) -> Figure:
    """The truth, and for every method its first run; titles have the total variation over modes, its mean and error over runs."""
    number = 1 + len(runs)
    # Whichever leaves fewer places empty.
    columns = min((3, 4), key=lambda count: (-number % count, count))
    figure, axes = page(-(-number // columns), columns, 9.8 / columns)
    highest = show_truth(axes.flat[0], target)
    axes.flat[0].set_title("truth\n")
    for axis, (name, found) in zip(axes.flat[1:], runs.items(), strict=False):
        score = Row.of_runs(name, "total variation", variations_of(found, target))
        show_draws(axis, found, target, highest, f"{name}\nTV {score.text}")
    for axis in axes.flat[number:]:
        axis.set_visible(False)
    return figure


def _show(axis: Any, masses: np.ndarray, target: Target, highest: float) -> None:
    low, high = target.span
    axis.imshow(masses.T, origin="lower", extent=(low, high, low, high), cmap="magma", vmin=0.0, vmax=highest)
    axis.grid(visible=False)
    ticks = range(2 * int(low / 2), int(high) + 1, 2)
    axis.set(xticks=ticks, yticks=ticks)
