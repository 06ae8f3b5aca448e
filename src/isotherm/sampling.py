"""Moved to `isotherm`."""

from typing import TYPE_CHECKING

from isotherm.foundation.moved import moved

if not TYPE_CHECKING:
    _NAMES = ("Sampler", "as_optax", "per_chain", "resume", "sample", "sweep", "to_blackjax")
    _HOMES = dict.fromkeys(_NAMES, "isotherm") | dict.fromkeys(("Info", "LoopState"), "isotherm.samplers")
    __getattr__ = moved(__name__, _HOMES)
