"""Moved to `isotherm.run`."""

from typing import TYPE_CHECKING

from isotherm.foundation.moved import moved

if not TYPE_CHECKING:
    __getattr__ = moved(__name__, {"Run": "isotherm.run", "load": "isotherm.run"})
