"""Tables of numbers: text, spreadsheets, and what they must hold."""

import dataclasses
import io
import pathlib
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from isotherm_thesis.data.dataset import Arrays, DamageError


@dataclasses.dataclass(frozen=True)
class Table:
    """Size and column means of a table, by which it is recognized where no checksum is known.

    Attributes:
        num_rows: Number of rows.
        means: Mean of every column, inputs first, then targets.
        targets: Names of the arrays for the last columns.
        tolerance: Largest relative error of a mean.
    """

    num_rows: int
    means: tuple[float, ...]
    targets: tuple[str, ...] = ("targets",)
    tolerance: float = 1e-4

    @property
    def content(self) -> str:
        """The table in words."""
        num_inputs, num_targets = len(self.means) - len(self.targets), len(self.targets)
        words = f"{num_inputs} inputs and {num_targets} target{'s' * (num_targets > 1)}"
        return f"{self.num_rows:,} rows of {words} with known column means"

    def arrays(self, columns: np.ndarray) -> Arrays:
        """Checked inputs and targets from all columns. Targets after the first may be left out."""
        num_inputs = len(self.means) - len(self.targets)
        if len(columns) != self.num_rows or not num_inputs < columns.shape[1] <= len(self.means):
            raise DamageError(f"a table of {columns.shape[0]} rows and {columns.shape[1]} columns")
        for number, (mean, right) in enumerate(zip(columns.mean(axis=0), self.means, strict=False), start=1):
            # Written so that a mean which is not a number is refused too.
            if not abs(mean - right) <= self.tolerance * abs(right):
                raise DamageError(f"a mean of {mean:.6g} in column {number} where {right:.6g} belongs")
        named = dict(zip(self.targets, columns.T[num_inputs:], strict=False))
        return {
            name: np.ascontiguousarray(array) for name, array in {"inputs": columns[:, :num_inputs], **named}.items()
        }


@dataclasses.dataclass(frozen=True)
class Text:
    """A table in lines of text.

    Attributes:
        table: What it must hold.
        separator: What stands between numbers; by default blanks.
        num_header: Lines before the first number.
    """

    table: Table
    separator: str | None = None
    num_header: int = 0

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return self.table.content

    def __call__(self, path: pathlib.Path) -> Arrays:
        lines = path.read_text("ascii").splitlines()[self.num_header :]
        rows = (line.strip().split(self.separator) for line in lines)
        return self.table.arrays(_columns(rows, len(self.table.means)))


@dataclasses.dataclass(frozen=True)
class Spreadsheet:
    """A table in the first sheet of a workbook, below one line of headings.

    Attributes:
        table: What it must hold.
        is_old: Whether it is an `.xls`, read with xlrd, and not an `.xlsx`, read with openpyxl.
    """

    table: Table
    is_old: bool = False

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return self.table.content

    def __call__(self, path: pathlib.Path) -> Arrays:
        cells = _old_cells(path) if self.is_old else _cells(path)
        return self.table.arrays(_columns(cells[1:], len(self.table.means)))


def _cells(path: pathlib.Path) -> Sequence[Sequence[Any]]:
    import openpyxl

    with zipfile.ZipFile(path) as archive:
        if (member := archive.testzip()) is not None:
            raise DamageError(f"a wrong checksum of {member} in the workbook")
    with path.open("rb") as stream, warnings.catch_warnings():
        # openpyxl warns of styles and extensions that it leaves out, which do not touch the numbers.
        warnings.simplefilter("ignore")
        workbook = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        rows = list(workbook.worksheets[0].iter_rows(values_only=True))
        workbook.close()
    return rows


def _old_cells(path: pathlib.Path) -> Sequence[Sequence[Any]]:
    import xlrd

    # xlrd prints what it thinks of a file, unless given somewhere to write it.
    workbook = xlrd.open_workbook(file_contents=path.read_bytes(), logfile=io.StringIO(), on_demand=True)
    sheet = workbook.sheet_by_index(0)
    return [sheet.row_values(row) for row in range(sheet.nrows)]


def _columns(rows: Iterable[Sequence[Any]], num_columns: int) -> np.ndarray:
    result = []
    for number, row in enumerate(rows, start=1):
        # Spreadsheets carry empty cells beside and below their tables.
        cells = list(row)
        while cells and cells[-1] in (None, ""):
            cells.pop()
        if not cells:
            continue
        if len(cells) != num_columns:
            raise DamageError(f"{len(cells)} columns in row {number} where {num_columns} belong")
        result.append([float(cell) for cell in cells])
    return np.array(result, np.float64).reshape(-1, num_columns)
