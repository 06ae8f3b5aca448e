"""Digits 0 to 4 by AWSGLD and its rivals: losses, multipliers, accuracies, uncertainty on digits 5 to 9 (Deng 2021, section 4.3.4).

Two classes, 0 and 1, for paths of two runs of each method. The thesis gives neither zeta nor step sizes here; those of the
rivals are the ones with the lowest training loss, AWSGLD has SGLD's. Theta starts as a ramp and its gain is constant, as in the
author's code; without a limit on displacements AWSGLD diverged.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import isotherm as iso
from isotherm.contour import Partition, RegularizedWeights
from isotherm.experiments.digits import (
    QUICK_SETTINGS,
    DigitsConfig,
    Judged,
    landscape_of,
    load_digits,
    loss_range,
    loss_rows,
    potential_of,
    sample_and_judge,
)
from isotherm.experiments.flattening import multiplier_on_bins
from isotherm.experiments.plots import panels
from isotherm.experiments.reproduce import Outcome
from isotherm.experiments.result import Row
from isotherm.predictive import auroc, entropy_cdf
from isotherm.predictive.landscape import plot_landscape

TITLE = "MNIST, digits 0 to 4: exploration and uncertainty by AWSGLD"


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
    num_path_epochs=15,
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
    """Losses, accuracies and entropies of the methods, and the paths of two runs each on two classes."""
    digits = load_digits(config, 5)
    potential = potential_of(config, digits, 5)
    steps_per_epoch = -(-potential.num_data // potential.batch_size)
    methods = samplers(config, steps_per_epoch, potential.num_data)
    rows, firsts = [], {}
    for name in config.methods:
        log(name)
        found = [
            sample_and_judge(config, potential, methods[name], digits, seed + number, 1)
            for number in range(config.num_runs)
        ]
        firsts[name] = found[0]
        rows += _rows(name, found, digits)
    ranges = {name: loss_range(judged.losses) for name, judged in firsts.items()}
    ratio = ranges["AWSGLD"] / ranges["high-tau SGLD"]
    rows.append(Row("AWSGLD", "loss range over SGLD's", None, ratio, None, 1))
    figures = {"exploration": _picture(config, firsts, methods["AWSGLD"])}
    figures["paths"] = _paths(config, seed, log)
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


def _picture(config: Config, firsts: dict[str, Judged], sampler: Any) -> Figure:
    figure, axes = panels(1, 5, (4.2, 3.5))
    for name, judged in firsts.items():
        axes[0, 0].plot(judged.losses[0], linewidth=0.8, label=name)
        axes[0, 2].plot(judged.judged_at, judged.accuracies[0], linewidth=0.9, label=name)
        axes[0, 3].plot(*entropy_cdf(judged.unknown.mean_entropy), label=name)
        axes[0, 4].plot(*entropy_cdf(judged.unknown.entropy), label=name)
    theta = np.asarray(firsts["AWSGLD"].run.stats["theta"])[0]
    psi = multiplier_on_bins(theta, sampler.coupling, config.high_temperature)
    losses = firsts["AWSGLD"].losses[0]
    losses = losses[np.isfinite(losses)]
    axes[0, 1].plot(losses, psi[np.asarray(sampler.coupling.bins.index(losses))], ".", markersize=3)
    axes[0, 0].set(xlabel="epoch", ylabel="loss", yscale="log", title="training loss")
    axes[0, 1].set(xlabel="loss", ylabel="multiplier", xscale="log", yscale="log", title="AWSGLD's multiplier")
    axes[0, 2].set(xlabel="epoch", ylabel="accuracy", title="test accuracy", ylim=(0.6, 1.01))
    axes[0, 3].set(xlabel="entropy", ylabel="share of images", title="uncertainty of models on 5 to 9")
    axes[0, 4].set(xlabel="entropy", ylabel="share of images", title="uncertainty of the average on 5 to 9")
    axes[0, 0].legend(fontsize=7)
    return figure


def _paths(config: Config, seed: int, log: Callable[[str], None]) -> Figure:
    """Two runs of each method on the digits 0 and 1, in the plane of their two largest directions."""
    config = dataclasses.replace(config, num_epochs=config.num_path_epochs)
    digits = load_digits(config, 2)
    potential = potential_of(config, digits, 2)
    methods = samplers(config, -(-potential.num_data // potential.batch_size), potential.num_data)
    figure, axes = panels(1, len(config.path_methods), (4.0, 3.4))
    for axis, name in zip(axes[0], config.path_methods, strict=True):
        log(f"two classes, {name}")
        judged = sample_and_judge(config, potential, methods[name], digits, seed, 2)
        plot_landscape(landscape_of(config, potential, judged), axis, title=name)
    return figure
