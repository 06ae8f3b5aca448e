"""What the arrays of a data set must be: shapes, types, and numbers by which the right data are recognized."""

import dataclasses
from typing import Protocol

import numpy as np

Arrays = dict[str, np.ndarray]


class ContentError(ValueError):
    """The arrays are not those of the data set; the message says what was found."""


class Contents(Protocol):
    """The arrays of a data set."""

    @property
    def text(self) -> str:
        """The arrays in words."""
        ...

    def check(self, arrays: Arrays) -> Arrays:
        """The arrays with their types. Raises `ContentError` if they are not those of the data set."""
        ...


@dataclasses.dataclass(frozen=True)
class Images:
    """`train_inputs`, `test_inputs` (uint8; image, row, column, channel), `train_labels` and `test_labels` (int32).

    Attributes:
        num_train: training images.
        num_test: test images.
        shape: rows, columns, channels.
        num_classes: labels are 0 to `num_classes` - 1.
        needs_training: whether the training images must be there.
    """

    num_train: int
    num_test: int
    shape: tuple[int, int, int]
    num_classes: int
    needs_training: bool = True

    @property
    def text(self) -> str:
        """The arrays in words."""
        size = " x ".join(map(str, self.shape))
        return f"{self.num_train:,} training and {self.num_test:,} test images of {size} in {self.num_classes} classes"

    def check(self, arrays: Arrays) -> Arrays:
        """The arrays with their types. Raises `ContentError` if they are not those of the data set."""
        found: Arrays = {}
        for split, number in (("train", self.num_train), ("test", self.num_test)):
            if split == "train" and not self.needs_training and "train_inputs" not in arrays:
                continue
            inputs, labels = take(arrays, f"{split}_inputs"), take(arrays, f"{split}_labels")
            if inputs.dtype != np.uint8 or inputs.shape != (number, *self.shape):
                raise ContentError(f"{split}_inputs of shape {inputs.shape} and type {inputs.dtype}")
            if labels.dtype.kind not in "iu" or labels.shape != (number,):
                raise ContentError(f"{split}_labels of shape {labels.shape} and type {labels.dtype}")
            if not 0 <= labels.min() <= labels.max() < self.num_classes:
                raise ContentError(f"{split}_labels from {labels.min()} to {labels.max()}")
            found |= {f"{split}_inputs": inputs, f"{split}_labels": labels.astype(np.int32)}
        return found


@dataclasses.dataclass(frozen=True)
class Table:
    """`inputs` of shape (N, D) and `targets` of shape (N,), both float64, and further targets by name, which may be left out.

    Attributes:
        num_rows: N.
        means: the mean of every column, inputs first, then targets.
        targets: names of the arrays of targets.
    """

    num_rows: int
    means: tuple[float, ...]
    targets: tuple[str, ...] = ("targets",)

    @property
    def text(self) -> str:
        """The arrays in words."""
        return f"{self.num_rows:,} rows of {len(self.means) - len(self.targets)} inputs with known column means"

    def check(self, arrays: Arrays) -> Arrays:
        """The arrays with their types. Raises `ContentError` if they are not those of the data set."""
        names = [name for name in self.targets if name in arrays or name == self.targets[0]]
        columns = [take(arrays, "inputs"), *(take(arrays, name) for name in names)]
        num_inputs = len(self.means) - len(self.targets)
        if columns[0].shape != (self.num_rows, num_inputs) or {c.shape for c in columns[1:]} != {(self.num_rows,)}:
            raise ContentError(f"columns of shapes {[column.shape for column in columns]}")
        whole = np.column_stack(columns).astype(np.float64)
        for number, (mean, right) in enumerate(zip(whole.mean(axis=0), self.means, strict=False), start=1):
            # A mean that is not a number fails too.
            if not abs(mean - right) <= 1e-4 * abs(right):
                raise ContentError(f"a mean of {mean:.6g} in column {number}, which should be {right:.6g}")
        targets = dict(zip(names, whole.T[num_inputs:], strict=True))
        return {"inputs": np.ascontiguousarray(whole[:, :num_inputs]), **targets}

    def from_columns(self, columns: np.ndarray) -> Arrays:
        """Arrays by name from all columns of the publisher's table."""
        num_inputs = len(self.means) - len(self.targets)
        return {"inputs": columns[:, :num_inputs], **dict(zip(self.targets, columns.T[num_inputs:], strict=False))}


@dataclasses.dataclass(frozen=True)
class Mushrooms:
    """`inputs` (float32, one column of 0 and 1 for each letter of each attribute) and `labels` (int32, 1 is poisonous).

    Attributes:
        num_rows: the number of mushrooms.
        num_poisonous: how many of them are poisonous.
        letters: the letters of each attribute, in the order of their columns.
        sums: for each attribute, the sum over mushrooms of the place of their letter.
    """

    num_rows: int
    num_poisonous: int
    letters: tuple[str, ...]
    sums: tuple[int, ...]

    @property
    def text(self) -> str:
        """The arrays in words."""
        return f"{self.num_rows:,} mushrooms of {len(self.letters)} attributes, {self.num_poisonous:,} poisonous"

    def check(self, arrays: Arrays) -> Arrays:
        """The arrays with their types. Raises `ContentError` if they are not those of the data set."""
        inputs, labels = take(arrays, "inputs"), take(arrays, "labels")
        sizes = [len(letters) for letters in self.letters]
        if inputs.shape != (self.num_rows, sum(sizes)) or not np.isin(inputs, (0, 1)).all():
            raise ContentError(f"inputs of shape {inputs.shape} and type {inputs.dtype}")
        if labels.shape != (self.num_rows,) or not np.isin(labels, (0, 1)).all() or labels.sum() != self.num_poisonous:
            raise ContentError(f"labels of shape {labels.shape}, {labels.sum()} of them poisonous")
        groups = np.split(inputs, np.cumsum(sizes)[:-1], axis=1)
        for number, (group, right) in enumerate(zip(groups, self.sums, strict=True), start=1):
            if (group.sum(axis=1) != 1).any() or group.argmax(axis=1).sum() != right:
                raise ContentError(f"other letters in attribute {number}")
        return {"inputs": inputs.astype(np.float32), "labels": labels.astype(np.int32)}


def take(arrays: Arrays, name: str) -> np.ndarray:
    """The array of that name."""
    if name not in arrays:
        raise ContentError(f"no array {name}")
    return arrays[name]
