"""Packages that only some uses need: imported when they are, and named with the command that installs them."""

import importlib
from typing import Any


def require(name: str, extra: str) -> Any:
    """The module `name`, or the command that installs it.

    Example:
        >>> require("math", "all").sqrt(4.0)
        2.0
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f'This needs {package}, which is not installed. Run: pip install "isotherm[{extra}]"', name=package
        ) from error
