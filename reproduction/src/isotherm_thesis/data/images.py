"""What a split of an image data set must hold."""

import dataclasses

import numpy as np

from isotherm_thesis.data.dataset import Arrays, DamageError


@dataclasses.dataclass(frozen=True)
class Images:
    """Number and shape of the images of one split, and the number of their classes.

    Attributes:
        split: `train` or `test`, the first part of the arrays' names.
        num_images: How many.
        shape: Rows, columns, channels.
        num_classes: Labels are 0 to `num_classes` - 1.
    """

    split: str
    num_images: int
    shape: tuple[int, int, int]
    num_classes: int

    @property
    def content(self) -> str:
        """The split in words."""
        size = " x ".join(map(str, self.shape))
        return f"{self.num_images:,} {self.split} images of {size} with labels 0 to {self.num_classes - 1}"

    def inputs(self, images: np.ndarray) -> Arrays:
        """Checked images, given with axes (image, row, column, channel); the channel may be left out when there is one."""
        if self.shape[-1] == 1 and images.ndim == 3:
            images = images[..., None]
        if images.dtype != np.uint8 or images.shape != (self.num_images, *self.shape):
            raise DamageError(f"images of shape {images.shape} and type {images.dtype}")
        return {f"{self.split}_inputs": np.require(images, requirements=("C", "W"))}

    def labels(self, labels: np.ndarray) -> Arrays:
        """Checked labels."""
        if labels.dtype.kind not in "iu" or labels.shape != (self.num_images,):
            raise DamageError(f"labels of shape {labels.shape} and type {labels.dtype}")
        if labels.size and not 0 <= labels.min() <= labels.max() < self.num_classes:
            raise DamageError(f"labels from {labels.min()} to {labels.max()}")
        return {f"{self.split}_labels": labels.astype(np.int32)}
