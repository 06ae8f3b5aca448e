"""Parts in one line: numbers and settings in full, arrays by dtype and shape, functions by name."""

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
        items = _joined([short_text(item, depth) for item in value[:_MAX_ITEMS]], len(value))
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return f"dict({_joined([str(name) for name in value][:_MAX_ITEMS], len(value))})"
    return function_name(value) if callable(value) else type(value).__name__


def short_fields(value: Any, depth: int = 0) -> str:
    """The class of a part and its fields that differ from their defaults."""
    name = type(value).__name__
    shown = [field for field in dataclasses.fields(value) if field.repr and not _is_default(field, value)]
    if depth >= _MAX_DEPTH and shown:
        return f"{name}(...)"
    return f"{name}({', '.join(f'{f.name}={short_text(getattr(value, f.name, None), depth + 1)}' for f in shown)})"


def function_name(function: Any) -> str:
    """The name of a function, or of the class of a callable."""
    inner = getattr(function, "func", function)
    name = getattr(inner, "__name__", type(inner).__name__)
    return "lambda" if name == "<lambda>" else name


def _joined(items: list[str], count: int) -> str:
    return ", ".join(items + ["..."] * (count > _MAX_ITEMS))


def _array(value: Any) -> str:
    if value.shape:
        return f"{value.dtype}{list(value.shape)}"
    try:
        return f"{float(value):g}" if value.dtype.kind == "f" else repr(value.item())
    except Exception:  # A traced value has no number.
        return f"{value.dtype}[]"


def _is_default(field: dataclasses.Field, value: Any) -> bool:
    held = getattr(value, field.name, None)
    if field.default is not dataclasses.MISSING:
        return held is field.default or (isinstance(held, (int, float, str, tuple)) and held == field.default)
    # Parts compare by identity, so new defaults are compared by their text.
    factory = field.default_factory
    return factory is not dataclasses.MISSING and dataclasses.is_dataclass(held) and repr(held) == repr(factory())
