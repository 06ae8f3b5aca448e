"""`isotherm list`."""

import ast
import dataclasses
import json
import pathlib
import sys

from rich.console import Console

_PACKAGE = pathlib.Path(__file__).parents[1]


@dataclasses.dataclass(frozen=True)
class List:
    """List the methods and experiments."""

    json: bool = False
    """Print JSON with the lists `methods` and `experiments`."""

    def run(self, console: Console) -> None:
        """Print the lists."""
        from isotherm.experiments import EXPERIMENTS

        methods = _methods()
        if self.json:
            sys.stdout.write(json.dumps({"methods": list(methods), "experiments": list(EXPERIMENTS)}) + "\n")
            return
        experiments = {name: _first_line(_parsed(f"experiments/{file}.py")) for name, file in EXPERIMENTS.items()}
        width = max(map(len, methods | experiments))
        for title, lines in (("methods", methods), ("experiments", experiments)):
            console.print(title, style="bold")
            for name, line in lines.items():
                console.print(f"  {name:{width}}  {line}", soft_wrap=True)


# Files are read, not imported: that would take a second, and some experiments need packages that may be missing.
def _methods() -> dict[str, str]:
    """The names in `samplers.METHODS`, in that order, each with the first line of its docstring."""
    package = _parsed("samplers/__init__.py").body
    lines: dict[str, str] = {}
    for node in package:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isotherm.samplers."):
            file = _parsed(f"samplers/{(node.module or '').rpartition('.')[2]}.py")
            lines |= {found.name: _first_line(found) for found in file.body if isinstance(found, ast.FunctionDef)}
    (table,) = (node for node in package if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "METHODS")
    return {node.id: lines[node.id] for node in ast.walk(table) if isinstance(node, ast.Name) and node.id in lines}


def _parsed(file: str) -> ast.Module:
    return ast.parse((_PACKAGE / file).read_text(encoding="utf-8"))


def _first_line(node: ast.Module | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]
