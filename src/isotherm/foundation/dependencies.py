"""Values that a user's function reads apart from its arguments: captured variables, globals, defaults and attributes.

A compiled program holds the values that its functions read when they were traced. It is out of date when they change.
"""

import dataclasses
import functools
import itertools
import sys
import sysconfig
import types
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from isotherm.foundation.parts import Held

_MAX_DEPTH, _MAX_VALUES = 40, 20_000
# Larger arrays of JAX are compared by identity, since they cannot change.
_MAX_COPIED_BYTES = 1 << 20
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, type(Ellipsis))


def dependencies(function: Any) -> tuple[Any, ...]:
    """The values that a function and the functions it calls read, hashable, equal until one of them changes.

    Functions of installed libraries are not followed.

    Example:
        >>> def scaled(by):
        ...     return lambda x: by[0] * x
        >>> scale = [1.0]
        >>> energy = scaled(scale)
        >>> before = dependencies(energy)
        >>> scale[0] = 2.0
        >>> before == dependencies(energy)
        False
    """
    return tuple(_Walk().values_of(function, 0))


class _Walk:
    def __init__(self):
        # Visited objects by id, kept alive so that no id is reused.
        self._visited: dict[int, Any] = {}
        self._num_left = _MAX_VALUES

    def values_of(self, value: Any, depth: int) -> Iterator[Any]:
        self._num_left -= 1
        if isinstance(value, _PLAIN):
            # The type, since 1 == 1.0 == True; the text, since NaN is unequal to itself.
            yield type(value), repr(value) if isinstance(value, (float, complex, np.generic)) else value
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            yield value.shape, str(value.dtype), zlib.crc32(np.ascontiguousarray(value).view(np.uint8).data)
        elif isinstance(value, jax.Array):
            if isinstance(value, Tracer) or value.nbytes > _MAX_COPIED_BYTES or not value.is_fully_addressable:
                yield Held(value)
            elif not jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
                yield from self.values_of(np.asarray(value), depth)
        elif id(value) in self._visited or depth > _MAX_DEPTH or self._num_left < 0:
            yield Held(value)
        else:
            self._visited[id(value)] = value
            own, children = _split(value)
            yield own
            for child in children:
                yield from self.values_of(child, depth + 1)


def _split(value: Any) -> tuple[Any, Iterable[Any]]:
    """A hashable that identifies an object, and the values inside it."""
    kind = type(value)
    if isinstance(value, dict):
        return kind, itertools.chain.from_iterable(value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return (kind, len(value)), value
    if isinstance(value, functools.partial):
        return kind, (value.func, value.args, value.keywords)
    if isinstance(value, types.MethodType):
        return kind, (value.__func__, value.__self__)
    if isinstance(value, types.FunctionType):
        return Held(value.__code__), _inside_function(value)
    if isinstance(value, types.CellType):
        return kind, _inside_cell(value)
    if isinstance(value, type):
        return kind, _inside_class(value)
    if _is_users(kind.__module__) or dataclasses.is_dataclass(value) or isinstance(value, types.SimpleNamespace):
        slots = (name for base in kind.__mro__ for name in getattr(base, "__slots__", ()) if isinstance(name, str))
        attributes = (getattr(value, name, None) for name in slots)
        return kind, itertools.chain([getattr(value, "__dict__", ())], attributes, _inside_class(kind))
    return Held(value), ()


def _inside_cell(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # Not assigned yet.
        return ()


def _inside_class(kind: type) -> Iterator[Any]:
    """Attributes and methods of the user's classes."""
    for base in kind.__mro__:
        for name, part in vars(base).items() if _is_users(base.__module__) else ():
            if isinstance(part, property):
                part = (part.fget,)
            elif isinstance(part, (staticmethod, classmethod)):
                part = part.__func__
            if not name.startswith("__") or isinstance(part, types.FunctionType):
                yield part


def _inside_function(function: types.FunctionType) -> Iterator[Any]:
    yield function.__closure__
    if not _is_users(function.__module__):
        # The closure of a library's function may hold the user's values, such as the numbers of a schedule.
        return
    yield from (function.__defaults__, function.__kwdefaults__)
    names = _names(function.__code__)
    for name in names:
        if name not in function.__globals__:
            continue
        found = function.__globals__[name]
        if not isinstance(found, types.ModuleType):
            yield found
        elif _is_users(found.__name__):
            yield from (vars(found)[inner] for inner in names if inner in vars(found))


def _names(code: types.CodeType) -> list[str]:
    """Names that a function and the functions defined inside it may look up."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names(part)]
    return list(dict.fromkeys([*code.co_names, *inner]))


@functools.cache
def _is_users(module: str | None) -> bool:
    """Whether a module is not part of Python, an installed library or isotherm."""
    if module is None or module.split(".")[0] in ("isotherm", "builtins"):
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or not file.startswith(_LIBRARIES)
