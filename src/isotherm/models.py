"""Moved to `isotherm.networks` and `isotherm_thesis.models`."""

from typing import TYPE_CHECKING

from isotherm.foundation.moved import moved

if not TYPE_CHECKING:
    _TO_NETWORKS = (
        "CNN",
        "MLP",
        "ResNet",
        "WideResNet",
        "bottleneck_resnet",
        "num_parameters",
        "resnet",
        "wide_resnet",
    )
    _TO_THESIS = ("FilterResponseNorm", "FilterResponseResNet", "frn_resnet")
    _HOMES = dict.fromkeys(_TO_NETWORKS, "isotherm.networks") | dict.fromkeys(_TO_THESIS, "isotherm_thesis.models")
    __getattr__ = moved(__name__, _HOMES, "isotherm-thesis")
