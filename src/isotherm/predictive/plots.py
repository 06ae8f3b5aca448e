"""Plots of calibration, entropies and intervals, with Matplotlib."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_integer, check_type, refuse
from isotherm.predictive.checks import check_values
from isotherm.predictive.classification import Calibration
from isotherm.predictive.ood import auroc, checked_sides, entropy_cdf
from isotherm.predictive.regression import coverage, intervals, predictive_mean
from isotherm.run.plots import canvas


@checked_call(prefix="iso.predictive.")
def plot_reliability(calibration: Calibration, axis: Any = None) -> Any:
    """Accuracy against confidence, with the share of examples in each bin below. Returns Matplotlib's figure.

    Bars below the dashed diagonal are over-confident. The title holds the expected calibration error.

    Args:
        calibration: the result of `calibration`.
        axis: where to draw, with an inset below it for the shares; a new figure if None.

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
    axis.plot([0, 1], [0, 1], color="0.3", linestyle="--", linewidth=1, label="calibrated")
    axis.legend(loc="upper left", frameon=False)
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
    """Distribution functions of entropies by name; on outliers the lower curve is better. Returns Matplotlib's figure.

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
        # Every curve spans the whole axis.
        axis.step(np.concatenate([[start], grid, [end]]), np.concatenate([[0.0], cdf, [1.0]]), where="post", label=name)
    axis.set(xlabel="entropy (nats)", ylabel="share of examples at or below", ylim=(0, 1.02))
    _legend_outside(axis)
    return figure


@checked_call(prefix="iso.predictive.")
def plot_entropies(
    inside: ArrayLike,
    outside: ArrayLike,
    inside_weights: ArrayLike | None = None,
    outside_weights: ArrayLike | None = None,
    bins: int = 30,
    axis: Any = None,
) -> Any:
    """Histograms of entropies of examples like the training data and of outliers. Returns Matplotlib's figure.

    The less they overlap, the better the entropy separates them. The title holds the area under the ROC curve.

    Args:
        inside: entropies, or another score, of examples like the training data.
        outside: the same for outliers, which should be higher.
        inside_weights: non-negative weights of the inside examples; equal if None.
        outside_weights: the same for the outside examples.
        bins: cells from the lowest to the highest value.
        axis: where to draw; a new figure if None.

    Example:
        >>> figure = plot_entropies([0.1, 0.2, 0.6], [0.5, 0.9])
        >>> figure.axes[0].get_title()
        'AUROC 0.833'
    """
    check_integer("bins", bins, 1, "Give the number of cells.")
    area = auroc(inside, outside, inside_weights, outside_weights)
    low, v, high, w = checked_sides(inside, outside, inside_weights, outside_weights)
    edges = np.histogram_bin_edges(np.concatenate([low, high]), bins)
    figure, (axis,) = canvas(axis, 1, (6.4, 3.6))
    for color, name, values, weights in (("C0", "inside", low, v), ("C1", "outside", high, w)):
        style: dict[str, Any] = {"color": color, "alpha": 0.5, "edgecolor": color, "histtype": "stepfilled"}
        axis.hist(values, edges, weights=weights / weights.sum(), label=f"{name} ({len(values):,})", **style)
    axis.set(xlabel="entropy (nats)", ylabel="share of examples", title=f"AUROC {area:.3f}")
    _legend_outside(axis)
    return figure


@checked_call(prefix="iso.predictive.")
def plot_intervals(
    means: ArrayLike,
    targets: ArrayLike | None = None,
    at: ArrayLike | None = None,
    level: float = 0.9,
    draw_weights: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    axis: Any = None,
) -> Any:
    """Predicted means of a regression with central intervals, and the targets. Returns Matplotlib's figure.

    With `at`, such as the input of a one-dimensional regression, a curve inside a band; without it, an interval for each
    example against its predicted mean, with targets scattered about the dashed diagonal. With `noise`, targets outside their
    intervals are marked, and the title has the share of those inside.

    Args:
        means: predictions of the draws, shape (draws, examples), as `outputs_of_draws` gives them.
        targets: observed values, one for each example; None draws none.
        at: horizontal positions of the examples; None is their predicted means.
        level: probability inside, above 0 and below 1.
        draw_weights: importance weights of the draws.
        noise: standard deviations of the targets, as for `intervals`; without it the intervals are of the mean.
        axis: where to draw; a new figure if None.

    Example:
        >>> figure = plot_intervals([[0.0, 1.0], [0.4, 1.4]], [0.2, 3.0], at=[0.0, 1.0], noise=0.5)
        >>> figure.axes[0].get_title()
        '50 % of 2 targets inside'
    """
    low, high = intervals(means, level, draw_weights, noise)
    middle = predictive_mean(means, draw_weights)
    places = middle if at is None else check_values("at", at, len(middle))
    figure, (axis,) = canvas(axis, 1, (6.4, 3.6))
    inside = f"{100 * level:g} % interval of " + ("the mean" if noise is None else "a target")
    if at is None:
        axis.errorbar(middle, middle, (middle - low, high - middle), fmt="none", ecolor="C0", alpha=0.4, label=inside)
        axis.axline((middle[0], middle[0]), slope=1, color="0.3", linestyle="--", linewidth=1)
    else:
        order = np.argsort(places)
        axis.fill_between(places[order], low[order], high[order], color="C0", alpha=0.25, linewidth=0, label=inside)
        axis.plot(places[order], middle[order], color="C0", label="predicted mean")
    if targets is not None:
        values = check_values("targets", targets, len(middle))
        # Intervals of the mean do not claim to contain targets.
        is_outside = ((values < low) | (high < values)) & (noise is not None)
        for name, chosen, color in (("target", ~is_outside, "0.2"), ("target outside", is_outside, "C3")):
            if chosen.any():
                axis.plot(places[chosen], values[chosen], ".", color=color, markersize=4, label=name)
        if noise is not None:
            axis.set_title(f"{100 * coverage(low, high, values):.3g} % of {len(values):,} targets inside")
    axis.set(xlabel="predicted mean" if at is None else "input", ylabel="target")
    _legend_outside(axis)
    return figure


def _legend_outside(axis: Any) -> None:
    """A legend beside the axis: data may be in any corner."""
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
