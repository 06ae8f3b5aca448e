"""Potentials with known answers, for demonstrations and tests."""

from typing import TYPE_CHECKING

from isotherm.foundation.moved import moved
from isotherm.targets.target import Grid, Target, banana, gaussian, integrate, modes25

__all__ = ["Grid", "Target", "banana", "gaussian", "integrate", "modes25"]

if not TYPE_CHECKING:
    _TARGETS = ("awsgld_mixture", "csgld_mixture", "mixture", "mixture_posterior", "modes9", "resgld_mixtures")
    _HOMES = dict.fromkeys(_TARGETS, "isotherm_thesis.targets")
    _HOMES |= dict.fromkeys(("TestFunction", "ten_functions"), "isotherm_thesis.functions")
    __getattr__ = moved(__name__, _HOMES, "isotherm-thesis")
