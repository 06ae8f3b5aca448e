"""What a user's function reads beside its arguments: captured variables, globals, defaults and attributes, by value.

A compiled program holds the values that its functions read when they were traced. Comparing them before the next run shows when
the program is out of date.
"""

import dataclasses
import functools
import sysconfig
import types
import zlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from isotherm.foundation.parts import Held

# How deep containers and called functions are followed, and how many values are looked at in all.
_MAX_DEPTH, _MAX_VALUES = 40, 20_000
# Arrays of JAX cannot change; larger ones are compared by identity.
_MAX_COPIED_BYTES = 1 << 20
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, type(Ellipsis))


def dependencies(function: Any) -> tuple[Any, ...]:
    """The values that a function depends on, hashable, equal as long as none of them changes.

    Functions that it calls are followed, unless they belong to an installed library.

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
    """One walk through everything that a function reads."""

    def __init__(self):
        # Held, since the number of an object that is gone may be that of another one.
        self._met: dict[int, Any] = {}
        self._left = _MAX_VALUES

    def values_of(self, value: Any, depth: int) -> Iterator[Any]:
        self._left -= 1
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
        elif id(value) in self._met or depth > _MAX_DEPTH or self._left < 0:
            yield Held(value)
        else:
            self._met[id(value)] = value
            yield from self._inside(value, depth + 1)

    def _inside(self, value: Any, depth: int) -> Iterator[Any]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from self.values_of(key, depth)
                yield from self.values_of(item, depth)
        elif isinstance(value, (list, tuple, set, frozenset)):
            yield type(value), len(value)
            for item in value:
                yield from self.values_of(item, depth)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                yield from self.values_of(part, depth)
        elif isinstance(value, types.MethodType):
            for part in (value.__func__, value.__self__):
                yield from self.values_of(part, depth)
        elif isinstance(value, types.FunctionType):
            yield from self._of_function(value, depth)
        elif isinstance(value, types.CellType):
            yield from _filled(value, lambda content: self.values_of(content, depth))
        elif isinstance(value, types.ModuleType):
            yield Held(value)
        elif isinstance(value, type):
            yield from self._of_class(value, depth)
        elif (
            _is_users(type(value).__module__)
            or dataclasses.is_dataclass(value)
            or isinstance(value, types.SimpleNamespace)
        ):
            yield type(value)
            yield from self.values_of(getattr(value, "__dict__", ()), depth)
            for name in _slots(type(value)):
                yield from self.values_of(getattr(value, name, None), depth)
            yield from self._of_class(type(value), depth)
        else:
            yield Held(value)

    def _of_class(self, kind: type, depth: int) -> Iterator[Any]:
        """The attributes and methods of a class, as far as they are the user's."""
        for base in kind.__mro__:
            for name, part in vars(base).items() if _is_users(base.__module__) else ():
                if isinstance(part, property):
                    part = (part.fget,)
                elif isinstance(part, (staticmethod, classmethod)):
                    part = part.__func__
                if not name.startswith("__") or isinstance(part, types.FunctionType):
                    yield from self.values_of(part, depth)

    def _of_function(self, function: types.FunctionType, depth: int) -> Iterator[Any]:
        yield Held(function.__code__)
        if not _is_users(function.__module__):
            # A library's closure may still hold what the user gave it, such as the numbers of a schedule.
            yield from self.values_of(function.__closure__, depth)
            return
        for part in (function.__closure__, function.__defaults__, function.__kwdefaults__):
            yield from self.values_of(part, depth)
        names = _names(function.__code__)
        for name in names:
            if name not in function.__globals__:
                continue
            found = function.__globals__[name]
            if isinstance(found, types.ModuleType):
                yield from self._of_module(found, names, depth)
            else:
                yield from self.values_of(found, depth)

    def _of_module(self, module: types.ModuleType, names: list[str], depth: int) -> Iterator[Any]:
        if _is_users(module.__name__):
            for name in names:
                if name in vars(module):
                    yield from self.values_of(vars(module)[name], depth)


def _names(code: types.CodeType) -> list[str]:
    """The names that a function and those written inside it may look up."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names(part)]
    return list(dict.fromkeys([*code.co_names, *inner]))


def _filled(cell: types.CellType, values: Any) -> Iterator[Any]:
    try:
        content = cell.cell_contents
    except ValueError:  # Not assigned yet.
        return
    yield from values(content)


def _slots(kind: type) -> list[str]:
    return [name for base in kind.__mro__ for name in getattr(base, "__slots__", ()) if isinstance(name, str)]


@functools.cache
def _is_users(module: str | None) -> bool:
    """Whether a module is the user's own, and not of Python, of an installed library or of isotherm."""
    import sys

    if module is None or module.split(".")[0] in ("isotherm", "builtins"):
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or not file.startswith(_LIBRARIES)
