"""What isotherm says when an input is wrong or a chain diverges.

Every refusal has one form: `` `name` must be <rule>; got <value>. `` followed by what to do.
"""

import difflib
import math
import numbers
import os
import pathlib
from collections.abc import Iterable
from typing import Any, NoReturn


class DivergenceError(RuntimeError):
    """Raised after a run with ``throw=True`` when a chain left the finite numbers."""


class StorageError(OSError):
    """Raised when the folder of a run cannot be written to, or was deleted."""


class InputError(ValueError):
    """Raised for every wrong input; the message names the argument, the rule, what was given, and what to do."""


class DivergenceWarning(UserWarning):
    """Says which chains left the finite numbers, when, and what to change."""


def refuse(name: str, rule: str, value: Any, remedy: str) -> NoReturn:
    """Raise the `ValueError` that every wrong input ends in."""
    raise InputError(f"`{name}` must be {rule}; got {value}. {remedy}")


def check_integer(name: str, value: Any, minimum: int, remedy: str) -> int:
    """Return `value` as an int of at least `minimum`, or refuse it."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or int(value) < minimum:
        refuse(name, f"an integer of at least {minimum}", short(value), remedy)
    return int(value)


def check_real(
    name: str,
    value: Any,
    remedy: str,
    *,
    above: float = -math.inf,
    minimum: float = -math.inf,
    below: float = math.inf,
    maximum: float = math.inf,
) -> float:
    """Return `value` as a finite float inside the given bounds, or refuse it."""
    limits = [
        f"above {above:g}" if above > -math.inf else "",
        f"at least {minimum:g}" if minimum > -math.inf else "",
        f"below {below:g}" if below < math.inf else "",
        f"at most {maximum:g}" if maximum < math.inf else "",
    ]
    rule = " ".join(["a finite real number", " and ".join(filter(None, limits))]).strip()
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        refuse(name, rule, short(value), remedy)
    inside = above < number < below and minimum <= number <= maximum
    if isinstance(value, bool) or not math.isfinite(number) or not inside:
        refuse(name, rule, short(value), remedy)
    return number


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, or refuse it."""
    if not isinstance(value, str) or value not in choices:
        close = closest(str(value), choices)
        remedy = f"Did you mean {close!r}?" if close else "Choose one of them."
        refuse(name, "one of " + ", ".join(map(repr, choices)), short(value), remedy)
    return value


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like another one; None where none is much like it.

    Example:
        >>> closest("csgl", ("sgld", "csgld"))
        'csgld'
        >>> closest("sgdl", ("sgd", "sgld"))
        'sgld'
    """
    known = list(known)
    # Letters that changed places are the likeliest slip.
    swapped = [other for other in known if sorted(other) == sorted(word)]
    if swapped:
        return swapped[0]
    return next(iter(difflib.get_close_matches(word, known, 1)), None)


def check_type(name: str, value: Any, kind: type, rule: str, remedy: str) -> Any:
    """Return `value` if it is of type `kind`, or refuse it."""
    if not isinstance(value, kind):
        refuse(name, rule, short(value), remedy)
    return value


def check_folder(name: str, value: Any, remedy: str) -> pathlib.Path:
    """Return `value` as an absolute path, with `~` as the home of its user, or refuse what is none."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        refuse(name, "the path of a folder", short(value), remedy)
    try:
        return pathlib.Path(value).expanduser().absolute()
    except RuntimeError:
        return refuse(name, "a path whose `~` is the home of a user", short(str(value)), "Write the whole path.")


def check_written_path(name: str, folder: pathlib.Path) -> None:
    """Refuse a path under which TensorStore or Orbax would write to, or look for, another one."""
    path = str(folder.resolve())
    # Orbax looks for files by a pattern that holds the path; TensorStore takes a backslash for a slash.
    found = [letter for letter in "*?[\\" if letter in path and letter != os.sep]
    if found:
        rule = "a folder whose path has none of the letters * ? [ \\, which stand for others in paths"
        refuse(name, rule, f"{path} with {' '.join(found)}", "Choose another folder, or rename the one around it.")
    try:
        path.encode()
    except UnicodeEncodeError:
        remedy = "Set the environment variable PYTHONUTF8=1, or choose another name."
        refuse(name, "a folder whose path is text in UTF-8", repr(path), remedy)


def short(value: Any) -> str:
    """What a message shows of a value: its `repr`, or its type where that is long."""
    text = repr(value)
    return text if len(text) <= 80 and "\n" not in text and " at 0x" not in text else f"a {type(value).__name__}"
