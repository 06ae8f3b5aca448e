"""What a data set is made of: files, each with its checksum and the reader that knows its content."""

import dataclasses
import pathlib
from collections.abc import Iterable
from typing import Protocol

import numpy as np

Arrays = dict[str, np.ndarray]


class DamageError(Exception):
    """Says what was found in a file instead of its content. Callers turn it into an error that names file and remedy."""


class Reader(Protocol):
    """Reads one file and checks what is in it."""

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        ...

    def __call__(self, path: pathlib.Path) -> Arrays:
        """The arrays of the file at `path`. Raises any exception where the content is not as it must be."""
        ...


@dataclasses.dataclass(frozen=True)
class File:
    """One file of a data set.

    Attributes:
        name: Its path inside the folder of data.
        reader: Reads it and checks its content.
        url: Where its publisher keeps it; empty for a file that is unpacked or converted, not downloaded.
        num_bytes: Its size, where known. A download ends with an error once it is longer.
        md5: Its MD5 in hexadecimal digits, for publishers that give no other. It tells accidents, not forgeries.
        sha256: Its SHA-256 in hexadecimal digits, where known. Goes before `md5`.
        requires: The package that its reader needs beyond those of isotherm.
    """

    name: str
    reader: Reader
    url: str = ""
    num_bytes: int | None = None
    md5: str = ""
    sha256: str = ""
    requires: str = ""

    @property
    def checksum(self) -> tuple[str, str] | None:
        """The algorithm and the digits, where a checksum is known."""
        if self.sha256:
            return "sha256", self.sha256
        return ("md5", self.md5) if self.md5 else None

    @property
    def expected(self) -> str:
        """What the file is recognized by, in words."""
        return " ".join(self.checksum) if self.checksum else self.reader.content


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set and the ways in which it may lie in a folder.

    Attributes:
        name: What `load` and `isotherm data get` call it.
        description: One line.
        license: What its publisher allows or asks for.
        layouts: Sets of files, each of which is the whole data set. The first is what is downloaded, and the first that is complete
            is what is read.
    """

    name: str
    description: str
    license: str
    layouts: tuple[tuple[File, ...], ...]

    @property
    def files(self) -> tuple[File, ...]:
        """The files that are downloaded."""
        return self.layouts[0]

    def layout_in(self, folder: pathlib.Path) -> tuple[File, ...]:
        """The first layout that is complete in `folder`, or else the one of which most is there."""
        # Of layouts with equal shares `max` takes the first.
        return max(self.layouts, key=lambda files: sum((folder / file.name).is_file() for file in files) / len(files))


def join(parts: Iterable[Arrays]) -> Arrays:
    """One dictionary from those of several files. Arrays of one name are put one after another."""
    pieces: dict[str, list[np.ndarray]] = {}
    for part in parts:
        for name, array in part.items():
            pieces.setdefault(name, []).append(array)
    return {name: arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for name, arrays in pieces.items()}
