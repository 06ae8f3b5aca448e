"""Image classification by reSGHMC beside M-SGD and SGHMC (Deng 2021, chapter 2, L754).

The table (L776), corrections against losses at fixed temperatures (L768), the study of F (L800), and batches of 1024 (L805),
which train for 2,000 epochs.
"""

from collections.abc import Callable

from isotherm.experiments.images import annealed
from isotherm.experiments.images.pictures import draw_averages, draw_variances
from isotherm.experiments.images.plan import Arm
from isotherm.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm.experiments.images.study import outcome_of, rows_of, run_cells
from isotherm.experiments.images.thesis_values import RESGHMC
from isotherm.experiments.reproduce import Outcome

TITLE = "Images by reSGHMC: corrections, their factor, and accuracy"
_BATCH = {"batch_size": 1024}
_SLOW, _SLOW_HEAT = {"epochs": 2000, "decay": 0.996}, {"annealing": 1.005}

ARMS = {
    "M-SGD": Arm(annealed.msgd),
    "SGHMC": Arm(annealed.sghmc),
    "reSGHMC": Arm(annealed.resghmc),
    "reSGHMC, fixed temperatures": Arm(annealed.resghmc, {"annealing": 1.0}),
    **{
        f"reSGHMC, F = {factor:.0e}": Arm(annealed.resghmc, {"correction_factor": factor})
        for factor in (1e4, 1e5, 1e6, 1e7)
    },
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
    return outcome_of(records, rows, {"averages": draw_averages(records), "corrections": draw_variances(records)})
