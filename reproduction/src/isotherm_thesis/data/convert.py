"""Publishers' files as arrays. Each function takes the paths of a data set's downloads, in the order of the catalog."""

import csv
import gzip
import pathlib
import tarfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isotherm_thesis.data.contents import Arrays, ContentError, Mushrooms, Table

Paths = Sequence[pathlib.Path]
Convert = Callable[[Paths], Arrays]


def cifar(train: Sequence[str], test: str, num_label_bytes: int) -> Convert:
    """The binary archive: rows of label bytes, of which the last counts, and an image with its channels one after another."""

    def convert(paths: Paths) -> Arrays:
        with tarfile.open(paths[0]) as archive:
            arrays: Arrays = {}
            for split, names in (("train", train), ("test", (test,))):
                stored = b"".join(_member(archive, name) for name in names)
                rows = np.frombuffer(stored, np.uint8).reshape(-1, num_label_bytes + 3 * 32 * 32)
                images = rows[:, num_label_bytes:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
                arrays[f"{split}_inputs"] = np.ascontiguousarray(images)
                arrays[f"{split}_labels"] = rows[:, num_label_bytes - 1]
        return arrays

    return convert


def mnist(paths: Paths) -> Arrays:
    """Training images and labels, test images and labels: IDX files, each with 4 bytes of type and 4 bytes for each axis."""
    arrays: Arrays = {}
    names = ("train_inputs", "train_labels", "test_inputs", "test_labels")
    for path, name in zip(paths, names, strict=True):
        with gzip.open(path) as stream:
            stored = stream.read()
        num_axes = stored[3]
        sizes = np.frombuffer(stored, ">u4", num_axes, 4)
        values = np.frombuffer(stored, np.uint8, offset=4 + 4 * num_axes).reshape(sizes)
        arrays[name] = values[..., None] if name.endswith("inputs") else values
    return arrays


def svhn(paths: Paths) -> Arrays:
    """MATLAB files with images `X` (row, column, channel, image) and labels `y` from 1 to 10, where 10 is the digit 0."""
    from scipy.io import loadmat

    arrays: Arrays = {}
    for path, split in zip(paths, ("train", "test"), strict=True):
        stored = loadmat(path, variable_names=("X", "y"))
        arrays[f"{split}_inputs"] = np.ascontiguousarray(stored["X"].transpose(3, 0, 1, 2))
        arrays[f"{split}_labels"] = stored["y"].ravel() % 10
    return arrays


def text(table: Table, delimiter: str | None = None, num_header: int = 0) -> Convert:
    """Lines of numbers."""
    return lambda paths: table.from_columns(np.loadtxt(paths[0], delimiter=delimiter, skiprows=num_header))


def workbook(table: Table) -> Convert:
    """The first sheet of an `.xlsx`, below one line of headings."""

    def convert(paths: Paths) -> Arrays:
        import openpyxl

        with warnings.catch_warnings():
            # openpyxl warns of styles that it leaves out, which do not touch the numbers.
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(paths[0], read_only=True, data_only=True)
            rows = list(book.worksheets[0].iter_rows(values_only=True))
            book.close()
        return table.from_columns(_numbers(rows[1:], len(table.means)))

    return convert


def old_workbook(table: Table) -> Convert:
    """The first sheet of an `.xls`, below one line of headings."""

    def convert(paths: Paths) -> Arrays:
        import xlrd

        sheet = xlrd.open_workbook(str(paths[0]), on_demand=True).sheet_by_index(0)
        rows = [sheet.row_values(number) for number in range(1, sheet.nrows)]
        return table.from_columns(_numbers(rows, len(table.means)))

    return convert


def mushrooms(contents: Mushrooms) -> Convert:
    """Lines of letters: the class, `e` or `p`, then one letter for each attribute."""

    def convert(paths: Paths) -> Arrays:
        with paths[0].open() as stream:
            rows = np.array([row for row in csv.reader(stream) if row])
        columns = [rows[:, [number]] == list(letters) for number, letters in enumerate(contents.letters, start=1)]
        return {
            "inputs": np.concatenate(columns, axis=1).astype(np.uint8),
            "labels": (rows[:, 0] == "p").astype(np.int32),
        }

    return convert


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    if stream is None:
        raise ContentError(f"{name}, which is not a file")
    return stream.read()


def _numbers(rows: Sequence[Sequence[Any]], num_columns: int) -> np.ndarray:
    # Spreadsheets carry empty cells beside and below their tables.
    filled = [[cell for cell in row[:num_columns] if cell not in (None, "")] for row in rows]
    return np.array([row for row in filled if row], np.float64)
