"""Packages that only some uses need: imported when they are, and named with the command that installs them."""

import importlib
from typing import Any


def require(name: str, extra: str | None) -> Any:
    """The module `name`, or the command that installs it: an extra of this package, or where that is None the other package.

    Example:
        >>> require("math", "all").sqrt(4.0)
        2.0
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        wanted = package if extra is None else f'"isotherm[{extra}]"'
        raise ImportError(
            f"This needs {package}, which is not installed. Run: pip install {wanted}", name=package
        ) from error
