"""Imports of optional packages."""

import importlib
from typing import Any


def require(name: str, extra: str | None) -> Any:
    """Import a module, or raise an error with the command that installs it: an extra of isotherm, or for None its own package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        wanted = package if extra is None else f'"isotherm[{extra}]"'
        text = f"This needs {package}, which is not installed. Run: pip install {wanted}"
        raise ImportError(text, name=package) from error
