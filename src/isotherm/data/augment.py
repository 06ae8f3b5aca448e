"""Moved to `isotherm.networks`."""

from typing import TYPE_CHECKING

from isotherm.foundation.moved import moved

if not TYPE_CHECKING:
    _NAMES = ("Crop", "Erase", "Flip", "InTurn", "Normalize", "cifar_augmentation")
    __getattr__ = moved(__name__, dict.fromkeys(_NAMES, "isotherm.networks"))
