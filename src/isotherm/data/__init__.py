"""Moved to `isotherm.networks` (`Normalize`) and `isotherm_thesis.data`."""

from typing import TYPE_CHECKING

from isotherm.foundation.moved import moved

if not TYPE_CHECKING:
    _TO_THESIS = ("CATALOG", "DataSet", "File", "FileStatus", "check", "find", "get", "load")
    _HOMES = {"Normalize": "isotherm.networks"} | dict.fromkeys(_TO_THESIS, "isotherm_thesis.data")
    __getattr__ = moved(__name__, _HOMES, "isotherm-thesis")
