"""Ten networks on a ladder of learning rates: DEO*-mSGD, round trips, and its rivals (Deng 2021, section 3.3.5).

Learning rates and acceptances at the end are those of the thesis' panels (L1503).
"""

from collections.abc import Callable

from isotherm.experiments.images import cyclical, ladders
from isotherm.experiments.images.pictures import draw_averages, draw_ladders
from isotherm.experiments.images.plan import Arm
from isotherm.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm.experiments.images.study import outcome_of, rows_of, run_cells
from isotherm.experiments.images.thesis_values import LADDERS
from isotherm.experiments.reproduce import Outcome

TITLE = "Images by DEO*-mSGD: round trips and averages"
_LONG = {"epochs": 5000, "cycles": 50, "sampling_from": 0.85}

ARMS = {
    "cycSGHMC x T10": Arm(cyclical.cycsghmc, _LONG),
    "cycSWAG x T10": Arm(cyclical.cycswag, _LONG),
    "mSGD x P10": Arm(ladders.msgd),
    "DEO-mSGD x P10": Arm(ladders.deo_msgd, {"window": 1}),
    "DEO*-mSGD x P10": Arm(ladders.deo_msgd),
}
FULL = Setting(methods=tuple(ARMS))
QUICK = Setting(methods=("DEO*-mSGD x P3",), **QUICK_SETTINGS)
ARMS |= {
    "mSGD x P3": Arm(ladders.msgd, {"chains": 3}),
    "DEO*-mSGD x P3": Arm(ladders.deo_msgd, {"chains": 3, "window": 4, "buffer": 0.01, "target": 0.2}),
}


def run(config: Setting, seed: int, log: Callable[[str], None]) -> Outcome:
    """Averages, round trips, and where the ladder went."""
    records = run_cells("cifar-deo", ARMS, config, seed, log)
    baseline = next((label for label in records if label.startswith("mSGD")), "mSGD x P10")
    rows = rows_of(records, config, LADDERS, baseline)
    return outcome_of(records, rows, {"averages": draw_averages(records), "ladder": draw_ladders(records)})
