"""Digits 0 to 4 by SGD, SGLD and ICSGLD: paths of losses and of weights (Deng 2021, chapter 6, L2126).

Losses are N times the mean cross-entropy of the augmented mini-batch that the sampler saw at the end of an epoch. All runs of a
method are one program; runs of two methods with the same number start at the same weights, and differences are taken between
them. Averages of ICSGLD have the weights of the author's code, (theta / max theta)^zeta; the row "effective networks" says how
many networks they leave.

Differs from the thesis:
    The settings are those of the author's code and logs where the text differs: twice the printed step size with half the
    weight decay, a constant gain.
    Two chains share theta; the code has one.
    10^4 bins as in the text; the logs have 10^6.
    The multiplier is bounded by 60, the largest in the author's logs; there it has no bounds.
    The networks are those of the text; the logs' have half the filters and a fifth of the hidden units.
    Five runs; the thesis shows one.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

import isotherm as iso
from isotherm.contour import Partition, RegularizedWeights
from isotherm.demo.result import Row
from isotherm.predictive import nll
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
from isotherm_thesis.experiments.figures import page, styled
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.scoring import differences

TITLE = "MNIST, digits 0 to 4: exploration by ICSGLD"
_CHAINS = 2
_PAIRS = (("ICSGLD", "SGLD"), ("ICSGLD", "SGD"), ("SGLD", "SGD"))


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
    judged: dict[str, list[Judged | None]] = {}
    for name in config.methods:
        log(name)
        sampler = samplers(config)[name]
        judged[name] = sample_and_judge(config, potential, sampler, digits, seed, _CHAINS, config.num_runs)
    found, rows = finished_runs(judged)
    rows = [row for name, runs in found.items() for row in _rows(name, runs, digits)] + rows
    rows.append(ratio_of_ranges(rows, "ICSGLD", "SGLD"))
    for metric in ("lowest loss", "median loss", "accuracy", "NLL"):
        rows += differences(rows, metric, _PAIRS)
    log("landscapes")
    landscapes = {name: landscape_of(config, potential, runs[0]) for name, runs in found.items()}
    return Outcome(rows, {"losses": _losses(found), "paths": draw_landscapes(landscapes)})


def _rows(name: str, found: list[Judged], digits: Any) -> list[Row]:
    return [
        *loss_rows(name, found, digits),
        Row.of_runs(name, "NLL", [nll(judged.test.probabilities, digits.test[1]) for judged in found]),
    ]


@styled
def _losses(found: dict[str, list[Judged]]) -> Figure:
    figure, ((traces, ranges),) = page(1, 2, 2.9)
    draw_losses(traces, {name: runs[0] for name, runs in found.items()})
    traces.set_title("training loss, first run")
    draw_ranges(ranges, found)
    return figure
