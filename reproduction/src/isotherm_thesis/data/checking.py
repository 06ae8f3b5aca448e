"""Which files of which data sets a folder has, and whether they are right."""

import dataclasses
import pathlib
from collections.abc import Iterable
from typing import Literal

from isotherm.foundation.errors import check_folder, refuse
from isotherm_thesis.data.catalog import CATALOG
from isotherm_thesis.data.dataset import DamageError, DataSet, File
from isotherm_thesis.data.reading import examine, is_package_missing, remedy

State = Literal["right", "damaged", "missing", "not checked"]


@dataclasses.dataclass(frozen=True)
class FileStatus:
    """What `check` found out about one file.

    Attributes:
        dataset: The data set's name.
        file: The file's path inside the folder.
        state: `right`, `damaged`, `missing`, or `not checked` where a package to read it is not installed.
        detail: What was expected and found, and what to do.
    """

    dataset: str
    file: str
    state: State
    detail: str


def check(folder: str | pathlib.Path, datasets: Iterable[DataSet] | None = None) -> tuple[FileStatus, ...]:
    """Check every file of every data set of which something is in `folder`.

    Args:
        folder: Where the files lie.
        datasets: The data sets to look for; by default the whole catalog.

    Returns:
        One entry per file that is there, and one per file that is missing beside it.
    """
    folder = check_folder("folder", folder, "Give the folder that holds the files.")
    if not folder.is_dir():
        refuse("folder", "a folder that exists", folder, "Run `isotherm data get NAME` first, or correct the path.")
    found: list[FileStatus] = []
    for dataset in CATALOG.values() if datasets is None else datasets:
        files = {file.name: file for layout in dataset.layouts for file in layout}
        there = {name: file for name, file in files.items() if _has(folder, name)}
        # Of files that are nowhere, only those that complete what is there are missed.
        missed = {file.name: file for file in dataset.layout_in(folder)} if there else {}
        found += [_status(dataset, file, folder) for file in (missed | there).values()]
    return tuple(found)


def _has(folder: pathlib.Path, name: str) -> bool:
    return (folder / name).is_file() or (folder / f"{name}.part").is_file()


def _status(dataset: DataSet, file: File, folder: pathlib.Path) -> FileStatus:
    path, part = folder / file.name, folder / f"{file.name}.part"
    if not path.is_file():
        begun = f"{part.stat().st_size:,} bytes are downloaded. " if part.is_file() else ""
        return FileStatus(dataset.name, file.name, "missing", begun + remedy(dataset, folder))
    if is_package_missing(file):
        return FileStatus(dataset.name, file.name, "not checked", f"Run: pip install {file.requires}")
    try:
        examine(file, path)
    except DamageError as damage:
        detail = f"Must have {file.expected}; has {damage}. {remedy(dataset, folder)}"
        return FileStatus(dataset.name, file.name, "damaged", detail)
    return FileStatus(dataset.name, file.name, "right", file.expected)
