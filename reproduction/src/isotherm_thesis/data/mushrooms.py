"""The mushrooms of the UCI repository: 22 attributes, each a letter, and whether the mushroom is poisonous."""

import dataclasses
import pathlib

import numpy as np

from isotherm_thesis.data.dataset import Arrays, DamageError


@dataclasses.dataclass(frozen=True)
class MushroomTable:
    """What the table must hold. A letter's code is its place among the letters of its attribute.

    Attributes:
        num_rows: Number of mushrooms.
        num_poisonous: Number of them that are poisonous.
        letters: Letters of each attribute, sorted.
        sums: Sum of the codes of each attribute. It changes with any single letter.
    """

    num_rows: int
    num_poisonous: int
    letters: tuple[str, ...]
    sums: tuple[int, ...]

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return (
            f"{self.num_rows:,} mushrooms of {len(self.letters)} attributes, {self.num_poisonous:,} of them poisonous"
        )

    def __call__(self, path: pathlib.Path) -> Arrays:
        """The arrays of the publisher's text: the class, `e` or `p`, then the letters, with commas between."""
        rows = [line.strip().split(",") for line in path.read_text("ascii").splitlines() if line.strip()]
        for number, row in enumerate(rows, start=1):
            if len(row) != 1 + len(self.letters) or row[0] not in ("e", "p"):
                raise DamageError(f"{','.join(row)[:60]!r} in row {number}")
            for letter, letters in zip(row[1:], self.letters, strict=True):
                if len(letter) != 1 or letter not in letters:
                    raise DamageError(f"{letter[:20]!r} in row {number} where one of {letters!r} belongs")
        codes = [[letters.index(letter) for letter, letters in zip(row[1:], self.letters, strict=True)] for row in rows]
        return self.arrays(np.array(codes), np.array([row[0] == "p" for row in rows], np.int32))

    def arrays(self, codes: np.ndarray, labels: np.ndarray) -> Arrays:
        """Checked inputs, one column per letter, and labels."""
        if codes.shape != (self.num_rows, len(self.letters)) or labels.shape != (self.num_rows,):
            raise DamageError(f"codes of shape {codes.shape} and labels of shape {labels.shape}")
        if labels.dtype.kind not in "iu" or not np.isin(labels, (0, 1)).all() or labels.sum() != self.num_poisonous:
            raise DamageError(f"{labels.sum()} poisonous mushrooms")
        if (wrong := codes.sum(axis=0) != self.sums).any():
            raise DamageError(f"other letters in attribute {np.argmax(wrong) + 1}")
        columns = [codes[:, [i]] == np.arange(len(letters)) for i, letters in enumerate(self.letters)]
        return {"inputs": np.concatenate(columns, axis=1).astype(np.float32), "labels": labels.astype(np.int32)}

    def codes(self, inputs: np.ndarray) -> np.ndarray:
        """The codes from inputs that have one column per letter."""
        sizes = [len(letters) for letters in self.letters]
        if inputs.ndim != 2 or inputs.shape[1] != sum(sizes) or not np.isin(inputs, (0, 1)).all():
            raise DamageError(f"inputs of shape {inputs.shape} and type {inputs.dtype} where 0 and 1 belong")
        groups = np.split(inputs, np.cumsum(sizes)[:-1], axis=1)
        if any((group.sum(axis=1) != 1).any() for group in groups):
            raise DamageError("a mushroom with several letters, or none, for one attribute")
        return np.stack([group.argmax(axis=1) for group in groups], axis=1)
