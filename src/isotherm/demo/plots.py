"""Maps of draws in the plane."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from isotherm.demo.result import Row, variations_of
from isotherm.run.run import Run
from isotherm.targets.target import Target

_BINS = 100
_WIDTH = 8.2


def draw_maps(runs: dict[str, Run], target: Target) -> Figure:
    """True density and weighted histogram of the first run of each method, titled with the total variation over modes.

    Draws are shown on the color scale of the truth.
    """
    number = 1 + len(runs)
    # 3 or 4 columns, whichever leaves fewer places empty.
    columns = min((3, 4), key=lambda count: (-number % count, count))
    rows = -(-number // columns)
    figure = Figure(figsize=(_WIDTH, 9.8 / columns * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    size = round(np.sqrt(len(target.truth.probabilities)))
    truth = target.truth.probabilities.reshape(_BINS, size // _BINS, _BINS, size // _BINS).sum(axis=(1, 3))
    drawn = _show(axes.flat[0], truth, target, truth.max(), "truth\n")
    for axis, (name, run) in zip(axes.flat[1:], runs.items(), strict=False):
        x, y = np.asarray(run.draws)[0].reshape(-1, 2).T
        log_weights = np.asarray(run.log_weights)[0].reshape(-1)
        weights = np.exp(log_weights - log_weights.max())
        masses, _, _ = np.histogram2d(x, y, _BINS, [list(target.span)] * 2, weights=weights)
        score = Row.of_runs(name, "total variation", variations_of(run, target))
        _show(axis, masses / masses.sum(), target, truth.max(), f"{name}\nTV {score.text}")
    for axis in axes.flat[number:]:
        axis.set_visible(False)
    bar = figure.colorbar(drawn, ax=axes, fraction=0.02, pad=0.01, extend="max", format="%.2g")
    bar.set_label("probability of a cell", fontsize=9.0)
    bar.ax.tick_params(labelsize=9.0)
    return figure


def _show(axis: Any, masses: np.ndarray, target: Target, highest: float, title: str) -> Any:
    low, high = target.span
    drawn = axis.imshow(masses.T, origin="lower", extent=(low, high, low, high), cmap="magma", vmin=0.0, vmax=highest)
    axis.spines[["top", "right"]].set_visible(False)
    ticks = range(2 * int(low / 2), int(high) + 1, 2)
    axis.set(xticks=ticks, yticks=ticks)
    axis.set_title(title, fontsize=10.0)
    axis.tick_params(labelsize=9.0)
    return drawn
