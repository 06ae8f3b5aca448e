"""Neural networks as potentials: modules of Flax and Equinox, losses, augmentation, and a few networks."""

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
    from isotherm.networks.models import CNN, MLP, ResNet, bottleneck_resnet, num_parameters, resnet

__all__ = [
    "CNN",
    "MLP",
    "Crop",
    "Erase",
    "Flip",
    "Gaussian",
    "InTurn",
    "Network",
    "NetworkPotential",
    "Normalize",
    "ResNet",
    "WeightDecay",
    "binary_cross_entropy",
    "bottleneck_resnet",
    "cifar_augmentation",
    "cross_entropy",
    "from_equinox",
    "from_linen",
    "from_nnx",
    "num_parameters",
    "resnet",
    "squared_error",
]

if not TYPE_CHECKING:
    _MODELS = ("CNN", "MLP", "ResNet", "bottleneck_resnet", "num_parameters", "resnet")
    _moved = moved(
        __name__, dict.fromkeys(("WideResNet", "wide_resnet"), "isotherm_thesis.models"), "isotherm-thesis", 3
    )

    def __getattr__(name: str) -> Any:
        # Flax is an extra: its modules are imported when they are first used.
        if name in _MODELS:
            return getattr(importlib.import_module(f"{__name__}.models"), name)
        return _moved(name)
