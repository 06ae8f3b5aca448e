"""The experiments for `isotherm list`."""

import ast
import pathlib

from isotherm_thesis.experiments import EXPERIMENTS

_FOLDER = pathlib.Path(__file__).parents[1] / "experiments"


def experiments() -> dict[str, str]:
    """Names of experiments, each with the first line of its file. Files are read, not imported, which would take a second."""
    files = {
        name: ast.parse((_FOLDER / f"{file}.py").read_text(encoding="utf-8")) for name, file in EXPERIMENTS.items()
    }
    return {name: (ast.get_docstring(file) or "").partition("\n")[0] for name, file in files.items()}
