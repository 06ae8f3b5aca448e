"""Figures of the two experiments with handwritten digits."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from isotherm_thesis.experiments.digits import DigitsConfig, Judged
from isotherm_thesis.experiments.figures import color_bar, color_of, page, show_landscape, styled
from isotherm_thesis.landscape import Landscape, project


def draw_losses(axis: Any, firsts: dict[str, Judged]) -> None:
    """The training losses of the first chain of every method."""
    for name, judged in firsts.items():
        axis.plot(judged.losses[0], linewidth=0.8, color=color_of(name), label=name)
    axis.set(xlabel="epoch", ylabel="training loss", yscale="log")


def draw_ranges(axis: Any, found: dict[str, list[Judged]]) -> None:
    """For every run of every method the 5 to 95 % range of its losses over the last half, with the median and the lowest."""
    for place, (name, runs) in enumerate(found.items()):
        for number, judged in enumerate(runs):
            last = judged.losses[:, judged.losses.shape[1] // 2 :]
            height = place + 0.6 * ((number + 0.5) / len(runs) - 0.5)
            low, middle, high = np.quantile(last, [0.05, 0.5, 0.95])
            axis.plot([low, high], [height, height], color=color_of(name), linewidth=2.0)
            axis.plot(middle, height, "o", color=color_of(name), markersize=3.5)
            axis.plot(last.min(), height, "|", color=color_of(name), markersize=5)
    axis.set(xscale="log", xlabel="training loss", yticks=range(len(found)), yticklabels=list(found))
    axis.set_title("losses of the last half: 5 to 95 %, lowest")
    axis.invert_yaxis()


def landscape_of(config: DigitsConfig, potential: Any, judged: Judged, num_examples: int = 1_000) -> Landscape:
    """The plane of the paths of a method's chains, with mean losses of the first training images on a grid."""
    images, labels = (jnp.asarray(part[:num_examples]) for part in potential.data)

    def loss(weights):
        outputs = potential.outputs(weights, images, is_training=True)
        return jnp.mean(potential.loss(outputs, labels))

    paths = [
        {name: leaf[chain] for name, leaf in judged.kept.items()}
        for chain in range(len(next(iter(judged.kept.values()))))
    ]
    return project(paths, loss, grid=config.grid, num_tuning=config.num_tuning, tuning_step=0.01)


@styled
def draw_landscapes(landscapes: dict[str, Landscape]) -> Figure:
    """The landscapes of several methods on one scale, three to a row."""
    figure, axes = page(-(-len(landscapes) // 3), 3, 2.6)
    every = np.log10(np.maximum(np.concatenate([one.losses.ravel() for one in landscapes.values()]), 1e-12))
    low, high = np.quantile(every, [0.01, 0.99])
    limits = float(low), float(max(high, low + 1e-3))
    drawn = [
        show_landscape(axis, landscape, limits, name)
        for axis, (name, landscape) in zip(axes.flat, landscapes.items(), strict=False)
    ]
    for axis in axes.flat[len(landscapes) :]:
        axis.set_visible(False)
    color_bar(figure, drawn[-1], axes, "log10 of the mean loss")
    figure.supxlabel("first direction in weight space", fontsize=9.5)
    figure.supylabel("second direction", fontsize=9.5)
    return figure
