"""Pictures show the numbers they are given, and their words do not overlap."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from isotherm.predictive.classification import calibration
from isotherm.predictive.plots import plot_entropy_cdfs, plot_reliability

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
