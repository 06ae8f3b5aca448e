"""Image classification by reSGHMC beside M-SGD and SGHMC (Deng 2021, chapter 2, L754).

The table (L776), corrections against losses at fixed temperatures (L768), the study of F (L800), and batches of 1024 (L805),
which train for 2,000 epochs. Two rivals at the cost of reSGHMC are not the thesis': two chains without swaps, and one chain for
twice as long.
"""

from collections.abc import Callable

import numpy as np

from isotherm_thesis.experiments.images import annealed
from isotherm_thesis.experiments.images.pictures import draw_averages, draw_factors, draw_scores, draw_variances
from isotherm_thesis.experiments.images.plan import Arm
from isotherm_thesis.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm_thesis.experiments.images.study import outcome_of, rows_of, run_cells
from isotherm_thesis.experiments.images.thesis_values import RESGHMC
from isotherm_thesis.experiments.reproduce import Outcome

TITLE = "Images by reSGHMC: corrections, their factor, and accuracy"
_BATCH = {"batch_size": 1024}
# Schedules end where those of 500 epochs end.
_TWICE = {"epochs": 1000, "decay": 0.984**0.5, "annealing": 1.02**0.5}
_SLOW, _SLOW_HEAT = {"epochs": 2000, "decay": 0.996}, {"annealing": 1.005}


def _of_chain(number: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda weights: weights * (np.arange(len(weights)) == number)[:, None]


def _every_second_epoch(weights: np.ndarray) -> np.ndarray:
    """As many networks as reSGHMC averages; the last of the run stays."""
    kept = np.arange(weights.shape[1])[::-1] % 2 == 0
    return weights * kept


_FACTORS = {f"reSGHMC, F = {factor:.0e}": factor for factor in (1e4, 1e5, 1e6, 1e7)}
_HALF = {"every second epoch": _every_second_epoch}
ARMS = {
    "M-SGD": Arm(annealed.msgd),
    "SGHMC": Arm(annealed.sghmc),
    "reSGHMC": Arm(annealed.resghmc),
    "reSGHMC, fixed temperatures": Arm(annealed.resghmc, {"annealing": 1.0}),
    **{label: Arm(annealed.resghmc, {"correction_factor": factor}) for label, factor in _FACTORS.items()},
    # At a tenth of the thesis' epochs: a pair rests for a tenth of the run after every swap.
    "reSGHMC, at most five swaps": Arm(annealed.resghmc, {"rest_epochs": 10}),
    # At the cost of reSGHMC.
    "two chains without swaps": Arm(
        annealed.two_chains, parts={"chain at 0.1": _of_chain(0), "chain at 0.15": _of_chain(1), **_HALF}
    ),
    "SGHMC, twice as long": Arm(annealed.sghmc, _TWICE, parts=_HALF),
    "reSGHMC, F jumps": Arm(annealed.resghmc, {"jump": 0.7}),
    "M-SGD, batch 1024": Arm(annealed.msgd, _SLOW, _BATCH),
    "SGHMC, batch 1024": Arm(annealed.sghmc, {**_SLOW, **_SLOW_HEAT}, _BATCH),
    "reSGHMC, batch 1024": Arm(annealed.resghmc, {**_SLOW, **_SLOW_HEAT}, _BATCH),
}
FULL = Setting(methods=("M-SGD", "SGHMC", "reSGHMC", "reSGHMC, fixed temperatures"))
QUICK = Setting(methods=("M-SGD", "reSGHMC"), **QUICK_SETTINGS)


def run(config: Setting, seed: int, log: Callable[[str], None]) -> Outcome:
    """Accuracies, corrections and swaps."""
    records = run_cells("cifar-resghmc", ARMS, config, seed, log)
    rows = rows_of(records, config, RESGHMC, "SGHMC" if "SGHMC" in records else "M-SGD")
    figures = {
        "accuracies": draw_scores(rows, "accuracy, logits", "accuracy of the average in %"),
        "averages": draw_averages(records),
        "corrections": draw_variances(records),
    }
    if records.keys() >= _FACTORS.keys():
        figures["factors"] = draw_factors(rows, {"reSGHMC": 3e5, **_FACTORS}, "SGHMC")
    return outcome_of(records, rows, figures)
