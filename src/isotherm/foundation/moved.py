"""Names that have moved: they work for one version, with a DeprecationWarning."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any


def moved(module: str, homes: dict[str, str], package: str = "isotherm") -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names are elsewhere now.

    Args:
        module: its name.
        homes: the module of every name.
        package: what to install where that module is missing.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        try:
            found = getattr(importlib.import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            if error.name != homes[name].partition(".")[0]:
                raise
            raise ImportError(
                f"{module}.{name} has moved to the package {package}: `pip install {package}`."
            ) from error
        text = f"{module}.{name} has moved to {homes[name]}; the old name will be removed in version 0.3."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return found

    return __getattr__
