"""Style of the experiments' figures, which are as wide as a page. A method has one color in all; legends are below the panels."""

import itertools
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from isotherm_thesis.landscape import Landscape

# Inches: 900 pixels at 110 dpi, the resolution of `isotherm reproduce`.
WIDTH = 8.2
SMALL = 9.0
STYLE: Any = {
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
# Decorator of drawing functions: Matplotlib reads the sizes of titles and legends when it creates them.
styled = matplotlib.rc_context(STYLE)
TRUTH = "black"
THESIS = "#444444"
# By the first key in the name of a method: pICSGLD has the color of ICSGLD.
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
# Letters per line of a legend.
_LETTERS = 125


def color_of(method: str) -> str:
    """Color of a method, the same in all figures."""
    return next((color for name, color in _COLORS.items() if name in method), "#666666")


def page(rows: int, columns: int, height: float = 2.8, **grid: Any) -> tuple[Figure, Any]:
    """A figure as wide as a page, with axes of shape (rows, columns) and rows `height` inches high."""
    return panels(rows, columns, (WIDTH / columns, height), **grid)


@styled
def panels(rows: int, columns: int, size: tuple[float, float] = (3.3, 3.1), **grid: Any) -> tuple[Figure, Any]:
    """A figure with axes of shape (rows, columns) in panels of `size` inches."""
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **grid)


@styled
def mosaic(layout: Any, height: float, **grid: Any) -> tuple[Figure, dict[str, Any]]:
    """A figure as wide as a page and `height` inches high, with axes by name in Matplotlib's `subplot_mosaic`."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplot_mosaic(layout, **grid)


def legend_below(figure: Figure, *axes: Any) -> None:
    """One legend below all panels, with the labels in `axes`, in as many rows as needed."""
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


def show_landscape(axis: Any, landscape: Landscape, limits: tuple[float, float], title: str) -> Any:
    """Losses in the plane of the paths, with log10 between `limits`, and the paths, which start at circles."""
    shown = np.log10(np.maximum(landscape.losses, 10 ** limits[0]))
    levels = np.linspace(*limits, 13)
    drawn = axis.contourf(landscape.xs, landscape.ys, shown, levels=levels, cmap="Greys", extend="both")
    for path, color in zip(landscape.paths, itertools.cycle(("#ff7f0e", "#00a6a6")), strict=False):
        axis.plot(*path.T, color=color, linewidth=1.0)
        axis.plot(*path[0], "o", color=color, markersize=6, markeredgecolor="black")
    axis.grid(visible=False)
    axis.set_title(title)
    return drawn
