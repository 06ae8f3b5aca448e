"""Commands that other packages add: entry points of the group `isotherm.commands`."""

import dataclasses
import importlib.metadata
from typing import Any

import tyro
from rich.console import Console

# Those of the package isotherm-thesis, which are named though it is not installed.
_KNOWN = {
    "reproduce": "Run an experiment of the thesis, and print its numbers beside ours.",
    "bench": "Measure speed.",
    "data": "Download, check and list data sets.",
}


def extra_commands() -> dict[str, Any]:
    """Classes of commands by name; those that are not installed say what to install."""
    installed = {one.name: one.load() for one in importlib.metadata.entry_points(group="isotherm.commands")}
    return {name: _missing(name, text) for name, text in _KNOWN.items()} | installed


def extra_lists() -> dict[str, dict[str, str]]:
    """What `isotherm list` shows beside methods: names with a line each."""
    return {one.name: one.load()() for one in importlib.metadata.entry_points(group="isotherm.lists")}


def _missing(name: str, text: str) -> Any:
    @dataclasses.dataclass(frozen=True)
    class Missing:
        arguments: tyro.conf.Positional[tuple[str, ...]] = ()

        def run(self, console: Console) -> None:
            raise ValueError(f"`isotherm {name}` is in the package isotherm-thesis: `pip install isotherm-thesis`.")

    Missing.__doc__ = f"{text} Traits the package isotherm-thesis."
    return Missing
