"""Errors, warnings and checks of inputs. Every refusal reads `` `name` must be <rule>; got <value>. <remedy>``."""

import difflib
import math
import numbers
import os
import pathlib
from collections.abc import Iterable
from typing import Any, NoReturn


class DivergenceError(RuntimeError):
    """Raised after a run with ``throw=True`` when the energy of a chain became infinite or NaN."""


class DivergenceWarning(UserWarning):
    """Names the chains whose energy became infinite or NaN, the iteration, and the remedy."""


class StorageError(OSError):
    """Raised when the folder of a run cannot be written to, or was deleted."""


class DeviceMemoryError(RuntimeError):
    """Raised when a device runs out of memory."""


class InputError(ValueError):
    """Raised for every wrong input."""


def refuse(name: str, rule: str, value: Any, remedy: str) -> NoReturn:
    """Raise the `InputError` of a wrong input."""
    raise InputError(f"`{name}` must be {rule}; got {value}. {remedy}")


def check_integer(name: str, value: Any, minimum: int, remedy: str) -> int:
    """Return `value` as an int of at least `minimum`, or refuse it."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or int(value) < minimum:
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
    bounds = {"above": above, "at least": minimum, "below": below, "at most": maximum}
    limits = " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if math.isfinite(bound))
    rule = f"a finite real number {limits}".strip()
    try:
        number = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and above < number < below and minimum <= number <= maximum):
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
    """The most similar known word, or None.

    Example:
        >>> closest("csgl", ("sgld", "csgld"))
        'csgld'
        >>> closest("sgdl", ("sgd", "sgld"))
        'sgld'
    """
    known = list(known)
    # Swapped letters are the likeliest typo.
    swapped = [other for other in known if sorted(other) == sorted(word)]
    return next(iter(swapped or difflib.get_close_matches(word, known, 1)), None)


def check_type(name: str, value: Any, kind: type, rule: str, remedy: str) -> Any:
    """Return `value` if it is of type `kind`, or refuse it."""
    if not isinstance(value, kind):
        refuse(name, rule, short(value), remedy)
    return value


def check_folder(name: str, value: Any, remedy: str) -> pathlib.Path:
    """Return `value` as an absolute path with `~` expanded, or refuse it."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        refuse(name, "the path of a folder", short(value), remedy)
    try:
        return pathlib.Path(value).expanduser().absolute()
    except RuntimeError:
        return refuse(name, "a path whose `~` is the home of a user", short(str(value)), "Write the whole path.")


def check_written_path(name: str, folder: pathlib.Path) -> None:
    """Refuse a path that TensorStore or Orbax would misread."""
    path = str(folder.resolve())
    # Orbax globs with the path; TensorStore reads a backslash as a slash.
    found = [letter for letter in "*?[\\" if letter in path and letter != os.sep]
    if found:
        rule = "a folder whose path has none of the characters * ? [ \\, which Orbax and TensorStore misread"
        refuse(name, rule, f"{path} with {' '.join(found)}", "Choose another folder, or rename the one around it.")
    try:
        path.encode()
    except UnicodeEncodeError:
        remedy = "Set the environment variable PYTHONUTF8=1, or choose another name."
        refuse(name, "a folder whose path is text in UTF-8", repr(path), remedy)


def short(value: Any) -> str:
    """The `repr` of a value for messages, or its type where that is long."""
    text = repr(value)
    return text if len(text) <= 80 and "\n" not in text and " at 0x" not in text else f"a {type(value).__name__}"
