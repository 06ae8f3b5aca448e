"""Neural networks as potentials: modules of Flax and Equinox, losses, augmentation, and a perceptron."""

import importlib
from typing import TYPE_CHECKING, Any

from isotherm.foundation.moved import moved
from isotherm.networks.augment import Crop, Erase, Flip, InTurn, Normalize, cifar_augmentation
from isotherm.networks.equinox_modules import from_equinox
from isotherm.networks.linen_modules import from_linen
from isotherm.networks.losses import Gaussian, binary_cross_entropy, cross_entropy, squared_error
from isotherm.networks.nnx_modules import from_nnx
from isotherm.networks.potential import Network, NetworkPotential, WeightDecay

if TYPE_CHECKING:
    from isotherm.networks.perceptron import MLP, num_parameters

__all__ = [
    "MLP",
    "Crop",
    "Erase",
    "Flip",
    "Gaussian",
    "InTurn",
    "Network",
    "NetworkPotential",
    "Normalize",
    "WeightDecay",
    "binary_cross_entropy",
    "cifar_augmentation",
    "cross_entropy",
    "from_equinox",
    "from_linen",
    "from_nnx",
    "num_parameters",
    "squared_error",
]

if not TYPE_CHECKING:
    _TO_THESIS = ("CNN", "ResNet", "WideResNet", "bottleneck_resnet", "resnet", "wide_resnet")
    _moved = moved(__name__, dict.fromkeys(_TO_THESIS, "isotherm_thesis.models"), "isotherm-thesis", 3)

    def __getattr__(name: str) -> Any:
        # Flax is an extra: its modules are imported when they are first used.
        if name in ("MLP", "num_parameters"):
            return getattr(importlib.import_module(f"{__name__}.perceptron"), name)
        return _moved(name)
