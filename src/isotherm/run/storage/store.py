"""Records in memory or on disk, behind one interface.

On disk a folder holds `run.json`, one Zarr array per leaf of the records under `records/`, and checkpoints. Arrays are written and
read with TensorStore. The axis of draws has one place in all of them: 1 for (chain, draw, ...), 2 for (run, chain, draw, ...).
"""

import pathlib
from typing import Any

import jax
import numpy as np

from isotherm.foundation.errors import refuse
from isotherm.run.storage import zarr_arrays
from isotherm.run.storage.json_files import check_json as check_json
from isotherm.run.storage.json_files import read_checked, read_json, write_checked
from isotherm.run.storage.pytree_json import describe_structure, named_leaves, rebuild
from isotherm.run.storage.stored_array import StoredArray

# Records in memory before they are written; a checkpoint writes them in any case.
_HELD_BYTES = 16 << 20


class MemorySink:
    """Records in arrays of their final size."""

    def __init__(self, num_records: int, axis: int):
        self._num_records, self._axis = num_records, axis
        self._arrays: Any = None

    def write(self, start: int, records: Any) -> None:
        """Take records as those from number `start` on."""
        if self._arrays is None:
            self._arrays = jax.tree.map(
                lambda leaf: np.zeros(_shape(leaf, self._axis, self._num_records), leaf.dtype), records
            )
        for array, leaf in zip(jax.tree.leaves(self._arrays), jax.tree.leaves(records), strict=True):
            array[_span(leaf, self._axis, start)] = leaf

    def flush(self) -> None:
        """Nothing waits."""

    def read(self) -> Any:
        """The records."""
        return self._arrays


class SharedSink:
    """Records that another process writes to a folder."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder

    def write(self, start: int, records: Any) -> None:
        """Process 0 writes them."""

    def flush(self) -> None:
        """Nothing waits."""

    def read(self) -> Any:
        """The records, once they were written."""
        return read_records(self._folder)


class StoreSink:
    """Records that stream to a folder of Zarr arrays."""

    def __init__(self, folder: pathlib.Path, num_records: int, axis: int, num_done: int = 0):
        self._folder, self._num_records, self._axis = folder, num_records, axis
        self._num_done = num_done
        if num_done:
            _verify(folder, axis, num_done)
        self._handles: dict[str, Any] = {}
        self._start, self._held, self._num_bytes = 0, [], 0
        self._pending: list[Any] = []

    def write(self, start: int, records: Any) -> None:
        """Take records as those from number `start` on, which follow those that were taken before."""
        if not self._handles:
            self._open(records)
        if not self._held:
            self._start = start
        # Copies: the leaves may be views of a buffer that the next block writes to.
        self._held.append({name: np.array(leaf, order="C") for name, leaf in named_leaves(records).items()})
        self._num_bytes += sum(leaf.nbytes for leaf in self._held[-1].values())
        if self._num_bytes >= _HELD_BYTES:
            self._send()

    def flush(self) -> None:
        """Return when everything is on disk."""
        self._send()
        self._wait()

    def _send(self) -> None:
        """Begin to write what is held. Small blocks are joined, since each write reads and writes the last chunk again."""
        self._wait()  # One piece in flight at a time, so that memory stays flat.
        held, self._held, self._num_bytes = self._held, [], 0
        for name in held[0] if held else ():
            leaf = np.concatenate([one[name] for one in held], self._axis) if len(held) > 1 else held[0][name]
            self._pending.append(self._handles[name][_span(leaf, self._axis, self._start)].write(leaf))

    def _wait(self) -> None:
        pending, self._pending = self._pending, []
        for promise in pending:
            promise.result()

    def read(self) -> Any:
        """The records, as arrays that are read when they are indexed."""
        self.flush()
        return read_records(self._folder)

    def _open(self, records: Any) -> None:
        write_checked(self._folder / "structure.json", {"structure": describe_structure(records)})
        for name, leaf in named_leaves(records).items():
            path = _place(self._folder, name)
            if self._num_done:
                zarr_arrays.remove_chunks(path, self._axis, self._num_done)
                self._handles[name] = zarr_arrays.lengthen(path, self._axis, self._num_records)
            else:
                shape = _shape(leaf, self._axis, self._num_records)
                self._handles[name] = zarr_arrays.create_array(path, shape, leaf.dtype, self._axis)
        zarr_arrays.write_groups(self._folder.parent, self._folder.name)


def _shape(leaf: np.ndarray, axis: int, number: int) -> tuple[int, ...]:
    return (*leaf.shape[:axis], number, *leaf.shape[axis + 1 :])


def _span(leaf: np.ndarray, axis: int, start: int) -> tuple[slice, ...]:
    """Where the draws of `leaf` go in an array of all draws, from `start` on."""
    return (*(slice(None),) * axis, slice(start, start + leaf.shape[axis]))


def _place(folder: pathlib.Path, name: str) -> pathlib.Path:
    """The folder of the array of a leaf. Names of leaves are the user's, and must not lead elsewhere."""
    path = pathlib.PurePath(name)
    if path.is_absolute() or ".." in path.parts:
        refuse("init", "a position whose names can be those of files", repr(name), "Rename the leaf.")
    return folder / path


def _verify(folder: pathlib.Path, axis: int, number: int) -> None:
    """Read the first `number` records, and refuse them if one is missing or damaged."""
    for leaf in jax.tree.leaves(read_records(folder)):
        leaf.verify(axis, number)


def write_arrays(folder: pathlib.Path, tree: Any, axis: int | None = None) -> None:
    """A pytree of arrays of any shapes, each written whole."""
    write_checked(folder / "structure.json", {"structure": describe_structure(tree)})
    for name, leaf in named_leaves(tree).items():
        array = np.asarray(leaf)
        zarr_arrays.create_array(_place(folder, name), array.shape, array.dtype, axis).write(array).result()


def read_records(folder: pathlib.Path, *, is_old: bool = False) -> Any:
    """A pytree of `StoredArray` from a folder that `StoreSink` or `write_arrays` wrote, with checksums unless it is old."""
    path = folder / "structure.json"
    structure = read_json(path) if is_old else read_checked(path).get("structure")

    def read(name: str) -> StoredArray:
        place = _place(folder, name)
        return StoredArray(zarr_arrays.open_array(place, is_old=is_old), place, is_old=is_old)

    return rebuild(structure, read)
