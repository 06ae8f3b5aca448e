"""Panels that several figures share."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from isotherm.experiments.scoring import variations_of
from isotherm.runs.run import Run
from isotherm.targets.target import Target

_BINS = 100


def panels(rows: int, columns: int, size: tuple[float, float] = (3.3, 3.1)) -> tuple[Figure, Any]:
    """A figure with a grid of axes, always of shape (rows, columns); `size` is that of one panel in inches."""
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


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


def draw_maps(runs: dict[str, Run], target: Target, between: str = ": ") -> Figure:
    """The truth, and for every method its first run with the total variation over modes; `between` parts the two in titles."""
    figure, (axes,) = panels(1, 1 + len(runs), (2.6, 2.9))
    highest = show_truth(axes[0], target)
    for axis, (name, found) in zip(axes[1:], runs.items(), strict=True):
        variation = variations_of(found, target)[0]
        show_draws(axis, found, target, highest, f"{name}{between}TV {variation:.2f}")
    return figure


def _show(axis: Any, masses: np.ndarray, target: Target, highest: float) -> None:
    low, high = target.span
    axis.imshow(masses.T, origin="lower", extent=(low, high, low, high), cmap="magma", vmin=0.0, vmax=highest)
    axis.set_xticks(range(int(low), int(high) + 1))
    axis.set_yticks(range(int(low), int(high) + 1))
