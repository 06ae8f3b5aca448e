"""Zarr arrays of a run: one folder per array, with a checksum for every chunk and for the metadata.

Format 6 is Zarr 3 without compression. The codec `crc32c` puts the checksum of a chunk behind its bytes, and TensorStore compares
it whenever it reads the chunk. `zarr.json` is read here and given to TensorStore, so that its checksum is compared as well. Older
formats are Zarr 2, without checksums.
"""

import json
import math
import pathlib
import re
import shutil
from typing import Any

import numpy as np

from isotherm.foundation.errors import refuse
from isotherm.run.storage.json_files import checksum, damaged, read_json, write_json

METADATA = "zarr.json"
# Behind the bytes of a chunk.
CHECKSUM_BYTES = 4
_CHUNK_BYTES = 4 << 20
_CODECS = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
_CHUNK_NAMES = {"name": "v2", "configuration": {"separator": "."}}
_CHUNK_NAME = re.compile(r"\d+(\.\d+)*")
_RUNS = ("run", "chain")


def create_array(path: pathlib.Path, shape: tuple[int, ...], dtype: Any, axis: int | None) -> Any:
    """A new Zarr array in place of any other, cut along the axis of draws, if it has one."""
    if path.exists():
        shutil.rmtree(path)
    chunk = [max(1, size) for size in shape]
    if axis is not None:
        row = max(math.prod(shape[:axis] + shape[axis + 1 :]) * np.dtype(dtype).itemsize, 1)
        chunk[axis] = max(1, min(shape[axis], _CHUNK_BYTES // row))
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": np.dtype(dtype).name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": _CHUNK_NAMES,
        "fill_value": _fill_value(np.dtype(dtype)),
        "codecs": _CODECS,
        "dimension_names": _names_of_axes(path.name, len(shape), axis),
        "attributes": {},
    }
    _write_metadata(path, metadata)
    return open_array(path)


def open_array(path: pathlib.Path, *, is_old: bool = False) -> Any:
    """A Zarr array that is there, or the reason why not."""
    import tensorstore as ts

    specification = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    if is_old:
        specification["driver"] = "zarr"
    else:
        # Chunks of the fill value are written too: one that is missing was lost, and must not be read as such.
        specification |= {"metadata": read_metadata(path), "store_data_equal_to_fill_value": True}
    try:
        return ts.open(specification, open=True, assume_metadata=not is_old).result()
    except ValueError as error:
        remedy = f"TensorStore says: {str(error).splitlines()[0][:200]}"
        refuse("folder", "complete", f"a missing or damaged array {path}", remedy)


def lengthen(path: pathlib.Path, axis: int, length: int) -> Any:
    """Open an array with at least `length` draws. Its chunks stay as they are."""
    metadata = read_metadata(path)
    if metadata["shape"][axis] < length:
        metadata["shape"][axis] = length
        _write_metadata(path, metadata)
    return open_array(path)


def remove_chunks(path: pathlib.Path, axis: int, number: int) -> None:
    """Remove the chunks without any of the first `number` draws. A run writes them again, and so need not trust them."""
    length = read_metadata(path)["chunk_grid"]["configuration"]["chunk_shape"][axis]
    for file in path.iterdir():
        if _CHUNK_NAME.fullmatch(file.name) and int(file.name.split(".")[axis]) * length >= number:
            file.unlink()


def read_metadata(path: pathlib.Path) -> dict[str, Any]:
    """The `zarr.json` of an array, or a refusal of one that is damaged."""
    if not (path / METADATA).exists():
        refuse("folder", "complete", f"a missing or damaged array {path}", "Restore it from a copy, or sample again.")
    metadata = read_json(path / METADATA)
    try:
        stored = metadata["attributes"].pop("crc32")
    except (LookupError, TypeError, AttributeError):
        stored = None
    if stored is None or stored != checksum(metadata):
        damaged(path / METADATA)
    return metadata


def write_groups(folder: pathlib.Path, arrays: str) -> None:
    """Let libraries that read Zarr open `folder` as a group, with the arrays of a subfolder in a group of that name.

    The metadata of all arrays are in one file, so that these libraries do not search the folder.
    """
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    write_json(folder / arrays / METADATA, group)
    found = {}
    for path in sorted((folder / arrays).rglob(METADATA)):
        place = path.parent.relative_to(folder)
        # Names of leaves may have slashes.
        found |= {parent.as_posix(): group for parent in place.parents if parent.parts}
        found[place.as_posix()] = json.loads(path.read_text())
    consolidated = {"kind": "inline", "must_understand": False, "metadata": found}
    write_json(folder / METADATA, {**group, "consolidated_metadata": consolidated})


def _write_metadata(path: pathlib.Path, metadata: dict[str, Any]) -> None:
    attributes = {**metadata["attributes"], "crc32": checksum(metadata)}
    write_json(path / METADATA, {**metadata, "attributes": attributes})


def _names_of_axes(name: str, number: int, axis: int | None) -> list[str]:
    """Names of the axes of an array for xarray: (run, chain, draw, ...) around the axis of draws."""
    lead = [] if axis is None else [*_RUNS[len(_RUNS) - axis :], "draw"]
    return [*lead, *(f"{name}_dim_{place}" for place in range(number - len(lead)))]


def _fill_value(dtype: np.dtype) -> Any:
    """What readers of Zarr see in place of draws that are not yet made: NaN, where the type has it."""
    if dtype.kind == "c":
        return ["NaN", "NaN"]
    if dtype.kind == "b":
        return False
    return 0 if dtype.kind in "iu" else "NaN"
