"""Digits 0 to 4 by SGD, SGLD and ICSGLD: paths of losses and of weights (Deng 2021, section 4.2.3).

The settings are those of the author's code and logs where the text differs: twice the printed step size with half the weight decay,
a constant gain. Two chains share theta; the code has one.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

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
from isotherm.experiments.plots import panels
from isotherm.experiments.reproduce import Outcome
from isotherm.experiments.result import Row
from isotherm.predictive import nll
from isotherm.predictive.landscape import plot_landscape

TITLE = "MNIST, digits 0 to 4: exploration by ICSGLD"
_CHAINS = 2


@dataclasses.dataclass(frozen=True)
class Config(DigitsConfig):
    """Settings of the experiment; see `DigitsConfig`.

    Attributes:
        step_size: epsilon.
        temperature: tau.
        zeta: of the contour.
        width: of energy bins.
        num_bins: of the partition.
        gain: of theta.
        bounds: of the multiplier.
        methods: that are compared; SGLD and ICSGLD must be among them.
    """

    num_epochs: int = 200
    step_size: float = 2e-6
    temperature: float = 0.1
    zeta: float = 3e4
    width: float = 10.0
    num_bins: int = 10_000
    gain: float = 0.01
    bounds: tuple[float, float] | None = (-60.0, 60.0)
    methods: tuple[str, ...] = ("SGD", "SGLD", "ICSGLD")


FULL = Config()
QUICK = Config(**QUICK_SETTINGS, zeta=3e3)


def samplers(config: Config) -> dict[str, Any]:
    """The three methods."""
    partition = Partition(config.width, config.width, config.num_bins)
    contour = iso.icsgld(
        config.step_size,
        temperature=config.temperature,
        partition=partition,
        zeta=config.zeta,
        **iso.thesis.icsgld(gain=config.gain, bounds=config.bounds),
        weight_rule=RegularizedWeights(config.zeta, 1e-10, is_relative=True),
    )
    return {
        "SGD": iso.sgd(config.step_size),
        "SGLD": iso.sgld(config.step_size, temperature=config.temperature),
        "ICSGLD": contour,
    }


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """Losses and paths of the three methods."""
    digits = load_digits(config, 5)
    potential = potential_of(config, digits, 5)
    rows, firsts = [], {}
    for name in config.methods:
        sampler = samplers(config)[name]
        log(name)
        found = [
            sample_and_judge(config, potential, sampler, digits, seed + number, _CHAINS)
            for number in range(config.num_runs)
        ]
        firsts[name] = found[0]
        rows += _rows(name, found, digits)
    ranges = {name: loss_range(judged.losses) for name, judged in firsts.items()}
    rows.append(Row("ICSGLD", "loss range over SGLD's", None, ranges["ICSGLD"] / ranges["SGLD"], None, 1))
    log("landscapes")
    return Outcome(rows, {"paths": _picture(config, potential, firsts)})


def _rows(name: str, found: list[Judged], digits: Any) -> list[Row]:
    return [
        *loss_rows(name, found, digits),
        Row.of_runs(name, "NLL", [nll(judged.test.probabilities, digits.test[1]) for judged in found]),
    ]


def _picture(config: Config, potential: Any, firsts: dict[str, Judged]) -> Figure:
    figure, axes = panels(1, 1 + len(firsts), (4.3, 3.6))
    for name, judged in firsts.items():
        axes[0, 0].plot(judged.losses[0], linewidth=0.8, label=name)
    axes[0, 0].set(xlabel="epoch", ylabel="loss", yscale="log", title="training loss")
    axes[0, 0].legend(fontsize=8)
    for axis, (name, judged) in zip(axes[0, 1:], firsts.items(), strict=True):
        plot_landscape(landscape_of(config, potential, judged), axis, title=name)
    return figure
