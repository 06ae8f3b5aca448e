"""Variance-reduced replica exchange on images (Deng 2021, chapter 3, L1040).

The table (L1074); the variance of swap energies against epochs without control variates, with 512 images, and with control
variates that are refreshed every 50, 392 and 2,000 iterations, with fixed and adaptive coefficients; and what each costs (L1092).
"""

from collections.abc import Callable

from isotherm_thesis.experiments.images import annealed, cyclical
from isotherm_thesis.experiments.images.pictures import draw_averages, draw_variances
from isotherm_thesis.experiments.images.plan import Arm
from isotherm_thesis.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm_thesis.experiments.images.study import outcome_of, rows_of, run_cells
from isotherm_thesis.experiments.images.thesis_values import VARIANCE_REDUCED
from isotherm_thesis.experiments.reproduce import Outcome

TITLE = "Images by variance-reduced replica exchange"
# All methods of this table average from epoch 300 on, where the temperature stops falling.
_LATE = {"average_from": 0.6}
_HEAT = {**_LATE, "anneal_until": 0.6}
_SWAPS = {**_HEAT, "correction_factor": 1.5e5}

ARMS = {
    "M-SGD": Arm(annealed.msgd, _LATE),
    "SGHMC": Arm(annealed.sghmc, _HEAT),
    "reSGHMC": Arm(annealed.resghmc, {**_SWAPS, "rest_epochs": 1}),
    "VR-reSGHMC": Arm(annealed.vr_resghmc, {"is_adaptive": True}),
    "VR-reSGHMC, fixed coefficient": Arm(annealed.vr_resghmc, {"is_adaptive": False}),
    "cycSGHMC": Arm(cyclical.cycsghmc),
    "cVR-reSGHMC": Arm(cyclical.cvr_resghmc),
    "VR-reSGHMC, m = 50": Arm(annealed.vr_resghmc, {"refresh_every": 50}),
    "VR-reSGHMC, m = 50, fixed coefficient": Arm(annealed.vr_resghmc, {"refresh_every": 50, "is_adaptive": False}),
    "VR-reSGHMC, m = 2000": Arm(annealed.vr_resghmc, {"refresh_every": 2000}),
    "reSGHMC, n = 512": Arm(annealed.resghmc, {**_SWAPS, "rest_epochs": 1}, {"batch_size": 512}),
}
FULL = Setting(methods=("M-SGD", "SGHMC", "reSGHMC", "VR-reSGHMC", "cycSGHMC", "cVR-reSGHMC"))
QUICK = Setting(methods=("reSGHMC", "VR-reSGHMC"), **QUICK_SETTINGS)


def run(config: Setting, seed: int, log: Callable[[str], None]) -> Outcome:
    """Accuracies, swaps, and variances of the energies that swaps read."""
    records = run_cells("cifar-vr", ARMS, config, seed, log)
    rows = rows_of(records, config, VARIANCE_REDUCED, "reSGHMC")
    return outcome_of(records, rows, {"averages": draw_averages(records), "variances": draw_variances(records)})
