"""CIFAR batches, pickled or binary, each in a file of its own or inside the publisher's archive."""

import dataclasses
import gzip
import pathlib
import tarfile
from typing import Any, Protocol

import numpy as np

from isotherm_thesis.data.dataset import Arrays, DamageError, join
from isotherm_thesis.data.images import Images
from isotherm_thesis.data.unpickle import unpickle


class RawBatch(Protocol):
    """One batch of images and labels, from bytes."""

    @property
    def content(self) -> str:
        """What it must hold, in words."""
        ...

    def parse(self, data: bytes) -> Arrays:
        """The checked arrays."""
        ...


@dataclasses.dataclass(frozen=True)
class PickledBatch:
    """A dictionary with `data`, one image per row with the channels one after another, and a list of labels.

    Attributes:
        images: What it must hold.
        label: The name of the labels: `labels` in CIFAR-10, `fine_labels` in CIFAR-100.
    """

    images: Images
    label: str

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return f"a pickle of {self.images.content}"

    def parse(self, data: bytes) -> Arrays:
        """The checked arrays of the pickle in `data`. Nothing in it is run."""
        batch = unpickle(data)
        rows, labels = _entry(batch, "data"), _entry(batch, self.label)
        if not isinstance(rows, np.ndarray):
            raise DamageError(f"a {type(rows).__name__} for the images")
        if isinstance(labels, list) and not all(type(label) is int for label in labels):
            raise DamageError("labels that are not integers")
        return self.images.inputs(_channels_last(rows, self.images)) | self.images.labels(np.asarray(labels))

    def __call__(self, path: pathlib.Path) -> Arrays:
        return self.parse(path.read_bytes())


@dataclasses.dataclass(frozen=True)
class BinaryBatch:
    """Rows of label bytes, of which the last counts, and one image with the channels one after another.

    Attributes:
        images: What it must hold.
        num_label_bytes: 1 in CIFAR-10; 2 in CIFAR-100, where the coarse label goes first.
    """

    images: Images
    num_label_bytes: int

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return f"{self.images.content}, in binary"

    def parse(self, data: bytes) -> Arrays:
        """The checked arrays of the rows in `data`."""
        length = self.num_label_bytes + int(np.prod(self.images.shape))
        if len(data) != self.images.num_images * length:
            raise DamageError(f"{len(data):,} bytes where {self.images.num_images * length:,} belong")
        rows = np.frombuffer(data, np.uint8).reshape(-1, length)
        images = _channels_last(rows[:, self.num_label_bytes :], self.images)
        return self.images.inputs(images) | self.images.labels(rows[:, self.num_label_bytes - 1])

    def __call__(self, path: pathlib.Path) -> Arrays:
        return self.parse(path.read_bytes())


@dataclasses.dataclass(frozen=True)
class Archive:
    """A compressed tar file of batches. Its members are read in place, by their full names; nothing is unpacked."""

    members: tuple[tuple[str, RawBatch], ...]

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return "a tar.gz archive of " + ", ".join(name for name, _ in self.members)

    def __call__(self, path: pathlib.Path) -> Arrays:
        wanted, found = dict(self.members), {}
        with gzip.open(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r:") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.name in wanted and member.isreg() else None
                if stream is not None:
                    found[member.name] = wanted[member.name].parse(stream.read())
            while unpacked.read(1 << 20):
                pass  # gzip compares its checksum at the end of the stream only.
        for name in wanted:
            if name not in found:
                raise DamageError(f"an archive without {name}")
        return join(found[name] for name in wanted)


def _entry(batch: Any, name: str) -> Any:
    if not isinstance(batch, dict):
        raise DamageError(f"a pickled {type(batch).__name__}, not a dictionary")
    # Keys are bytes in files that Python 2 wrote, as the publisher's are.
    for key in (name.encode(), name):
        if key in batch:
            return batch[key]
    raise DamageError(f"a pickle without {name!r}")


def _channels_last(rows: np.ndarray, images: Images) -> np.ndarray:
    height, width, channels = images.shape
    if rows.ndim != 2 or rows.shape[1] != height * width * channels:
        raise DamageError(f"images in an array of shape {rows.shape}")
    return rows.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
