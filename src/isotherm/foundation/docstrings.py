"""Docstrings that state each shared option and each default once.

A docstring says what an argument does. Its default is added from the signature, and `**options` is replaced by the options of the
`TypedDict`, each with its default, so that `help(iso.icsgld)` is complete.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_WIDTH = 110


def documented(*shared: tuple[type, Mapping[str, Any]]) -> Callable[[F], F]:
    """A decorator that completes a docstring.

    Args:
        *shared: the `TypedDict` of the function's `**options`, with their defaults; several where one extends another.
    """

    def decorate(function: F) -> F:
        function.__doc__ = _text(function, shared)
        return function

    return decorate


def _text(function: Callable[..., Any], shared: tuple[tuple[type, Mapping[str, Any]], ...]) -> str:
    parameters = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}
    before, marker, after = (function.__doc__ or "").partition("    Args:\n")
    own, *rest = re.split(r"(\n\n    (?=\w))", after, maxsplit=1)
    entries = _with_defaults(own.split("        **options:")[0], defaults)
    for kind, values in shared:
        entries += _with_defaults((kind.__doc__ or "").partition("    Attributes:\n")[2], values)
    return before + marker + "\n".join(entries) + "".join(rest)


def _with_defaults(entries: str, defaults: Mapping[str, Any]) -> list[str]:
    """Entries `name: text`, each with its default at the end, or with the word that it is required."""
    parts = re.split(r"^ {8}(?=\w+:)", entries, flags=re.MULTILINE)[1:]
    whole = [f"{' '.join(part.split())} {_default(defaults[part.partition(':')[0]])}" for part in parts]
    return [textwrap.fill(part, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12) for part in whole]


def _default(value: Any) -> str:
    return "Required." if value is inspect.Parameter.empty else f"Default: {value!r}."
