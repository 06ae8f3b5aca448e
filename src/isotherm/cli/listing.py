"""`isotherm list`."""

import ast
import dataclasses
import importlib.util
import json
import pathlib
import sys

from rich.console import Console


@dataclasses.dataclass(frozen=True)
class List:
    """List the methods and experiments."""

    json: bool = False
    """Print JSON with the lists `methods` and `experiments`."""

    def run(self, console: Console) -> None:
        """Print the lists."""
        from isotherm.experiments import EXPERIMENTS
        from isotherm.samplers import METHODS

        if self.json:
            sys.stdout.write(json.dumps({"methods": list(METHODS), "experiments": list(EXPERIMENTS)}) + "\n")
            return
        methods = {name: (constructor.__doc__ or "").splitlines()[0] for name, constructor in METHODS.items()}
        experiments = {name: _first_line(f"isotherm.experiments.{module}") for name, module in EXPERIMENTS.items()}
        width = max(map(len, methods | experiments))
        for title, lines in (("methods", methods), ("experiments", experiments)):
            console.print(title, style="bold")
            for name, line in lines.items():
                console.print(f"  {name:{width}}  {line}", highlight=False, markup=False, soft_wrap=True)


def _first_line(module: str) -> str:
    """Of the docstring of a module, which is not imported: some need packages that may be missing."""
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    return (ast.get_docstring(ast.parse(pathlib.Path(found.origin).read_text())) or "").splitlines()[0]
