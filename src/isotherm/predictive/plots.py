"""Pictures of calibration and of entropies, with Matplotlib."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_type, refuse
from isotherm.predictive.classification import Calibration
from isotherm.predictive.ood import entropy_cdf
from isotherm.runs.canvas import canvas


@checked_call(prefix="iso.predictive.")
def plot_reliability(calibration: Calibration, axis: Any = None) -> Any:
    """Accuracy against confidence, with the share of examples in each bin below. Returns Matplotlib's figure.

    Bars that end below the dashed diagonal are over-confident. The title holds the expected calibration error.

    Args:
        calibration: what `calibration` returned.
        axis: where to draw; a new figure if None. The shares go into an inset below it.

    Example:
        >>> from isotherm.predictive.classification import calibration
        >>> figure = plot_reliability(calibration([[0.9, 0.1], [0.3, 0.7]], [0, 0]))
        >>> figure.axes[0].get_title()
        'ECE 40.0 %'
    """
    remedy = "Call `iso.predictive.calibration(probabilities, labels)` first."
    check_type("calibration", calibration, Calibration, "what `iso.predictive.calibration` gave", remedy)
    figure, (axis,) = canvas(axis, 1, (4.2, 4.8))
    edges, is_used = calibration.edges, calibration.mass > 0
    left, width = edges[:-1], np.diff(edges)
    style: dict[str, Any] = {"align": "edge", "edgecolor": "white", "linewidth": 0.6}
    axis.bar(left[is_used], calibration.accuracy[is_used], width[is_used], color="C0", **style)
    axis.plot([0, 1], [0, 1], color="0.3", linestyle="--", linewidth=1)
    axis.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy", title=f"ECE {100 * calibration.error:.1f} %")
    axis.tick_params(labelbottom=False)
    below = axis.inset_axes((0.0, -0.24, 1.0, 0.2))
    below.bar(left, calibration.mass, width, color="0.6", **style)
    below.set(xlim=(0, 1), xlabel="confidence", ylabel="share")
    return figure


@checked_call(prefix="iso.predictive.")
def plot_entropy_cdfs(
    values: Mapping[str, ArrayLike], weights: Mapping[str, ArrayLike] | None = None, axis: Any = None
) -> Any:
    """Distribution functions of entropies, one step curve for each name. Returns Matplotlib's figure.

    On outliers the lower curve is the better one.

    Args:
        values: entropies of examples by the name of the model.
        weights: weights of the examples by the same names; equal where a name is missing.
        axis: where to draw; a new figure if None.

    Example:
        >>> figure = plot_entropy_cdfs({"one model": [0.1, 0.4], "average": [0.5, 0.9]})
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['one model', 'average']
    """
    weights = {} if weights is None else weights
    for name, given in (("values", values), ("weights", weights)):
        check_type(name, given, Mapping, "a dictionary by the names of models", 'Write {"average": entropies}, say.')
    if not values:
        refuse("values", "a dictionary with an entry", "{}", "Give the entropies of at least one model.")
    if unknown := set(weights) - set(values):
        refuse("weights", "named as `values` are", f"{sorted(unknown)}", "Use the same names.")
    curves = {name: entropy_cdf(each, weights=weights.get(name)) for name, each in values.items()}
    start = min(0.0, *(grid[0] for grid, _ in curves.values()))
    end = max(grid[-1] for grid, _ in curves.values())
    figure, (axis,) = canvas(axis, 1, (6.4, 3.6))
    for name, (grid, cdf) in curves.items():
        # Every curve spans the whole axis, so that none seems to stop early.
        axis.step(np.concatenate([[start], grid, [end]]), np.concatenate([[0.0], cdf, [1.0]]), where="post", label=name)
    axis.set(xlabel="entropy (nats)", ylabel="share of examples at or below", ylim=(0, 1.02))
    # Outside, because a curve may pass through any corner.
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure
