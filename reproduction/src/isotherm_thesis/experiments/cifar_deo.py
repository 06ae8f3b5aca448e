"""Ten networks on a ladder of learning rates: DEO*-mSGD, round trips, and its rivals (Deng 2021, chapter 4, L1466).

Learning rates and acceptances at the end are those of the thesis' panels (L1503).
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from isotherm.demo.result import Row
from isotherm.exchange import DeterministicEvenOdd, optimal_window
from isotherm_thesis.experiments.images import cyclical, ladders
from isotherm_thesis.experiments.images.pictures import draw_averages, draw_ladders
from isotherm_thesis.experiments.images.plan import Arm
from isotherm_thesis.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm_thesis.experiments.images.study import outcome_of, rows_of, run_cells
from isotherm_thesis.experiments.images.thesis_values import LADDERS
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.round_trips import travel

TITLE = "Images by DEO*-mSGD: round trips and averages"
_NUM_SIMULATED = 200
# S of the thesis.
_TARGET = 0.005
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
# A window of 600 iterations does not shrink with the scale, and a round trip takes twenty of them: for small scales.
ARMS |= {
    "DEO-mSGD x P10, longer": Arm(ladders.deo_msgd, {"window": 1, "epochs": 1150}),
    "DEO*-mSGD x P10, longer": Arm(ladders.deo_msgd, {"epochs": 1150}),
    "mSGD x P3": Arm(ladders.msgd, {"chains": 3}),
    "DEO*-mSGD x P3": Arm(ladders.deo_msgd, {"chains": 3, "window": 4, "buffer": 0.01, "target": 0.2}),
}


def run(config: Setting, seed: int, log: Callable[[str], None]) -> Outcome:
    """Averages, round trips, and where the ladder went."""
    records = run_cells("cifar-deo", ARMS, config, seed, log)
    baseline = next((label for label in records if label.startswith("mSGD")), "mSGD x P10")
    rows = rows_of(records, config, LADDERS, baseline)
    rows += [_independent(label, cells[0]) for label, cells in records.items() if "round trips" in cells[0]["coupling"]]
    return outcome_of(records, rows, {"averages": draw_averages(records), "ladder": draw_ladders(records, _TARGET)})


def _independent(label: str, cell: dict[str, Any]) -> Row:
    """Round trips in as many iterations where pairs accept at the run's rate, whatever their neighbors did."""
    rates = cell["coupling"]["acceptance of pairs"]
    num_rungs, rejection = len(rates) + 1, 1.0 - float(np.mean(rates))
    window = cell["knobs"].get("window") or optimal_window(num_rungs, rejection)
    num_steps = cell["epochs"] * cell["steps_per_epoch"]
    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(cell["seed"]), _NUM_SIMULATED))

    def count(key):
        return travel(DeterministicEvenOdd(window), num_rungs, rejection, num_steps, key)[0].trips.num_strict.sum()

    trips = np.asarray(jax.jit(jax.vmap(count))(keys), np.float64)
    error = float(np.std(trips, ddof=1)) / len(trips) ** 0.5
    return Row(label, "round trips, independent pairs", None, float(np.mean(trips)), error, len(trips))
