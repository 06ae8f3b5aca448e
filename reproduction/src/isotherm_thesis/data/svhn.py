"""Street View House Numbers, cropped digits, from MATLAB files."""

import dataclasses
import pathlib

import numpy as np

from isotherm_thesis.data.dataset import Arrays, DamageError
from isotherm_thesis.data.images import Images


@dataclasses.dataclass(frozen=True)
class Svhn:
    """Images `X` with axes (row, column, channel, image) and labels `y` of 1 to 10, where 10 is the digit 0."""

    images: Images

    @property
    def content(self) -> str:
        """What the file must hold, in words."""
        return f"a MATLAB file of {self.images.content}"

    def __call__(self, path: pathlib.Path) -> Arrays:
        from scipy.io import loadmat

        with path.open("rb") as stream:
            variables = loadmat(stream, variable_names=("X", "y"))
        for name in ("X", "y"):
            if not isinstance(variables.get(name), np.ndarray):
                raise DamageError(f"a MATLAB file without {name}")
        images, labels = variables["X"], variables["y"]
        if images.ndim != 4 or labels.dtype.kind not in "iu":
            raise DamageError(f"images of shape {images.shape} and labels of type {labels.dtype}")
        labels = labels.ravel()
        if labels.size and labels.min() < 1:
            raise DamageError(f"the label {labels.min()} where 1 to 10 belong")
        labels = np.where(labels == 10, 0, labels)
        return self.images.inputs(images.transpose(3, 0, 1, 2)) | self.images.labels(labels)
