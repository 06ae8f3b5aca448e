"""Arrays on disk that behave like NumPy's."""

import itertools
import numbers
import pathlib
import re
from typing import Any, NoReturn

import numpy as np

from isotherm.foundation.errors import refuse
from isotherm.run.storage.zarr_arrays import CHECKSUM_BYTES

# Chunks that are read at once to verify them.
_NUM_VERIFIED = 8
_FILE = re.compile('local file "([^"]+)"')


class StoredArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array on disk that is read when it is used, and cannot be written to.

    Indexing reads what it needs for integers and slices, and for one array of integers or booleans beside slices; all other
    indices, arithmetic, comparisons, NumPy's functions and the methods of NumPy's arrays read all of it, and give NumPy's arrays.

    Zarr reads a chunk whose file is missing as its fill value. Here it is refused: every chunk that was written has a file. A
    chunk that does not match its checksum is refused, too; arrays of older formats have none.
    """

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, handle: Any, path: pathlib.Path, *, is_old: bool = False):
        self._handle, self._path = handle, path
        self._chunk: tuple[int, ...] = tuple(handle.chunk_layout.read_chunk.shape or ())
        self.shape: tuple[int, ...] = tuple(handle.shape)
        self.dtype: np.dtype = np.dtype(handle.dtype.numpy_dtype)
        self.ndim, self.size = len(self.shape), int(np.prod(self.shape))
        self.itemsize, self.nbytes = self.dtype.itemsize, self.dtype.itemsize * self.size
        self._file_size = None if is_old else int(np.prod(self._chunk)) * self.itemsize + CHECKSUM_BYTES

    def __getitem__(self, index: Any) -> Any:
        parts = _completed(index if isinstance(index, tuple) else (index,), self.shape)
        if parts is None:
            return np.asarray(self)[index]
        # TensorStore counts from its own origin and does not clip, so NumPy's rules are applied here.
        fixed = tuple(_within(part, size) for part, size in zip(parts, self.shape, strict=True))
        if any(isinstance(part, slice) and part.step < 0 for part in fixed):
            return np.asarray(self)[index]
        self.check(fixed)
        return self._read(self._handle.oindex[fixed])[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("An array on disk must be copied to be read; pass copy=None.")
        self.check((slice(None),) * self.ndim)
        return np.asarray(self._read(self._handle), dtype)

    def verify(self, axis: int, number: int) -> None:
        """Read the first `number` draws, and refuse an array in which one is missing or damaged."""
        lead, step = (slice(None),) * axis, _NUM_VERIFIED * self._chunk[axis]
        for start in range(0, number, step):
            self[(*lead, slice(start, min(start + step, number)))]

    def check(self, index: tuple[Any, ...]) -> None:
        """Refuse an array that has lost a chunk which an index, of a part for every axis, needs."""
        axes = [_chunks_of(*axis) for axis in zip(index, self.shape, self._chunk, strict=True)]
        for place in itertools.product(*axes):
            chunk = self._path / (".".join(map(str, place)) or "0")
            try:
                size = chunk.stat().st_size
            except OSError:
                remedy = "Files were removed, renamed or moved since they were written: restore them, or sample again."
                refuse("folder", "complete", f"no {chunk}", remedy)
            if self._file_size not in (None, size):
                _refuse_damaged(chunk, f"which has {size:,} bytes instead of {self._file_size:,}")

    def _read(self, part: Any) -> np.ndarray:
        try:
            return np.asarray(part.read().result())
        except (ValueError, OSError, RuntimeError) as error:
            text = str(error).partition(" [source")[0]
            found = _FILE.search(text)
            reason = text.rpartition('": ')[2] if found else text
            _refuse_damaged(found[1] if found else self._path, f"which cannot be read ({reason})")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(isinstance(out, StoredArray) for out in options.get("out", ())):
            return NotImplemented
        return getattr(function, method)(*(_read(value) for value in inputs), **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"StoredArray has no attribute {name!r}")
        return getattr(np.asarray(self), name)

    def __len__(self) -> int:
        return len(range(self.shape[0])) if self.shape else len(np.asarray(self))

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __repr__(self) -> str:
        return f"StoredArray(shape={self.shape}, dtype={self.dtype})"


def _refuse_damaged(file: pathlib.Path | str, reason: str) -> NoReturn:
    remedy = "The file has changed since it was written: restore it from a copy, or sample again."
    refuse("folder", "undamaged", f"{file}, {reason}", remedy)


def _read(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, StoredArray) else value


def _completed(index: tuple[Any, ...], shape: tuple[int, ...]) -> list[Any] | None:
    """The index with a part for every axis, where TensorStore can follow NumPy's rules; None where it cannot."""
    arrays = [part for part in index if isinstance(part, (list, np.ndarray))]
    if arrays:
        # NumPy takes integers beside an array, and several arrays, as one index of points.
        is_plain = len(arrays) == 1 and all(
            isinstance(part, (slice, type(Ellipsis), list, np.ndarray)) for part in index
        )
        array = np.asarray(arrays[0])
        if not is_plain or array.ndim != 1 or array.dtype.kind not in "iub":
            return None
    elif not all(_is_integer(part) or isinstance(part, (slice, type(Ellipsis))) for part in index):
        return None
    num_ellipses = sum(part is Ellipsis for part in index)
    missing = len(shape) - (len(index) - num_ellipses)
    if missing < 0 or num_ellipses > 1:
        return None
    full = [part for p in index for part in ([slice(None)] * missing if p is Ellipsis else [p])]
    return full + [slice(None)] * (len(shape) - len(full))


def _chunks_of(part: Any, size: int, length: int) -> Any:
    """The numbers of the chunks of an axis that one part of an index needs."""
    if isinstance(part, slice):
        span = range(size)[part]
        return range(span[0] // length, span[-1] // length + 1) if span else ()
    return np.unique(np.arange(size)[part] // length).tolist() if np.ndim(part) else (range(size)[part] // length,)


def _is_integer(part: Any) -> bool:
    return isinstance(part, numbers.Integral) and not isinstance(part, bool)


def _within(part: Any, size: int) -> Any:
    """One part of an index, counted from the start of an axis."""
    if isinstance(part, slice):
        span = range(size)[part]
        return slice(span.start, max(span.stop, span.start) if span.step > 0 else span.stop, span.step)
    if _is_integer(part):
        return range(size)[int(part)]
    # NumPy refuses what is out of range, with its own message.
    return np.arange(size)[np.asarray(part)]
