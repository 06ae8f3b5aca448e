"""One `.npz` that holds a whole data set."""

import dataclasses
import io
import pathlib
import zipfile

import numpy as np

from isotherm_thesis.data.dataset import Arrays, DamageError, join
from isotherm_thesis.data.images import Images
from isotherm_thesis.data.mushrooms import MushroomTable
from isotherm_thesis.data.tables import Table

# Twice what the pixels of the largest data set take in double precision.
MAX_ARRAY_BYTES = 2 << 30


@dataclasses.dataclass(frozen=True)
class ImageArchive:
    """`train_inputs`, `train_labels`, `test_inputs`, `test_labels`, or `x_train`, `y_train`, `x_test`, `y_test`.

    Attributes:
        splits: What the splits must hold.
        optional: Splits that may be left out.
    """

    splits: tuple[Images, ...]
    optional: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return "arrays of " + " and ".join(images.content for images in self.splits)

    def __call__(self, path: pathlib.Path) -> Arrays:
        parts = []
        with zipfile.ZipFile(path) as archive:
            for images in self.splits:
                split = images.split
                inputs = _array(archive, f"{split}_inputs", f"x_{split}")
                labels = _array(archive, f"{split}_labels", f"y_{split}")
                if inputs is None and labels is None and split in self.optional:
                    continue
                parts.append(
                    images.inputs(_given(inputs, f"{split}_inputs")) | images.labels(_given(labels, f"{split}_labels"))
                )
        return join(parts)


@dataclasses.dataclass(frozen=True)
class TableArchive:
    """`inputs` and `targets` (or `x64`, `y64`, or `x`, `y`), further targets by name, and splits `train_idx` and `test_idx`."""

    table: Table

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return f"arrays of {self.table.content}"

    def __call__(self, path: pathlib.Path) -> Arrays:
        with zipfile.ZipFile(path) as archive:
            inputs = _given(_array(archive, "inputs", "x64", "x"), "inputs")
            first = _given(_array(archive, "targets", "y64", "y"), "targets")
            others = [_array(archive, name) for name in self.table.targets[1:]]
            splits = {name: _array(archive, name) for name in ("train_idx", "test_idx")}
        targets = [first, *(array for array in others if array is not None)]
        if inputs.ndim != 2 or any(array.shape != inputs.shape[:1] for array in targets):
            raise DamageError(f"inputs of shape {inputs.shape} and targets of shape {first.shape}")
        result = self.table.arrays(np.column_stack([inputs, *targets]).astype(np.float64))
        if all(array is None for array in splits.values()):
            return result
        given = {name: _given(array, name) for name, array in splits.items()}
        _check_splits(given["train_idx"], given["test_idx"], len(inputs))
        return result | given


@dataclasses.dataclass(frozen=True)
class MushroomArchive:
    """`inputs` and `labels`, or `x_onehot` and `y`."""

    mushrooms: MushroomTable

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return f"arrays of {self.mushrooms.content}"

    def __call__(self, path: pathlib.Path) -> Arrays:
        with zipfile.ZipFile(path) as archive:
            inputs = _given(_array(archive, "inputs", "x_onehot"), "inputs")
            labels = _given(_array(archive, "labels", "y"), "labels")
        return self.mushrooms.arrays(self.mushrooms.codes(inputs), labels)


def _array(archive: zipfile.ZipFile, *names: str) -> np.ndarray | None:
    for name in names:
        if f"{name}.npy" in archive.namelist():
            # No more than that is unpacked, whatever the archive holds.
            size = archive.getinfo(f"{name}.npy").file_size
            if size > MAX_ARRAY_BYTES:
                raise DamageError(f"an array {name} of {size:,} bytes, where {MAX_ARRAY_BYTES:,} are the most")
            # Read whole, because the checksum of a member is compared at its end only.
            data = io.BytesIO(archive.read(f"{name}.npy"))
            return np.lib.format.read_array(data, allow_pickle=False)
    return None


def _given(array: np.ndarray | None, name: str) -> np.ndarray:
    if array is None:
        raise DamageError(f"an archive without the array {name}")
    return array


def _check_splits(train: np.ndarray, test: np.ndarray, num_rows: int) -> None:
    if train.ndim != 2 or test.ndim != 2 or len(train) != len(test) or {train.dtype.kind, test.dtype.kind} - {*"iu"}:
        raise DamageError(f"splits of shapes {train.shape} and {test.shape}")
    for rows in np.concatenate([train, test], axis=1):
        if not np.array_equal(np.sort(rows), np.arange(num_rows)):
            raise DamageError("a split that does not hold every row once")
