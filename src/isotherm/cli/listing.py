"""`isotherm list`."""

import ast
import dataclasses
import json
import pathlib
import sys
from typing import ClassVar

from rich.console import Console

from isotherm.cli.extras import extra_lists

_PACKAGE = pathlib.Path(__file__).parents[1]


@dataclasses.dataclass(frozen=True)
class List:
    """List the methods and experiments."""

    # Nothing is compiled, and JAX need not be imported.
    compiles: ClassVar[bool] = False

    json: bool = False
    """Print JSON with the lists `methods` and `experiments`."""

    def run(self, console: Console) -> None:
        """Print the lists."""
        lists = {"methods": _methods(), "experiments": {}} | extra_lists()
        if self.json:
            sys.stdout.write(json.dumps({title: list(lines) for title, lines in lists.items()}) + "\n")
            return
        width = max(len(name) for lines in lists.values() for name in lines)
        for title, lines in lists.items():
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
