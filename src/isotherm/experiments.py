"""Moved to `isotherm_thesis.experiments`."""

from typing import TYPE_CHECKING

from isotherm.foundation.moved import moved

if not TYPE_CHECKING:
    __getattr__ = moved(__name__, {"EXPERIMENTS": "isotherm_thesis.experiments"}, "isotherm-thesis")
