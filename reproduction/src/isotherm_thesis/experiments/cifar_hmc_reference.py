"""A yardstick that is not the thesis': the networks of the HMC reference, at temperature 1 (Izmailov et al. 2021).

ResNet-20 with filter response normalization and swish, no augmentation, and a Gaussian prior of variance 1/5. On CIFAR-100 the
public table of cs-giung/bdlx has errors and mean likelihoods of 0.329 and 1.22 for HMC with three chains, 0.379 and 1.41 for
cyclical SGHMC, 0.412 and 1.56 for cyclical SGLD, and 0.547 and 2.48 for momentum SGD. They stand where other tables have the
thesis' numbers, as accuracies of averages of probabilities.

Step sizes, the partition, zeta and the ladder are ours: they start at the learning rate of the other experiments and fall by half
twice. The published numbers are of networks trained on 40,960 images and scored on 9,040 others of the training set, by chains of
500,000 updates; these here train on all 50,000, are scored on the test set, and run for as long as `scale` says.
"""

from collections.abc import Callable

from isotherm.demo.result import Row
from isotherm_thesis.experiments.images import cyclical, parallel
from isotherm_thesis.experiments.images.pictures import draw_averages
from isotherm_thesis.experiments.images.plan import Arm
from isotherm_thesis.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm_thesis.experiments.images.study import outcome_of, rows_of, run_cells
from isotherm_thesis.experiments.images.thesis_values import Values
from isotherm_thesis.experiments.reproduce import Outcome

TITLE = "ResNet-20 with FRN and swish at temperature 1, beside HMC"
_ACCURACY, _NLL = "accuracy, probabilities", "NLL, probabilities"
_WARM = {"temperature": 1.0, "decay": 0.5}

ARMS = {
    "M-SGD x P4": Arm(parallel.msgd),
    "SGHMC x P4": Arm(parallel.sghmc, _WARM),
    "reSGHMC x P4": Arm(parallel.resghmc, {**_WARM, "temperature_ratio": 1.02, "buffer": 0.0}),
    "ICSGHMC x P4": Arm(parallel.icsghmc, {**_WARM, "low": 1e4, "width": 500.0, "zeta": 2250.0}),
    "cycSGHMC x T4": Arm(
        cyclical.cycsghmc,
        {"epochs": 2000, "cycles": 20, "temperature": 1.0, "sampling_from": 0.8, "hold_from": 0.8},
    ),
}
_PLAIN = {"is_augmented": False, "weight_decay": 5.0}
FULL = Setting(methods=tuple(ARMS), network="frn-resnet20", **_PLAIN)
QUICK = Setting(
    methods=("SGHMC x P2", "reSGHMC x P2"), **{**QUICK_SETTINGS, "network": "frn-resnet8", "is_augmented": False}
)
ARMS |= {
    "SGHMC x P2": Arm(parallel.sghmc, {**_WARM, "chains": 2, "average_from": 0.5}),
    "reSGHMC x P2": Arm(
        parallel.resghmc,
        {**_WARM, "chains": 2, "average_from": 0.5, "swap_from": 0.25, "refresh_epochs": 1, "buffer": 0.0},
    ),
}
# Of others: cs-giung/bdlx, CIFAR-100.
PUBLISHED: Values = {
    ("cifar100", "frn-resnet20"): {
        "HMC x 3, bdlx": {_ACCURACY: 67.1, _NLL: 1.22},
        "cycSGHMC, bdlx": {_ACCURACY: 62.1, _NLL: 1.41},
        "cycSGLD, bdlx": {_ACCURACY: 58.8, _NLL: 1.56},
        "M-SGD, bdlx": {_ACCURACY: 45.3, _NLL: 2.48},
    }
}


def run(config: Setting, seed: int, log: Callable[[str], None]) -> Outcome:
    """Averages beside those of others, which are rows of no runs."""
    records = run_cells("cifar-hmc-reference", ARMS, config, seed, log)
    baseline = next((label for label in records if label.startswith("SGHMC")), "SGHMC x P4")
    rows = rows_of(records, config, {}, baseline)
    for label, values in PUBLISHED.get((config.data_set, config.network), {}).items():
        rows += [Row(label, metric, None, value, None, 0) for metric, value in values.items()]
    return outcome_of(records, rows, {"averages": draw_averages(records)})
