"""The setting of an image experiment: data, network, budget and seeds."""

import dataclasses
import json
import zlib
from typing import Any

from isotherm.foundation.errors import check_integer, check_real

# How the chains of a network are computed in one iteration, everywhere in these experiments.
CHAIN_MODE = "auto"
# What says where and how long to run, and nothing about the result.
_NOT_OF_THE_RESULT = ("methods", "num_runs", "data_dir", "cells", "seconds", "keeps_draws", "is_quick")


@dataclasses.dataclass(frozen=True)
class Setting:
    """Settings of an image experiment.

    Attributes:
        methods: labels of the methods that are compared.
        num_runs: seeds of every method.
        data_dir: where the data lie; None for scikit-learn's digits.
        data_set: "cifar100", "cifar10", or "digits".
        network: a name of `problem.NETWORKS`.
        batch_size: n.
        scale: the fraction of the thesis' epochs; all schedules shrink with it.
        num_held_out: training images that are kept for choices and for the temperature of calibrated scores.
        num_train: training images that are used; None is all of the others.
        num_outside: images of SVHN that are predicted; None is all of them.
        weight_decay: precision of the prior.
        is_augmented: whether training images are cropped, mirrored and partly erased.
        compute_dtype: what networks compute in; None is single precision.
        chain_mode: how chains are computed; see `isotherm.sample`.
        cells: the folder of cells; None is one that is removed at the end.
        seconds: after which a cell stops, to be resumed later; None never stops.
        keeps_draws: whether a judged cell keeps its networks.
        is_quick: whether this is a small version without GPU and download.
    """

    methods: tuple[str, ...]
    num_runs: int = 2
    data_dir: str | None = "data"
    data_set: str = "cifar100"
    network: str = "resnet20"
    batch_size: int = 256
    scale: float = 1.0
    num_held_out: int = 0
    num_train: int | None = None
    num_outside: int | None = None
    weight_decay: float = 25.0
    is_augmented: bool = True
    compute_dtype: str | None = "bfloat16"
    chain_mode: str = CHAIN_MODE
    cells: str | None = None
    seconds: float | None = None
    keeps_draws: bool = False
    is_quick: bool = False

    def __post_init__(self):
        check_integer("num_runs", self.num_runs, 1, "Give a number of seeds.")
        check_integer("batch_size", self.batch_size, 1, "Give images per batch.")
        check_real("scale", self.scale, "Give the fraction of the thesis' epochs.", above=0.0)
        check_integer("num_held_out", self.num_held_out, 0, "Give a number of training images.")

    def of_result(self) -> dict[str, Any]:
        """What the result of a cell depends on."""
        fields = dataclasses.asdict(self)
        return {name: value for name, value in fields.items() if name not in _NOT_OF_THE_RESULT}


def digest(*parts: Any) -> str:
    """Eight hexadecimal digits that differ for different settings."""
    return f"{zlib.crc32(json.dumps(parts, sort_keys=True, default=str).encode()):08x}"


# The quick version: 8 x 8 digits, a network of eight layers, and few epochs.
QUICK_SETTINGS: dict[str, Any] = {
    "num_runs": 1,
    "data_dir": None,
    "data_set": "digits",
    "network": "resnet8",
    "batch_size": 100,
    "scale": 0.008,
    "num_held_out": 100,
    "num_train": 400,
    "weight_decay": 1.0,
    "compute_dtype": None,
    "is_quick": True,
}
