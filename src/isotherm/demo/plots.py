"""Style of all figures, which are as wide as a page of the documentation, and maps of draws in the plane."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from isotherm.demo.result import Row, variations_of
from isotherm.run.run import Run
from isotherm.targets.target import Target

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
_BINS = 100


def page(rows: int, columns: int, height: float = 2.8, **grid: Any) -> tuple[Figure, Any]:
    """A figure as wide as a page, with axes of shape (rows, columns) and rows `height` inches high."""
    return panels(rows, columns, (WIDTH / columns, height), **grid)


@styled
def panels(rows: int, columns: int, size: tuple[float, float] = (3.3, 3.1), **grid: Any) -> tuple[Figure, Any]:
    """A figure with axes of shape (rows, columns) in panels of `size` inches."""
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **grid)


@styled
def draw_maps(runs: dict[str, Run], target: Target) -> Figure:
    """True density and weighted histogram of the first run of each method, titled with the total variation over modes.

    Draws are shown on the color scale of the truth.
    """
    number = 1 + len(runs)
    # 3 or 4 columns, whichever leaves fewer places empty.
    columns = min((3, 4), key=lambda count: (-number % count, count))
    figure, axes = page(-(-number // columns), columns, 9.8 / columns)
    size = round(np.sqrt(len(target.truth.probabilities)))
    truth = target.truth.probabilities.reshape(_BINS, size // _BINS, _BINS, size // _BINS).sum(axis=(1, 3))
    _show(axes.flat[0], truth, target, truth.max(), "truth\n")
    for axis, (name, run) in zip(axes.flat[1:], runs.items(), strict=False):
        x, y = np.asarray(run.draws)[0].reshape(-1, 2).T
        log_weights = np.asarray(run.log_weights)[0].reshape(-1)
        weights = np.exp(log_weights - log_weights.max())
        masses, _, _ = np.histogram2d(x, y, _BINS, [list(target.span)] * 2, weights=weights)
        score = Row.of_runs(name, "total variation", variations_of(run, target))
        _show(axis, masses / masses.sum(), target, truth.max(), f"{name}\nTV {score.text}")
    for axis in axes.flat[number:]:
        axis.set_visible(False)
    return figure


def _show(axis: Any, masses: np.ndarray, target: Target, highest: float, title: str) -> None:
    low, high = target.span
    axis.imshow(masses.T, origin="lower", extent=(low, high, low, high), cmap="magma", vmin=0.0, vmax=highest)
    axis.grid(visible=False)
    ticks = range(2 * int(low / 2), int(high) + 1, 2)
    axis.set(xticks=ticks, yticks=ticks, title=title)
