"""Random changes of images on the device, and the scaling of stored pixels.

An augmentation maps (key, (images, targets)) to the same, for images (n, height, width, channels) of any type. It gets pixels
as stored; `Normalize` comes after it, in training and prediction alike.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.foundation.errors import check_integer, check_real, refuse

_CANDIDATES = 10

Augmentation = Callable[[Array, tuple[Array, Any]], tuple[Array, Any]]


@dataclasses.dataclass(frozen=True)
class Normalize:
    """(pixels / 255 - mean) / deviation, channel by channel, of uint8 images; real pixels are taken to be in [0, 1].

    Images of other integer types are refused, because their white level is unknown. The result is in single precision.

    Attributes:
        mean: mean of the pixels in [0, 1], one for each channel or one for all.
        deviation: their standard deviation, likewise.

    Example:
        >>> Normalize((0.5,), (0.25,))(jnp.full((1, 1, 1, 1), 255, jnp.uint8)).item()
        2.0
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __post_init__(self):
        for name, least in (("mean", -math.inf), ("deviation", 0.0)):
            values = getattr(self, name)
            for value in values if np.ndim(values) else (values,):
                check_real(name, value, "Give one number for each channel, of pixels in [0, 1].", above=least)
        sizes = np.size(self.mean), np.size(self.deviation)
        if 0 in sizes or (1 not in sizes and sizes[0] != sizes[1]):
            got = f"{sizes[0]} and {sizes[1]} of them"
            refuse("deviation", "as many numbers as `mean`", got, "Give one for each channel, or one for all.")

    def __call__(self, images: Array) -> Array:
        images = jnp.asarray(images)
        if jnp.issubdtype(images.dtype, jnp.integer) and images.dtype != jnp.uint8:
            remedy = "Convert bytes by `images.astype(np.uint8)`; divide others by their white level, so that they are in [0, 1]."
            refuse("images", "of type uint8, or real numbers in [0, 1]", f"type {images.dtype}", remedy)
        size = max(np.size(self.mean), np.size(self.deviation))
        if size > 1 and images.shape[-1:] != (size,):
            rule = f"with channels last, {size} of them as `mean` and `deviation` have"
            refuse("images", rule, f"shape {images.shape}", "Give one mean and deviation for each channel.")
        scale = 255.0 if images.dtype == jnp.uint8 else 1.0
        return (images.astype(jnp.float32) / scale - jnp.asarray(self.mean)) / jnp.asarray(self.deviation)


@dataclasses.dataclass(frozen=True)
class Crop:
    """Shifts every image by up to `padding` pixels in each direction, filled with black."""

    padding: int = 4

    def __post_init__(self):
        check_integer("padding", self.padding, 1, "Give the largest shift in pixels.")

    def __call__(self, key: Array, batch: tuple[Array, Any]) -> tuple[Array, Any]:
        images, targets = batch
        side = (self.padding, self.padding)
        padded = jnp.pad(images, ((0, 0), side, side, (0, 0)))
        shifts = jnp.floor(jax.random.uniform(key, (len(images), 2)) * (2 * self.padding + 1)).astype(jnp.int32)

        def cut(image, shift):
            return lax.dynamic_slice(image, (shift[0], shift[1], 0), images.shape[1:])

        return jax.vmap(cut)(padded, shifts), targets


@dataclasses.dataclass(frozen=True)
class Flip:
    """Mirrors every image from left to right with probability one half."""

    def __call__(self, key: Array, batch: tuple[Array, Any]) -> tuple[Array, Any]:
        images, targets = batch
        is_mirrored = jax.random.uniform(key, (len(images), 1, 1, 1)) < 0.5
        return jnp.where(is_mirrored, images[:, :, ::-1], images), targets


@dataclasses.dataclass(frozen=True)
class Erase:
    """Fills a random rectangle of an image with one color.

    Attributes:
        probability: of changing an image.
        area: range of the rectangle's share of the image.
        aspect: range of the ratio of its sides, which is uniform.
        fill: the color, in the units of stored pixels.

    Reference:
        Zhong et al. 2017, with the thesis' settings (L5112).

    Differs from the thesis: rectangles that do not fit are redrawn up to 10 times, not 100.
    """

    probability: float = 0.5
    area: tuple[float, float] = (0.02, 0.4)
    aspect: tuple[float, float] = (0.3, 3.33)
    # The thesis' constants .4914, .4822, .4465, which it fills in after normalization, in pixels.
    fill: tuple[float, ...] = (150.66, 147.48, 136.74)

    def __post_init__(self):
        check_real("probability", self.probability, "Give a probability.", minimum=0.0, maximum=1.0)
        for name, (low, high) in (("area", self.area), ("aspect", self.aspect)):
            if not 0 < low <= high:
                refuse(name, "a range (low, high) above 0", repr((low, high)), "Give the smaller number first.")

    def __call__(self, key: Array, batch: tuple[Array, Any]) -> tuple[Array, Any]:
        images, targets = batch
        number, height, width, channels = images.shape
        if len(self.fill) != channels:
            refuse("fill", f"one value for each of {channels} channels", repr(self.fill), "Give that many.")
        # One draw for everything: each further call of the generator adds seconds of compilation.
        unit = jax.random.uniform(key, (2 * _CANDIDATES + 3, number))
        shapes, (choice, *place) = unit[3:].reshape(2, _CANDIDATES, number), unit[:3]
        area = height * width * (self.area[0] + shapes[0] * (self.area[1] - self.area[0]))
        aspect = self.aspect[0] + shapes[1] * (self.aspect[1] - self.aspect[0])
        sides = jnp.stack([jnp.round(jnp.sqrt(area * aspect)), jnp.round(jnp.sqrt(area / aspect))])
        fits = (sides[0] < height) & (sides[1] < width)
        first = jnp.argmax(fits, axis=0)
        tall, wide = jnp.take_along_axis(sides, first[None, None], axis=1)[:, 0]
        is_changed = (choice < self.probability) & jnp.any(fits, axis=0)
        top, left = jnp.floor(place[0] * (height - tall + 1)), jnp.floor(place[1] * (width - wide + 1))
        rows, columns = jnp.arange(height)[None, :], jnp.arange(width)[None, :]
        in_rows = (rows >= top[:, None]) & (rows < (top + tall)[:, None])
        in_columns = (columns >= left[:, None]) & (columns < (left + wide)[:, None])
        inside = is_changed[:, None, None] & in_rows[:, :, None] & in_columns[:, None, :]
        color = jnp.asarray(self.fill)
        color = jnp.round(color) if jnp.issubdtype(images.dtype, jnp.integer) else color
        return jnp.where(inside[..., None], color.astype(images.dtype), images), targets


@dataclasses.dataclass(frozen=True)
class InTurn:
    """Several augmentations, one after the other."""

    steps: tuple[Augmentation, ...]

    def __call__(self, key: Array, batch: tuple[Array, Any]) -> tuple[Array, Any]:
        for number, step in enumerate(self.steps):
            batch = step(jax.random.fold_in(key, number), batch)
        return batch


def cifar_augmentation() -> InTurn:
    """The thesis' augmentation for CIFAR: crop, flip and random erasing."""
    return InTurn((Crop(4), Flip(), Erase()))
