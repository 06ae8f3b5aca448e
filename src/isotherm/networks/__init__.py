"""Neural networks as potentials: modules of Flax and Equinox, losses, augmentation, and a few networks to start from."""

import importlib
from typing import TYPE_CHECKING, Any

from isotherm.foundation.moved import moved
from isotherm.networks.augment import Crop, Erase, Flip, InTurn, Normalize, cifar_augmentation
from isotherm.networks.equinox_modules import from_equinox
from isotherm.networks.flax_modules import from_linen, from_nnx
from isotherm.networks.losses import Gaussian, binary_cross_entropy, cross_entropy, squared_error
from isotherm.networks.potential import Network, NetworkPotential, WeightDecay

if TYPE_CHECKING:
    from isotherm.networks.perceptron import CNN, MLP
    from isotherm.networks.residual import ResNet, bottleneck_resnet, num_parameters, resnet

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

# Modules of Flax, which is an extra: imported when they are first used.
_FLAX = {
    "perceptron": ("CNN", "MLP"),
    "residual": ("ResNet", "bottleneck_resnet", "num_parameters", "resnet"),
}
_HOME = {name: module for module, names in _FLAX.items() for name in names}

if not TYPE_CHECKING:
    _moved = moved(
        __name__, dict.fromkeys(("WideResNet", "wide_resnet"), "isotherm_thesis.models"), "isotherm-thesis", 3
    )

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            return _moved(name)
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
