"""Figures of image experiments show every method that has a number."""

import numpy as np

from isotherm.demo.result import Row
from isotherm_thesis.experiments.images.pictures import draw_factors, draw_scores

ROWS = [
    Row.of_runs(method, metric, values)
    for method, metric, values in (
        ("SGHMC", "accuracy, logits", (64.0, 65.0)),
        ("low", "accuracy, logits", (64.0, 64.5)),
        ("high", "accuracy, logits", (66.0, 67.0)),
        ("high - SGHMC", "accuracy, logits", (2.0, 2.0)),
        ("low", "swaps", (30, 34)),
        ("high", "swaps", (400, 500)),
    )
]


def test_scores_have_a_line_for_every_method_and_none_for_differences():
    (axis,) = draw_scores(ROWS, "accuracy, logits", "accuracy").axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["SGHMC", "low", "high"]


def test_factors_are_in_order_beside_the_baseline():
    accuracy, swaps = draw_factors(ROWS, {"high": 1e5, "low": 1e4}, "SGHMC").axes
    for axis, means in ((accuracy, [64.25, 66.5]), (swaps, [32.0, 450.0])):
        lines = [line for line in axis.lines if line.get_marker() == "o"]
        np.testing.assert_array_equal(lines[0].get_xdata(), [1e4, 1e5])
        np.testing.assert_array_equal(lines[0].get_ydata(), means)
    assert accuracy.get_legend_handles_labels()[1] == ["SGHMC"]
