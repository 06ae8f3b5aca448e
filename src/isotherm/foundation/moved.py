"""Names that have moved: they work for one version, with a DeprecationWarning."""

import importlib
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

# Modules that no longer are files, and by new home the names that they held.
_MODULES = {
    "models": {
        "isotherm.networks": "CNN MLP ResNet bottleneck_resnet num_parameters resnet",
        "isotherm_thesis.models": "FilterResponseNorm FilterResponseResNet WideResNet frn_resnet wide_resnet",
    },
    "data": {
        "isotherm.networks": "Normalize",
        "isotherm_thesis.data": "CATALOG DataSet check find get load",
    },
    "data.augment": {"isotherm.networks": "Crop Erase Flip InTurn Normalize cifar_augmentation"},
    "experiments": {"isotherm_thesis.experiments": "EXPERIMENTS"},
    "runs": {"isotherm.run": "Run load"},
    "sampling": {
        "isotherm": "Sampler as_optax per_chain resume sample sweep to_blackjax",
        "isotherm.samplers": "Info LoopState",
    },
}


def moved(module: str, homes: dict[str, str], package: str = "isotherm", stacklevel: int = 2) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names are elsewhere now.

    Args:
        module: its name.
        homes: the module of every name.
        package: what to install where that module is missing.
        stacklevel: of the warning; 3 for an `__getattr__` that calls this one.
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
        warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)
        return found

    return __getattr__


def add_moved_modules() -> None:
    """Make the modules that are no longer files importable."""
    for name, names_by_home in _MODULES.items():
        module = types.ModuleType(f"isotherm.{name}", "Names that have moved.")
        homes = {each: home for home, names in names_by_home.items() for each in names.split()}
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None)
        vars(module)["__getattr__"] = moved(module.__name__, homes, "isotherm-thesis")
        sys.modules[module.__name__] = module
        parent, _, last = module.__name__.rpartition(".")
        setattr(sys.modules[parent], last, module)
