"""Uncertainty of networks for CIFAR-100 by ICSGHMC and its rivals, with house numbers as unknown images (Deng 2021, L2223).

Also without what the method is made of: without control variates (ICSGHMC, plain energies), and reSGHMC with other fixed buffers
(L5122) and with the average over all rungs.
"""

from collections.abc import Callable

from isotherm_thesis.experiments.images import cyclical, parallel
from isotherm_thesis.experiments.images.pictures import draw_averages, draw_entropies
from isotherm_thesis.experiments.images.plan import Arm
from isotherm_thesis.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm_thesis.experiments.images.study import outcome_of, rows_of, run_cells
from isotherm_thesis.experiments.images.thesis_values import INTERACTING
from isotherm_thesis.experiments.reproduce import Outcome

TITLE = "Uncertainty on CIFAR-100 by ICSGHMC"

ARMS = {
    "cycSGHMC x T4": Arm(
        cyclical.cycsghmc,
        {"epochs": 2000, "cycles": 10, "temperature": 3e-4, "sampling_from": 0.94, "hold_from": 0.94},
    ),
    "cycSWAG x T4": Arm(cyclical.cycswag),
    "M-SGD x P4": Arm(parallel.msgd),
    "SGHMC x P4": Arm(parallel.sghmc),
    "reSGHMC x P4": Arm(parallel.resghmc),
    "ICSGHMC x P4": Arm(parallel.icsghmc),
    "VR-reSGHMC x P4": Arm(parallel.resghmc, {"is_adaptive": True}),
    "reSGHMC x P4, plain energies": Arm(parallel.resghmc, {"refresh_epochs": 0}),
    "reSGHMC x P4, all rungs": Arm(parallel.resghmc, {"is_pooled": True}),
    **{
        f"reSGHMC x P4, buffer {buffer}": Arm(parallel.resghmc, {"buffer": float(buffer)})
        for buffer in (0, 1000, 2000, 8000)
    },
    "ICSGHMC x P4, plain energies": Arm(parallel.icsghmc, {"refresh_epochs": 0}),
    "M-SGD x P4, from 0.8": Arm(parallel.msgd, {"average_from": 0.8}),
}
FULL = Setting(methods=("cycSGHMC x T4", "cycSWAG x T4", "M-SGD x P4", "SGHMC x P4", "reSGHMC x P4", "ICSGHMC x P4"))
QUICK = Setting(methods=("M-SGD x P2", "ICSGHMC x P2"), **QUICK_SETTINGS)
ARMS |= {
    "M-SGD x P2": Arm(parallel.msgd, {"chains": 2, "average_from": 0.5}),
    "ICSGHMC x P2": Arm(
        parallel.icsghmc,
        {"chains": 2, "warm_up": 0.4, "average_from": 0.5, "refresh_epochs": 0, "gain": 0.1, "low": 0.0, "width": 2e3},
    ),
}


def run(config: Setting, seed: int, log: Callable[[str], None]) -> Outcome:
    """Accuracy, likelihood, doubts about house numbers, and what the couplings did."""
    records = run_cells("cifar-icsghmc", ARMS, config, seed, log)
    baseline = next((label for label in records if label.startswith("M-SGD")), "M-SGD x P4")
    rows = rows_of(records, config, INTERACTING, baseline)
    return outcome_of(records, rows, {"averages": draw_averages(records), "entropies": draw_entropies(records)})
