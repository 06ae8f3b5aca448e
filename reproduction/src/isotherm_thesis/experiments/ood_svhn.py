"""Doubts of networks for CIFAR-10 about house numbers (Deng 2021, chapter 3, L1145).

Entropies of averaged probabilities on SVHN, with logits as they are and divided by 2: a good average is unsure of images of no
class.

Differs from the thesis: networks are those of all epochs that are averaged, not of every tenth late in a cycle.
"""

from collections.abc import Callable

from isotherm_thesis.experiments.images.pictures import draw_entropies
from isotherm_thesis.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm_thesis.experiments.images.study import outcome_of, rows_of, run_cells
from isotherm_thesis.experiments.images.thesis_values import SVHN_ENTROPY
from isotherm_thesis.experiments.reproduce import Outcome

from isotherm_thesis.experiments.cifar_vr import ARMS  # isort: skip

TITLE = "House numbers to networks for CIFAR-10: entropies"
FULL = Setting(methods=("SGHMC", "reSGHMC", "VR-reSGHMC", "cycSGHMC", "cVR-reSGHMC"), data_set="cifar10")
QUICK = Setting(methods=("SGHMC", "cycSGHMC"), **QUICK_SETTINGS)


def run(config: Setting, seed: int, log: Callable[[str], None]) -> Outcome:
    """Entropies on images of no class."""
    records = run_cells("ood-svhn", ARMS, config, seed, log)
    baseline = "reSGHMC" if "reSGHMC" in records else "SGHMC"
    return outcome_of(records, rows_of(records, config, SVHN_ENTROPY, baseline), {"entropies": draw_entropies(records)})
