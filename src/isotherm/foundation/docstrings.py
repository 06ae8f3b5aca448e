"""Docstrings that state every shared argument once.

The source of a docstring describes the function's own arguments. `documented` adds the shared ones, all defaults, and the options
of a `TypedDict`, so that `help(iso.icsgld)` is complete.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])
_WIDTH = 110


def defaults_of(kind: type) -> dict[str, Any]:
    """The defaults of a `TypedDict` whose fields are annotated `Annotated[type, default]`."""
    return {name: hint.__metadata__[0] for name, hint in get_type_hints(kind, include_extras=True).items()}


def documented(
    *shared: tuple[type, Mapping[str, Any]], arguments: Mapping[str, str] | None = None, returns: str = ""
) -> Callable[[F], F]:
    """A decorator that completes a docstring.

    Args:
        *shared: the `TypedDict` of the function's `**options`, with their defaults; several where one extends another.
        arguments: texts by name of arguments that the docstring leaves out, or continues after `...`.
        returns: the section Returns; empty where the docstring has its own.
    """
    texts, options = dict(arguments or {}), {}
    for kind, defaults in shared:
        texts |= entries((kind.__doc__ or "").partition("    Attributes:\n")[2])
        options |= defaults

    def decorate(function: F) -> F:
        before, own, after = _parts(inspect.cleandoc(function.__doc__ or ""))
        parameters = inspect.signature(function).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD} | options
        lines = [_entry(name, own.get(name, "..."), texts, default) for name, default in defaults.items()]
        section = "Args:\n" + "\n".join(lines) + "\n\n" + (f"Returns:\n    {returns}\n\n" if returns else "")
        function.__doc__ = textwrap.indent(before + section + after, " " * 4).lstrip()
        return function

    return decorate


def entries(text: str) -> dict[str, str]:
    """Descriptions by name, from lines `name: description` whose continuations are indented further."""
    parts = re.split(r"^(?=[*\w]+:)", textwrap.dedent(text.partition("\n\n")[0]), flags=re.MULTILINE)[1:]
    named = (" ".join(part.split()).partition(": ") for part in parts)
    return {name: description for name, _, description in named}


def _parts(text: str) -> tuple[str, dict[str, str], str]:
    """A docstring before its section Args, the entries of that section, and what comes after it, or before Returns or Example."""
    before, marker, after = text.partition("Args:\n")
    if not marker:
        place = re.search(r"^(Returns|Example|Reference):$", text, flags=re.MULTILINE)
        cut = place.start() if place else len(text)
        return text[:cut], {}, text[cut:]
    own, _, rest = after.partition("\n\n")
    return before, entries(own), rest


def _entry(name: str, own: str, texts: Mapping[str, str], default: Any) -> str:
    text = f"{texts[name]}{own[3:]}" if own.startswith("...") else own
    shown = default.__name__ if inspect.isfunction(default) else repr(default)
    end = "Required." if default is inspect.Parameter.empty else f"Default: {shown}."
    return textwrap.fill(f"{name}: {text} {end}", _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
