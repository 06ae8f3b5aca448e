"""Pictures show the numbers they are given, and their words do not overlap."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from isotherm.predictive.classification import calibration
from isotherm.predictive.plots import plot_entropies, plot_entropy_cdfs, plot_intervals, plot_reliability
from isotherm.predictive.regression import intervals

# Confidences 0.9, 0.7, 0.6 in bins of width 1/4: the first is right, the others are in one bin and half right.
P, Y = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]], [0, 0, 0]


def boxes(figure):
    """Where words are, after drawing."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    texts = [text for axis in figure.axes for text in (axis.xaxis.label, axis.yaxis.label, axis.title)]
    texts += [
        text for axis in figure.axes for child in axis.child_axes for text in (child.xaxis.label, child.yaxis.label)
    ]
    texts += [text for axis in figure.axes if axis.get_legend() for text in axis.get_legend().get_texts()]
    return [text.get_window_extent() for text in texts if text.get_text()], figure.bbox


def assert_no_overlap(figure):
    found, page = boxes(figure)
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1 for box in found)
    assert not any(a.overlaps(b) for i, a in enumerate(found) for b in found[:i])


def test_reliability_shows_the_bins():
    found = calibration(P, Y, num_bins=4, weights=[2.0, 1.0, 3.0])
    figure = plot_reliability(found)
    (axis,) = figure.axes
    # Bars of the bins that are not empty: (0.5, 0.75] is right with share 3/4, (0.75, 1] always.
    assert [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in axis.patches] == [
        (0.5, 0.25, 0.75),
        (0.75, 0.25, 1),
    ]
    np.testing.assert_allclose([bar.get_height() for bar in axis.child_axes[0].patches], [0, 0, 4 / 6, 2 / 6])
    # Mean confidence (0.7 + 3 * 0.6) / 4 = 0.625: (4 * 0.125 + 2 * 0.1) / 6 = 11.7 %.
    assert axis.get_title() == "ECE 11.7 %"
    assert_no_overlap(figure)


def test_cdfs_show_the_weights():
    figure = plot_entropy_cdfs({"plain": [1.0, 2.0], "weighted": [0.5, 1.0]}, weights={"weighted": [1.0, 3.0]})
    (axis,) = figure.axes
    first, second = axis.lines
    np.testing.assert_allclose(first.get_xydata(), [[0, 0], [1, 0.5], [2, 1], [2, 1]])
    np.testing.assert_allclose(second.get_xydata(), [[0, 0], [0.5, 0.25], [1, 1], [2, 1]])
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["plain", "weighted"]
    assert {line.get_drawstyle() for line in axis.lines} == {"steps-post"}
    assert_no_overlap(figure)


def test_pictures_draw_into_a_given_axis():
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    found = calibration(P, Y)
    assert plot_reliability(found, left) is figure
    assert plot_reliability(found, middle) is figure
    assert plot_entropy_cdfs({"one": [0.1, 0.2], "a model of a long name": [0.3]}, axis=right) is figure
    assert_no_overlap(figure)


def test_refusals():
    with pytest.raises(ValueError, match=r"`values` must be a dictionary with an entry; got {}. Give the entropies"):
        plot_entropy_cdfs({})
    with pytest.raises(ValueError, match=r"`weights` must be named as `values` are; got \['b'\]. Use the same names"):
        plot_entropy_cdfs({"a": [1.0]}, {"b": [1.0]})
    with pytest.raises(ValueError, match=r"`weights` must be of shape \(1,\)"):
        plot_entropy_cdfs({"a": [1.0]}, {"a": [1.0, 2.0]})


def test_entropies_inside_and_outside_are_histograms_of_shares():
    figure = plot_entropies([0.0, 0.0, 1.0, 4.0], [3.0, 4.0], outside_weights=[1.0, 3.0], bins=4)
    (axis,) = figure.axes
    heights = {patch.get_label(): patch.get_xy() for patch in axis.patches}
    assert list(heights) == ["inside (4)", "outside (2)"]
    # Cells of width 1 from 0 to 4: the outline of a filled step has every height twice.
    for name, shares in (("inside (4)", [0.5, 0.25, 0, 0.25]), ("outside (2)", [0, 0, 0, 1.0])):
        np.testing.assert_allclose(heights[name][1:9, 1], np.repeat(shares, 2))
    weighted = plot_entropies([1.0], [0.0, 1.0, 2.0], outside_weights=[1.0, 0.0, 3.0], bins=2).axes[0]
    np.testing.assert_allclose(weighted.patches[1].get_xy()[1:5, 1], [0.25, 0.25, 0.75, 0.75])
    assert weighted.get_title() == "AUROC 0.750"
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["inside (4)", "outside (2)"]
    assert_no_overlap(figure)


# Two draws of three examples, out of order; with weights (3, 1) their means are 1.5, 0.5 and 2.5.
MEANS, PLACES, SHARES = [[1.0, 0.0, 2.0], [3.0, 2.0, 4.0]], [2.0, 1.0, 3.0], [3.0, 1.0]


def test_intervals_are_a_band_where_examples_have_places():
    targets = [1.5, 9.0, 2.5]
    figure = plot_intervals(MEANS, targets, at=PLACES, level=0.8, draw_weights=SHARES, noise=0.5)
    (axis,) = figure.axes
    mean, inside, outside = axis.lines
    np.testing.assert_allclose(mean.get_xydata(), [[1, 0.5], [2, 1.5], [3, 2.5]])
    np.testing.assert_allclose(inside.get_xydata(), [[2, 1.5], [3, 2.5]])
    np.testing.assert_allclose(outside.get_xydata(), [[1, 9]])
    low, high = intervals(MEANS, 0.8, SHARES, 0.5)
    (band,) = axis.collections[0].get_paths()
    corners = {(round(x, 6), round(y, 6)) for x, y in band.vertices}
    assert corners >= {(x, round(y, 6)) for ends in (low, high) for x, y in zip(PLACES, ends, strict=True)}
    assert axis.get_title() == "66.7 % of 3 targets inside"
    names = ["80 % interval of a target", "predicted mean", "target", "target outside"]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == names
    assert_no_overlap(figure)


def test_intervals_stand_at_their_means_otherwise():
    figure = plot_intervals(MEANS, [1.5, 9.0, 2.5], draw_weights=SHARES)
    (axis,) = figure.axes
    low, high = intervals(MEANS, 0.9, SHARES)
    bars = [[tuple(end) for end in bar] for bar in axis.collections[0].get_segments()]
    assert bars == [[(x, a), (x, b)] for x, a, b in zip((1.5, 0.5, 2.5), low, high, strict=True)]
    # Intervals of the mean promise nothing of targets: none is called outside.
    assert axis.get_title() == ""
    assert sorted(text.get_text() for text in axis.get_legend().get_texts()) == ["90 % interval of the mean", "target"]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("predicted mean", "target")
    assert_no_overlap(figure)


def test_refusals_of_entropies_and_intervals():
    with pytest.raises(ValueError, match="`bins` must be an integer of at least 1"):
        plot_entropies([0.1], [0.2], bins=0)
    with pytest.raises(ValueError, match=r"`outside` must be of shape \(examples,\)"):
        plot_entropies([0.1], [[0.2]])
    with pytest.raises(ValueError, match=r"`at` must be of shape \(3,\); got shape \(2,\)"):
        plot_intervals(MEANS, at=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"`targets` must be of shape \(3,\); got shape \(1,\)"):
        plot_intervals(MEANS, [1.0])
