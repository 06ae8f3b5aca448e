"""`isotherm list`."""

import ast
import dataclasses
import importlib.metadata
import json
import pathlib
import sys
from typing import ClassVar

from rich.console import Console

_SAMPLERS = pathlib.Path(__file__).parents[1] / "samplers"


@dataclasses.dataclass(frozen=True)
class List:
    """List the methods and experiments."""

    # Nothing is compiled, and JAX is not imported.
    compiles: ClassVar[bool] = False

    json: bool = False
    """Print JSON with the lists `methods` and `experiments`."""

    def run(self, console: Console) -> None:
        """Print the lists."""
        added = {one.name: one.load()() for one in importlib.metadata.entry_points(group="isotherm.lists")}
        lists: dict[str, dict[str, str]] = {"methods": _methods(), "experiments": {}} | added
        if self.json:
            sys.stdout.write(json.dumps({title: list(lines) for title, lines in lists.items()}) + "\n")
            return
        width = max(len(name) for lines in lists.values() for name in lines)
        for title, lines in lists.items():
            console.print(title, style="bold")
            for name, line in lines.items():
                console.print(f"  {name:{width}}  {line}", soft_wrap=True)


def _methods() -> dict[str, str]:
    """The names in `samplers.METHODS`, each with the first line of its docstring.

    Files are parsed, not imported, which would take a second.
    """
    package = ast.parse((_SAMPLERS / "__init__.py").read_text(encoding="utf-8")).body
    lines: dict[str, str] = {}
    for node in package:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isotherm.samplers."):
            file = _SAMPLERS / f"{(node.module or '').rpartition('.')[2]}.py"
            for found in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(found, ast.FunctionDef):
                    lines[found.name] = (ast.get_docstring(found) or "").partition("\n")[0]
    (table,) = (node for node in package if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "METHODS")
    return {node.id: lines[node.id] for node in ast.walk(table) if isinstance(node, ast.Name) and node.id in lines}
