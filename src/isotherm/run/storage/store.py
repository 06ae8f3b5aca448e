"""Records in memory or on disk, behind one interface.

On disk a folder holds `run.json`, one Zarr array per leaf of the records under `records/`, and checkpoints. Arrays are written and
read with TensorStore. The axis of draws has one place in all of them: 1 for (chain, draw, ...), 2 for (run, chain, draw, ...).
"""

import json
import pathlib
from typing import Any

import jax
import numpy as np

from isotherm.foundation.errors import refuse
from isotherm.run.storage.pytree_json import describe_structure, named_leaves, rebuild
from isotherm.run.storage.stored_array import StoredArray

_CHUNK_BYTES = 4 << 20


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


class StoreSink:
    """Records that stream to a folder of Zarr arrays."""

    def __init__(self, folder: pathlib.Path, num_records: int, axis: int, num_done: int = 0):
        self._folder, self._num_records, self._axis = folder, num_records, axis
        if num_done:
            _check_whole(folder, axis, num_done)
        self._handles: dict[str, Any] = {}
        self._pending: list[Any] = []

    def write(self, start: int, records: Any) -> None:
        """Take records as those from number `start` on."""
        if not self._handles:
            self._open(records)
        self.flush()  # One block in flight at a time, so that memory stays flat.
        for name, leaf in named_leaves(records).items():
            place = self._handles[name][_span(leaf, self._axis, start)]
            # A copy: the leaf may be a view of a buffer that the next block writes to.
            self._pending.append(place.write(np.array(leaf, order="C")))

    def flush(self) -> None:
        """Return when everything is on disk."""
        for promise in self._pending:
            promise.result()
        self._pending.clear()

    def read(self) -> Any:
        """The records, as arrays that are read when they are indexed."""
        self.flush()
        return read_records(self._folder)

    def _open(self, records: Any) -> None:
        write_json(self._folder / "structure.json", describe_structure(records))
        for name, leaf in named_leaves(records).items():
            shape, path = _shape(leaf, self._axis, self._num_records), self._folder / name
            # A crash can leave the folder of an array without its metadata, which TensorStore writes last.
            exists = (path / ".zarray").exists()
            found = open_array(path) if exists else create_array(path, shape, leaf.dtype, self._axis)
            if found.shape[self._axis] < self._num_records:
                found = found.resize(exclusive_max=shape).result()
            self._handles[name] = found


def _shape(leaf: np.ndarray, axis: int, number: int) -> tuple[int, ...]:
    return (*leaf.shape[:axis], number, *leaf.shape[axis + 1 :])


def _span(leaf: np.ndarray, axis: int, start: int) -> tuple[slice, ...]:
    """Where the draws of `leaf` go in an array of all draws, from `start` on."""
    return (*(slice(None),) * axis, slice(start, start + leaf.shape[axis]))


def _check_whole(folder: pathlib.Path, axis: int, number: int) -> None:
    """Refuse records without all of the first `number`."""
    for leaf in jax.tree.leaves(read_records(folder)):
        leaf.check((*(slice(None),) * axis, slice(number), *(slice(None),) * (leaf.ndim - axis - 1)))


def create_array(
    path: pathlib.Path, shape: tuple[int, ...], dtype: Any, axis: int | None, overwrite: bool = False
) -> Any:
    """A new Zarr array, cut along the axis of draws, if it has one."""
    import tensorstore as ts

    chunks = [max(1, size) for size in shape]
    if axis is not None:
        row = max(int(np.prod(shape[:axis] + shape[axis + 1 :])) * np.dtype(dtype).itemsize, 1)
        chunks[axis] = max(1, min(shape[axis], _CHUNK_BYTES // row))
    metadata = {"shape": shape, "chunks": chunks, "dtype": _zarr_type(dtype), "compressor": None}
    return ts.open({**_specification(path), "metadata": metadata}, create=True, delete_existing=overwrite).result()


def open_array(path: pathlib.Path) -> Any:
    """A Zarr array that is there, or the reason why not."""
    import tensorstore as ts

    try:
        return ts.open(_specification(path), open=True).result()
    except ValueError as error:
        remedy = f"TensorStore says: {str(error).splitlines()[0][:200]}"
        raise ValueError(f"`folder` must be complete; got a missing or damaged array {path}. {remedy}") from error


def _specification(path: pathlib.Path) -> dict[str, Any]:
    # Chunks of zeros are written too: one that is missing was lost, and must not be read as zeros.
    store = {"driver": "file", "path": str(path)}
    return {"driver": "zarr", "kvstore": store, "store_data_equal_to_fill_value": True}


def write_arrays(folder: pathlib.Path, tree: Any, axis: int | None = None) -> None:
    """A pytree of arrays of any shapes, each written whole."""
    write_json(folder / "structure.json", describe_structure(tree))
    for name, leaf in named_leaves(tree).items():
        array = np.asarray(leaf)
        create_array(folder / name, array.shape, array.dtype, axis, overwrite=True).write(array).result()


def read_records(folder: pathlib.Path) -> Any:
    """A pytree of `StoredArray` from a folder that `StoreSink` or `write_arrays` wrote."""
    return rebuild(
        read_json(folder / "structure.json"), lambda name: StoredArray(open_array(folder / name), folder / name)
    )


def write_json(path: pathlib.Path, value: Any) -> None:
    """JSON that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".partial")
    scratch.write_text(json.dumps(value, indent=1, allow_nan=True))
    scratch.replace(path)


def check_json(name: str, value: Any) -> Any:
    """Return what JSON can hold, or refuse it before anything is written that could not be read."""
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        remedy = "Take out what is none of these: JSON cannot hold it."
        refuse(name, "made of numbers, words, lists and dicts", str(error), remedy)
    return value


def read_json(path: pathlib.Path) -> Any:
    """JSON from a folder of a run, or the reason why not."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        refuse(
            "folder", "a folder that isotherm wrote", f"no readable {path}", f"{type(error).__name__}: check the path."
        )


def _zarr_type(dtype: Any) -> str:
    name = np.dtype(dtype).name
    return name if name == "bfloat16" else np.dtype(dtype).str
