"""A potential or a function from a user's file, `FILE.py:NAME`, and a sampler from a method's name and options."""

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
from isotherm.potentials.potential import Potential
from isotherm.samplers import METHODS
from isotherm.samplers.sampler import AnySampler, as_potential


class UserFile(NamedTuple):
    """A file of the user's as it was read, which is what runs.

    Attributes:
        path: absolute.
        name: what is wanted of it.
        content: its bytes. The file on disk may change between a look at its checksum and its run.
    """

    path: pathlib.Path
    name: str
    content: bytes

    @property
    def source(self) -> dict[str, str]:
        """What a run stores of it."""
        return {"file": str(self.path), "name": self.name, "sha256": hashlib.sha256(self.content).hexdigest()}


def load_potential(reference: str) -> tuple[Potential, dict[str, Any]]:
    """The potential that `FILE.py:NAME` names, and where it came from. Runs the file."""
    file = read_file(reference, "potential")
    return as_potential(run_file(file, "potential")), file.source


def load_object(reference: str, argument: str) -> Any:
    """What `FILE.py:NAME` names. Runs the file; refusals call it by the name of the `argument`."""
    return run_file(read_file(reference, argument), argument)


def read_file(reference: str, argument: str) -> UserFile:
    """The file that `FILE.py:NAME` names. Runs nothing."""
    file, separator, name = reference.rpartition(":")
    if not separator or not file.endswith(".py") or not name.isidentifier():
        remedy = "For a function `energy` in landscape.py, write landscape.py:energy."
        refuse(argument, "of the form FILE.py:NAME", repr(reference), remedy)
    path = pathlib.Path(file).expanduser().resolve()
    if not path.is_file():
        refuse(argument, "in a file that exists", str(path), "Check the path.")
    return UserFile(path, name, path.read_bytes())


def run_file(file: UserFile, argument: str) -> Any:
    """What is wanted of a file, which is run."""
    module = _run(file, argument)
    if not hasattr(module, file.name):
        offered = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        had = f"The file has: {', '.join(offered) or 'nothing'}."
        refuse(argument, f"a name in {file.path.name}", repr(file.name), had)
    return getattr(module, file.name)


def build_sampler(method: str, options: dict[str, Any]) -> AnySampler:
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


def _run(file: UserFile, argument: str) -> types.ModuleType:
    path = file.path
    module = types.ModuleType(f"isotherm_user_{path.stem}")
    module.__file__ = str(path)
    sys.path.insert(0, str(path.parent))
    # Dataclasses and pickles look for their module there.
    sys.modules[module.__name__] = module
    try:
        # The bytes that were read: an import might take older ones, from `__pycache__`.
        exec(compile(file.content, str(path), "exec", dont_inherit=True), vars(module))
    except Exception as error:  # Whatever a user's file raises, the message must say where.
        place = f"{type(error).__name__}: {error}"
        refuse(argument, "a file that runs", f"{path.name}, which raised {place}", "Run it with python to see more.")
    finally:
        sys.path.remove(str(path.parent))
    return module
