"""Image classification by CSGHMC beside M-SGD and SGHMC, fixed and annealed (Deng 2021, chapter 5, L1829)."""

from collections.abc import Callable

from isotherm_thesis.experiments.images import contours
from isotherm_thesis.experiments.images.pictures import draw_averages
from isotherm_thesis.experiments.images.plan import Arm
from isotherm_thesis.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm_thesis.experiments.images.study import outcome_of, rows_of, run_cells
from isotherm_thesis.experiments.images.thesis_values import CONTOUR
from isotherm_thesis.experiments.reproduce import Outcome

TITLE = "Images by CSGHMC: best networks and averages"
_SA = {"is_annealed": True}

ARMS = {
    "M-SGD": Arm(contours.msgd),
    "SGHMC": Arm(contours.sghmc),
    "CSGHMC": Arm(contours.csghmc),
    "saM-SGD": Arm(contours.msgd, _SA),
    "saSGHMC": Arm(contours.sghmc, _SA),
    "saCSGHMC": Arm(contours.csghmc, _SA),
}
FULL = Setting(methods=tuple(ARMS), batch_size=1000)
QUICK = Setting(methods=("saSGHMC", "saCSGHMC"), **QUICK_SETTINGS)


def run(config: Setting, seed: int, log: Callable[[str], None]) -> Outcome:
    """Best single networks and averages, and the multipliers."""
    records = run_cells("cifar-csghmc", ARMS, config, seed, log)
    baseline = "SGHMC" if "SGHMC" in records else "saSGHMC"
    return outcome_of(records, rows_of(records, config, CONTOUR, baseline), {"averages": draw_averages(records)})
