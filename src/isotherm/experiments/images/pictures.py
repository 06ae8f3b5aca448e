"""Figures of the image experiments, from the records of cells."""

import numpy as np
from matplotlib.figure import Figure

from isotherm.experiments.images.study import Records
from isotherm.experiments.plots import panels


def draw_averages(records: Records) -> Figure:
    """Accuracy and likelihood of the running average against epochs, the first seed of every method whose course is known."""
    figure, axes = panels(1, 3, (4.3, 3.4))
    for label, cells in _with_curves(records).items():
        seen = cells[0]["curves"]
        axes[0, 0].plot(seen["epoch"], seen["accuracy, logits"], ".-", markersize=3, linewidth=0.9, label=label)
        axes[0, 1].plot(seen["epoch"], seen["NLL, logits"], ".-", markersize=3, linewidth=0.9, label=label)
        axes[0, 2].plot(seen["epoch"], seen["accuracy, single"], ".-", markersize=3, linewidth=0.9, label=label)
    axes[0, 0].set(xlabel="epoch", ylabel="accuracy in %", title="average of networks so far")
    axes[0, 1].set(xlabel="epoch", ylabel="mean NLL", title="average of networks so far")
    axes[0, 2].set(xlabel="epoch", ylabel="accuracy in %", title="single networks")
    axes[0, 0].legend(fontsize=7)
    return figure


def draw_variances(records: Records) -> Figure:
    """The variance of the difference of swap energies, and the exact correction over the loss, against epochs."""
    figure, axes = panels(1, 2, (4.6, 3.4))
    for label, cells in records.items():
        report = cells[0]["coupling"]
        if "variance over time" in report:
            seen, ratio = report["variance over time"], report["correction over time"]
            axes[0, 0].plot(seen["epoch"], seen["variance"], linewidth=1.0, label=label)
            axes[0, 1].plot(ratio["epoch"], ratio["ratio"], linewidth=1.0, label=label)
    axes[0, 0].set(xlabel="epoch", ylabel="variance", yscale="log", title="difference of swap energies")
    axes[0, 1].set(xlabel="epoch", ylabel="ratio", yscale="log", title="correction at F = 1 over loss")
    if axes[0, 0].lines:
        axes[0, 0].legend(fontsize=7)
    return figure


def draw_entropies(records: Records) -> Figure:
    """Distribution functions of entropies on images of no class, with logits as they are and divided by two."""
    figure, axes = panels(1, 2, (4.4, 3.4))
    for label, cells in _with_curves(records).items():
        for axis, scale in zip(axes[0], ("T = 1", "T = 2"), strict=True):
            curves = [cell["entropies"][scale] for cell in cells]
            axis.plot(cells[0]["entropies"]["entropy"], np.mean(curves, axis=0), label=label)
            axis.set(xlabel="entropy", ylabel="share of images", title=scale)
    axes[0, 0].legend(fontsize=7)
    return figure


def draw_ladders(records: Records) -> Figure:
    """Step sizes of the rungs over the lowest, and acceptances of the pairs, at the end."""
    figure, axes = panels(1, 2, (4.4, 3.4))
    for label, cells in records.items():
        report = cells[0]["coupling"]
        if "step size ratios" in report:
            axes[0, 0].plot(report["step size ratios"], "o-", markersize=3, label=label)
            axes[0, 1].plot(report["acceptance of pairs"], "o-", markersize=3, label=label)
    axes[0, 0].set(xlabel="rung", ylabel="over the lowest", title="learning rates at the end")
    axes[0, 1].set(xlabel="pair", ylabel="rate", title="acceptance")
    if axes[0, 0].lines:
        axes[0, 0].legend(fontsize=7)
    return figure


def _with_curves(records: Records) -> Records:
    """Without the cells of which only the scores were kept."""
    kept = {label: [cell for cell in cells if cell["curves"]] for label, cells in records.items()}
    return {label: cells for label, cells in kept.items() if cells}
