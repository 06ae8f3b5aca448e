"""A pickle reader that can build plain containers and arrays of integers, and nothing else.

A pickle may name any function of any module and have it called. Here no name is ever looked up in a module: the few that the
CIFAR files hold stand for objects of this file, and every other name ends the reading. NumPy's own reconstruction is not used
either, since it trusts the sizes and types that it is told.
"""

import io
import math
import pickle
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from isotherm_thesis.data.dataset import DamageError

_TYPES = ("u1", "i4", "i8")


def unpickle(data: bytes) -> Any:
    """The object in `data`; bytes and arrays in it are `bytes` and `numpy.ndarray`, at the top level of a dictionary."""
    result = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    if isinstance(result, dict):
        return {name: value.array if isinstance(value, _Array) else value for name, value in result.items()}
    return result


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # The module was renamed in NumPy 2, so that old and new files differ.
        if (module, name) in (("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")):
            return _Name(lambda kind, shape, code: _Array())
        if (module, name) == ("numpy", "ndarray"):
            return _Name(_refuse_call)
        if (module, name) == ("numpy", "dtype"):
            return _Name(lambda code, align, copy: _Type(code))
        if (module, name) == ("_codecs", "encode"):
            return _Name(_encode)
        raise DamageError(f"a pickle that names {module[:80]!r}, {name[:80]!r}, which is refused and was not run")


class _Name:
    """Stands for a function that a pickle names. A new one each time, and closed to changes by the pickle."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]):
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    def __setstate__(self, state: Any) -> NoReturn:
        raise DamageError("a pickle that changes a function")


class _Type:
    """An element type."""

    __slots__ = ("dtype",)

    def __init__(self, code: Any):
        code = code.decode("ascii") if isinstance(code, bytes) else code
        if code not in _TYPES:
            raise DamageError(f"an array of type {str(code)[:80]!r}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        order = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|", "="):
            raise DamageError("an array of unknown byte order")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """An array, empty until its state is set."""

    __slots__ = ("array",)

    def __init__(self):
        self.array = np.zeros(0, np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, is_fortran, data = state
        if not (isinstance(kind, _Type) and isinstance(data, bytes) and isinstance(shape, tuple)):
            raise DamageError("an array whose parts have wrong types")
        if not all(isinstance(size, int) and size >= 0 for size in shape):
            raise DamageError("an array of negative size")
        if math.prod(shape) * kind.dtype.itemsize != len(data):
            raise DamageError(f"an array of shape {shape} in {len(data):,} bytes")
        self.array = np.frombuffer(data, kind.dtype).reshape(shape, order="F" if is_fortran else "C")


def _refuse_call(*_: Any) -> NoReturn:
    raise DamageError("a pickle that builds an array in an unknown way")


def _encode(text: Any, encoding: Any) -> bytes:
    # Python 3 writes bytes in this way in the pickle protocol of Python 2.
    if not (isinstance(text, str) and encoding in ("latin1", b"latin1")):
        raise DamageError("a pickle that encodes text in an unknown way")
    return text.encode("latin1")
