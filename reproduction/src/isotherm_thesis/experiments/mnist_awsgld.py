"""Digits 0 to 4 by AWSGLD and its rivals: losses, multipliers, accuracies, uncertainty on digits 5 to 9 (Deng 2021, L2504).

Two classes, 0 and 1, for paths of two chains of each method. Losses are N times the mean cross-entropy of the augmented mini-batch
that the sampler saw at the end of an epoch. All runs of a method are one program; runs of two methods with the same number start
at the same weights, and differences are taken between them.

Averages of AWSGLD are not weighted: its weights are Psi^zeta with zeta = 10^4, under which a single network has all of the weight.
So they are averages over what it visits, not over the posterior; rivals have no weights.

Differs from the thesis:
    It gives neither zeta nor step sizes here. Those of the rivals are the ones with the lowest training loss on other seeds,
    AWSGLD has SGLD's, and its zeta was chosen by the range of its losses.
    10^4 bins of width 10 instead of 10^6: they reach a loss of 10^5, twice that of a network that knows nothing.
    Theta starts as a ramp and its gain is constant, as in the author's code, which has neither a schedule for it nor a limit
    on displacements; without one AWSGLD diverged here.
    Batches hold 2,500 digits below 5; the author filters them out of batches of 5,000 of all digits, whose number then varies.
    Five runs; the thesis shows one.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import isotherm as iso
from isotherm.contour import Partition, RegularizedWeights
from isotherm.demo.result import Row
from isotherm.predictive import auroc, entropy_cdf
from isotherm_thesis.experiments.digits import (
    QUICK_SETTINGS,
    DigitsConfig,
    Judged,
    finished_runs,
    load_digits,
    loss_rows,
    potential_of,
    ratio_of_ranges,
    sample_and_judge,
)
from isotherm_thesis.experiments.digits_figures import draw_landscapes, draw_losses, draw_ranges, landscape_of
from isotherm_thesis.experiments.figures import color_of, legend_below, page, styled
from isotherm_thesis.experiments.flattening import multiplier_on_bins
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.scoring import differences

TITLE = "MNIST, digits 0 to 4: exploration and uncertainty by AWSGLD"
_OWN, _HOT = "AWSGLD", "high-tau SGLD"
_COMPARED = ("lowest loss", "median loss", "entropy of models on 5 to 9", "entropy of the average on 5 to 9")


@dataclasses.dataclass(frozen=True)
class Config(DigitsConfig):
    """Settings of the experiment; see `DigitsConfig`.

    Attributes:
        step_size: epsilon of SGD, SGLD, SGHMC and AWSGLD.
        psgld_step_size: of pSGLD, whose preconditioner multiplies it by up to a thousand.
        cyclical_step_size: the largest of cycSGLD.
        num_path_epochs: of the runs on two classes.
        temperature: of pSGLD, SGHMC and cycSGLD.
        high_temperature: of SGLD and AWSGLD.
        num_cycles: of cycSGLD.
        zeta: of AWSGLD.
        width: of energy bins.
        num_bins: of the partition.
        gain: of theta.
        max_displacement: how far a gradient may carry a weight in one step.
        methods: that are compared; AWSGLD and high-tau SGLD must be among them.
        path_methods: whose paths are drawn.
    """

    step_size: float = 1e-6
    psgld_step_size: float = 3e-8
    cyclical_step_size: float = 2e-6
    num_path_epochs: int = 500
    temperature: float = 0.3
    high_temperature: float = 1.0
    num_cycles: int = 10
    zeta: float = 1e4
    width: float = 10.0
    num_bins: int = 10_000
    gain: float = 0.01
    max_displacement: float = 1.0
    methods: tuple[str, ...] = ("AWSGLD", "high-tau SGLD", "pSGLD", "SGHMC", "cycSGLD")
    path_methods: tuple[str, ...] = ("SGD", "pSGLD", "SGHMC", "high-tau SGLD", "AWSGLD")


FULL = Config()
QUICK = Config(
    **QUICK_SETTINGS,
    psgld_step_size=1e-6,
    cyclical_step_size=2e-4,
    num_path_epochs=8,
    num_cycles=2,
    zeta=1e3,
)


def samplers(config: Config, steps_per_epoch: int, num_data: int) -> dict[str, Any]:
    """AWSGLD and its rivals."""
    step, cold, hot = config.step_size, config.temperature, config.high_temperature
    partition = Partition(config.width, config.width, config.num_bins)
    ramp = tuple(np.arange(1, config.num_bins + 1) / config.num_bins)
    cycle = max(config.num_epochs // config.num_cycles * steps_per_epoch, 20)
    return {
        "SGD": iso.sgd(step),
        "pSGLD": iso.psgld(config.psgld_step_size, temperature=cold, gradient_scale=1 / num_data),
        "SGHMC": iso.sghmc(step, temperature=cold),
        "high-tau SGLD": iso.sgld(step, temperature=hot),
        "cycSGLD": _whole(iso.cycsgld(config.cyclical_step_size, cycle_length=cycle, temperature=cold)),
        "AWSGLD": iso.awsgld(
            step,
            temperature=hot,
            partition=partition,
            zeta=config.zeta,
            gain=config.gain,
            initial_theta=ramp,
            max_displacement=config.max_displacement,
            weight_rule=RegularizedWeights(0.0),
        ),
    }


def _whole(sampler: Any) -> Any:
    """A cyclical sampler of which every epoch is kept, for its path."""
    return dataclasses.replace(sampler, window=None)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """Losses, accuracies and entropies of the methods, and the paths of two chains each on two classes."""
    digits = load_digits(config, 5)
    potential = potential_of(config, digits, 5)
    steps_per_epoch = -(-potential.num_data // potential.batch_size)
    methods = samplers(config, steps_per_epoch, potential.num_data)
    judged: dict[str, list[Judged | None]] = {}
    for name in config.methods:
        log(name)
        judged[name] = sample_and_judge(config, potential, methods[name], digits, seed, 1, config.num_runs)
    found, rows = finished_runs(judged)
    rows = [row for name, runs in found.items() for row in _rows(name, runs, digits)] + rows
    rows.append(ratio_of_ranges(rows, _OWN, _HOT))
    for metric in _COMPARED:
        rows += differences(rows, metric, [(_OWN, name) for name in found if name != _OWN])
    figures = {"exploration": _picture(config, found, methods[_OWN]), "paths": _paths(config, seed, log)}
    return Outcome(rows, figures)


def _rows(name: str, found: list[Judged], digits: Any) -> list[Row]:
    aurocs = [auroc(judged.test.entropy, judged.unknown.entropy) for judged in found]
    return [
        *loss_rows(name, found, digits),
        Row.of_runs(
            name, "entropy of models on 5 to 9", [float(judged.unknown.mean_entropy.mean()) for judged in found]
        ),
        Row.of_runs(
            name, "entropy of the average on 5 to 9", [float(judged.unknown.entropy.mean()) for judged in found]
        ),
        Row.of_runs(name, "AUROC of the average's entropy", aurocs),
    ]


@styled
def _picture(config: Config, found: dict[str, list[Judged]], sampler: Any) -> Figure:
    figure, axes = page(3, 2, 2.5)
    ((losses, ranges), (multipliers, errors), (models, averages)) = axes
    firsts = {name: runs[0] for name, runs in found.items()}
    draw_losses(losses, {name: firsts[name] for name in (_HOT, _OWN)})
    losses.set_title("training loss, first run of two methods")
    draw_ranges(ranges, found)
    for name, runs in found.items():
        color = color_of(name)
        wrong = [1 - judged.accuracies[0] for judged in runs]
        errors.plot(runs[0].judged_at, np.mean(wrong, axis=0), color=color, label=name)
        models.plot(*entropy_cdf(np.concatenate([judged.unknown.mean_entropy for judged in runs])), color=color)
        averages.plot(*entropy_cdf(np.concatenate([judged.unknown.entropy for judged in runs])), color=color)
    _draw_multiplier(config, multipliers, firsts[_OWN], sampler)
    errors.set(xlabel="epoch", ylabel="test error", title="error of single networks, mean over runs", yscale="log")
    models.set(xlabel="entropy in nats", ylabel="share of images", title="single networks on digits 5 to 9")
    averages.set(xlabel="entropy in nats", ylabel="share of images", title="averages on digits 5 to 9")
    highest = max(models.get_xlim()[1], averages.get_xlim()[1])
    models.set_xlim(0, highest)
    averages.set_xlim(0, highest)
    legend_below(figure, errors)
    return figure


def _draw_multiplier(config: Config, axis: Any, judged: Judged, sampler: Any) -> None:
    """The multiplier at the end of the run, of the losses that the run went through."""
    psi = multiplier_on_bins(np.asarray(judged.stats["theta"])[0], sampler.coupling, config.high_temperature)
    bins = np.asarray(sampler.coupling.partition.index(judged.losses[0]))
    axis.plot(judged.losses[0], psi[bins], ".", markersize=4, color=color_of(_OWN))
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set(xlabel="training loss", ylabel="multiplier", xscale="log", yscale="log", title="multiplier of AWSGLD")


def _paths(config: Config, seed: int, log: Callable[[str], None]) -> Figure:
    """Two chains of each method on the digits 0 and 1, in the plane of their two largest directions."""
    config = dataclasses.replace(config, num_epochs=config.num_path_epochs)
    digits = load_digits(config, 2)
    potential = potential_of(config, digits, 2)
    methods = samplers(config, -(-potential.num_data // potential.batch_size), potential.num_data)
    landscapes = {}
    for name in config.path_methods:
        log(f"two classes, {name}")
        (judged,) = sample_and_judge(config, potential, methods[name], digits, seed, 2)
        if judged is not None:
            landscapes[name] = landscape_of(config, potential, judged)
    return draw_landscapes(landscapes)
