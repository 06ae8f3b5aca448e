"""A potential or a function from a user's file, `FILE.py:NAME`, and a sampler from a method's name and options."""

import ast
import hashlib
import importlib.util
import inspect
import pathlib
import sys
import typing
from collections.abc import Callable
from typing import Any

from isotherm.foundation.errors import refuse
from isotherm.potentials.potential import Potential
from isotherm.samplers import METHODS
from isotherm.sampling.sampler import Sampler, as_potential


def load_potential(reference: str) -> tuple[Potential, dict[str, Any]]:
    """The potential that `FILE.py:NAME` names, and where it came from. Runs the file."""
    found, path = load_object(reference, "potential")
    name = reference.rpartition(":")[2]
    source = {"file": str(path), "name": name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    return as_potential(found), source


def load_object(reference: str, argument: str) -> tuple[Any, pathlib.Path]:
    """What `FILE.py:NAME` names, and its file, which is run. Refusals call it by the name of the `argument`."""
    file, separator, name = reference.rpartition(":")
    if not separator or not file.endswith(".py") or not name.isidentifier():
        remedy = "For a function `energy` in landscape.py, write landscape.py:energy."
        refuse(argument, "of the form FILE.py:NAME", repr(reference), remedy)
    path = pathlib.Path(file).resolve()
    if not path.is_file():
        refuse(argument, "in a file that exists", str(path), "Check the path.")
    module = _run(path, argument)
    if not hasattr(module, name):
        offered = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        refuse(argument, f"a name in {path.name}", repr(name), f"The file has: {', '.join(offered) or 'nothing'}.")
    return getattr(module, name), path


def build_sampler(method: str, options: dict[str, Any]) -> Sampler:
    """The sampler `method` with `options`, checked against what it takes."""
    if method not in METHODS:
        refuse("method", "one of " + ", ".join(METHODS), repr(method), "`isotherm list` shows them.")
    parameters = _parameters(METHODS[method])
    for name in options:
        if name not in parameters:
            refuse(f"--set {name}", f"an option of {method}", repr(name), f"It takes: {', '.join(parameters)}.")
    missing = [name for name, is_needed in parameters.items() if is_needed and name not in options]
    if "step_size" in missing:
        remedy = 'Add --step-size VALUE, or --set "step_size=(FIRST, LAST)" for a ladder of several.'
        refuse("--step-size", f"given for {method}", "nothing", remedy)
    if missing:
        refuse("method", f"given {' and '.join(missing)}", method, f"Add --set {missing[0]}=VALUE.")
    return METHODS[method](**options)


def _parameters(constructor: Callable[..., Any]) -> dict[str, bool]:
    """The options of a constructor, those of its `**options` among them, and whether each must be given."""
    found: dict[str, bool] = {}
    for name, parameter in inspect.signature(constructor).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            found |= dict.fromkeys(typing.get_args(parameter.annotation)[0].__annotations__, False)
        else:
            found[name] = parameter.default is parameter.empty
    return found


def parse_options(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Options from `NAME=VALUE` pairs; values are words, or Python literals such as 0.1, None or (-2.5, 2.5)."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator:
            refuse("--set", "of the form NAME=VALUE", repr(pair), "Write --set cycle_length=1000, say.")
        try:
            is_word = text.isidentifier() and text not in ("None", "True", "False")
            options[name] = text if is_word else ast.literal_eval(text)
        except (ValueError, SyntaxError):
            refuse(
                f"--set {name}",
                "a word, or a literal such as 0.1 or (-2.5, 2.5)",
                repr(text),
                "Expressions are not evaluated.",
            )
    return options


def _run(path: pathlib.Path, argument: str) -> Any:
    specification = importlib.util.spec_from_file_location(f"isotherm_user_{path.stem}", path)
    if specification is None or specification.loader is None:
        refuse(argument, "a Python file", str(path), "Give it a name that ends in .py.")
    module = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(path.parent))
    try:
        specification.loader.exec_module(module)
    except Exception as error:  # Whatever a user's file raises, the message must say where.
        place = f"{type(error).__name__}: {error}"
        refuse(argument, "a file that runs", f"{path.name}, which raised {place}", "Run it with python to see more.")
    finally:
        sys.path.remove(str(path.parent))
    return module
