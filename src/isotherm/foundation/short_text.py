"""Parts in one line: numbers and settings in full, arrays by type and shape, functions by name."""

import dataclasses
from typing import Any

import numpy as np

_MAX_ITEMS = 6
_MAX_DEPTH = 2


def short_text(value: Any, depth: int = 0) -> str:
    """A short text for a setting, an array, a function or a part.

    Example:
        >>> short_text((1.0, np.zeros((3, 4)), len))
        '(1.0, float64[3, 4], len)'
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, np.generic) or (hasattr(value, "dtype") and hasattr(value, "shape")):
        return _array(value)
    if hasattr(type(value), "short_repr"):
        return value.short_repr(depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return short_fields(value, depth)
    if isinstance(value, (list, tuple)):
        items = [short_text(item, depth) for item in value[:_MAX_ITEMS]] + ["..."] * (len(value) > _MAX_ITEMS)
        inside = ", ".join(items)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        names = [str(name) for name in value][:_MAX_ITEMS] + ["..."] * (len(value) > _MAX_ITEMS)
        return f"dict({', '.join(names)})"
    if callable(value):
        return function_name(value)
    return type(value).__name__


def short_fields(value: Any, depth: int = 0) -> str:
    """The class of a part, and those of its fields that are not at their defaults."""
    name = type(value).__name__
    shown = [field for field in dataclasses.fields(value) if field.repr and not _is_default(field, value)]
    if depth >= _MAX_DEPTH and shown:
        return f"{name}(...)"
    return f"{name}({', '.join(f'{f.name}={short_text(getattr(value, f.name, None), depth + 1)}' for f in shown)})"


def function_name(function: Any) -> str:
    """What a function is called: its own name, or that of its class."""
    inner = getattr(function, "func", function)
    name = getattr(inner, "__name__", type(inner).__name__)
    return "lambda" if name == "<lambda>" else name


def _array(value: Any) -> str:
    shape = list(value.shape)
    if not shape:
        try:
            return f"{float(value):g}" if value.dtype.kind == "f" else repr(value.item())
        except Exception:  # A value that is traced has none.
            return f"{value.dtype}[]"
    return f"{value.dtype}{shape}"


def _is_default(field: dataclasses.Field, value: Any) -> bool:
    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
        return False
    held = getattr(value, field.name, None)
    if field.default is dataclasses.MISSING:
        # Parts are compared by identity: the text of a default that is made anew says whether it is the same.
        return dataclasses.is_dataclass(held) and repr(held) == repr(field.default_factory())  # pyright: ignore[reportCallIssue]
    return held is field.default or (isinstance(held, (int, float, str, tuple)) and held == field.default)
