"""Objects from a user's file, `FILE.py:NAME`, and samplers from a method's name and options."""

import ast
import hashlib
import inspect
import pathlib
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from isotherm.foundation.errors import refuse
from isotherm.samplers import METHODS
from isotherm.samplers.sampler import AnySampler


class UserFile(NamedTuple):
    """`FILE.py:NAME` as read, for messages about `argument`. The file on disk may change between its checksum and its run."""

    path: pathlib.Path
    name: str
    content: bytes
    argument: str

    @property
    def source(self) -> dict[str, str]:
        """Its entry in the folder of a run."""
        return {"file": str(self.path), "name": self.name, "sha256": hashlib.sha256(self.content).hexdigest()}

    def load(self) -> Any:
        """Run the file, and return its object."""
        path = self.path
        module = types.ModuleType(f"isotherm_user_{path.stem}")
        module.__file__ = str(path)
        sys.path.insert(0, str(path.parent))
        # Dataclasses and pickles look up their module there.
        sys.modules[module.__name__] = module
        try:
            # Not an import, which may take older bytes from `__pycache__`.
            exec(compile(self.content, str(path), "exec", dont_inherit=True), vars(module))
        except Exception as error:
            got = f"{path.name}, which raised {type(error).__name__}: {error}"
            refuse(self.argument, "a file that runs", got, "Run it with python to see more.")
        finally:
            sys.path.remove(str(path.parent))
        if not hasattr(module, self.name):
            offered = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
            remedy = f"The file has: {', '.join(offered) or 'nothing'}."
            refuse(self.argument, f"a name in {path.name}", repr(self.name), remedy)
        return getattr(module, self.name)


def read_file(reference: str, argument: str) -> UserFile:
    """Read the file in `FILE.py:NAME`, without running it."""
    file, separator, name = reference.rpartition(":")
    if not separator or not file.endswith(".py") or not name.isidentifier():
        remedy = "For a function `energy` in landscape.py, write landscape.py:energy."
        refuse(argument, "of the form FILE.py:NAME", repr(reference), remedy)
    path = pathlib.Path(file).expanduser().resolve()
    if not path.is_file():
        refuse(argument, "in a file that exists", str(path), "Check the path.")
    return UserFile(path, name, path.read_bytes(), argument)


def build_sampler(method: str, options: dict[str, Any]) -> AnySampler:
    """The sampler `method` with `options`, which must be its own."""
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
    """The options of a constructor, with those of its `**options`, and whether each is required."""
    found: dict[str, bool] = {}
    for name, parameter in inspect.signature(constructor).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            found |= dict.fromkeys(typing.get_args(parameter.annotation)[0].__annotations__, False)
        else:
            found[name] = parameter.default is parameter.empty
    return found


def parse_options(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Options from `NAME=VALUE`, where a value is a word or a Python literal such as 0.1, None or (-2.5, 2.5)."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator:
            refuse("--set", "of the form NAME=VALUE", repr(pair), "Write --set cycle_length=1000, say.")
        try:
            is_word = text.isidentifier() and text not in ("None", "True", "False")
            options[name] = text if is_word else ast.literal_eval(text)
        except (ValueError, SyntaxError):
            rule = "a word, or a literal such as 0.1 or (-2.5, 2.5)"
            refuse(f"--set {name}", rule, repr(text), "Expressions are not evaluated.")
    return options
