"""IDX files, the format of MNIST: a magic number, the sizes of the axes, then bytes. Compressed with gzip, or not."""

import dataclasses
import gzip
import math
import pathlib
import struct

import numpy as np

from isotherm_thesis.data.dataset import Arrays, DamageError
from isotherm_thesis.data.images import Images


@dataclasses.dataclass(frozen=True)
class Idx:
    """Images, or their labels, in one IDX file.

    Attributes:
        images: What the split must hold.
        is_labels: Whether the file has the labels.
    """

    images: Images
    is_labels: bool

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return f"the {'labels' if self.is_labels else 'pixels'} of {self.images.content}"

    def __call__(self, path: pathlib.Path) -> Arrays:
        sizes = (self.images.num_images,) if self.is_labels else (self.images.num_images, *self.images.shape[:2])
        magic = 0x0800 + len(sizes)
        header = 4 + 4 * len(sizes)
        data = _read(path, header + math.prod(sizes))
        if len(data) < header:
            raise DamageError(f"only {len(data)} bytes")
        found, *found_sizes = struct.unpack(f">{1 + len(sizes)}I", data[:header])
        if found != magic:
            raise DamageError(f"the magic number {found} where {magic} belongs")
        if tuple(found_sizes) != sizes:
            raise DamageError(f"sizes {tuple(found_sizes)} where {sizes} belong")
        if len(data) != header + math.prod(sizes):
            raise DamageError(
                f"{'more' if len(data) > header + math.prod(sizes) else 'fewer'} bytes than its sizes say"
            )
        array = np.frombuffer(data, np.uint8, offset=header).reshape(sizes)
        return self.images.labels(array) if self.is_labels else self.images.inputs(array)


def _read(path: pathlib.Path, num_bytes: int) -> bytes:
    with path.open("rb") as stream:
        is_compressed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        # One byte more than belongs there: gzip compares its checksum only at the end of the stream.
        if not is_compressed:
            return stream.read(num_bytes + 1)
        with gzip.open(stream) as unpacked:
            return unpacked.read(num_bytes + 1)
