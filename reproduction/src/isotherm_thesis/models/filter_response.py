"""Residual networks without BatchNorm, which are functions of their weights alone: filter response normalization and swish."""

import jax.numpy as jnp
from flax import nnx
from jax import Array

from isotherm.foundation.errors import refuse
from isotherm.networks.models import WIDTHS, convolution

_EPSILON = 1e-6


class FilterResponseNorm(nnx.Module):
    r"""gamma * x / sqrt(mean over pixels of x^2 + 1e-6) + beta, channel by channel and image by image.

    No image knows of the others in its batch: training and prediction are the same function.

    Args:
        width: channels.
        rngs: not used; gamma starts at 1 and beta at 0.

    Reference:
        Singh and Krishnan 2020, equations (1) and (2), without the threshold unit of (3).
    """

    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.scale = nnx.Param(jnp.ones(width))
        self.bias = nnx.Param(jnp.zeros(width))

    def __call__(self, x: Array) -> Array:
        """Normalized images (n, height, width, channels)."""
        # In single precision: squares of many pixels would lose digits in a half one.
        square = jnp.mean(jnp.square(x.astype(jnp.float32)), axis=(1, 2), keepdims=True)
        normal = x * (1.0 / jnp.sqrt(square + _EPSILON)).astype(x.dtype)
        return self.scale.get_value().astype(x.dtype) * normal + self.bias.get_value().astype(x.dtype)


class FilterResponseBlock(nnx.Module):
    """Two convolutions of 3 x 3 with filter response normalization, and swish between and after the sum with the shortcut."""

    def __init__(self, inputs: int, width: int, stride: int, rngs: nnx.Rngs):
        self.convolutions = nnx.List(
            [convolution(inputs, width, 3, stride, rngs), convolution(width, width, 3, 1, rngs)]
        )
        self.norms = nnx.List([FilterResponseNorm(width, rngs=rngs) for _ in range(2)])
        is_changed = stride != 1 or inputs != width
        self.projection = convolution(inputs, width, 1, stride, rngs) if is_changed else None
        self.projection_norm = FilterResponseNorm(width, rngs=rngs) if is_changed else None

    def __call__(self, inputs: Array) -> Array:
        """The block's outputs."""
        x = nnx.swish(self.norms[0](self.convolutions[0](inputs)))
        x = self.norms[1](self.convolutions[1](x))
        if self.projection is not None and self.projection_norm is not None:
            inputs = self.projection_norm(self.projection(inputs))
        return nnx.swish(x + inputs)


class FilterResponseResNet(nnx.Module):
    """The `ResNet` of basic blocks with filter response normalization and swish.

    Args:
        num_blocks: in each of the three stages.
        num_classes: of the outputs.
        num_channels: of the images.
        rngs: of the weights.

    Reference:
        Izmailov et al. 2021, section 4: the network of their HMC reference.
    """

    def __init__(self, num_blocks: int, num_classes: int, *, num_channels: int = 3, rngs: nnx.Rngs):
        self.stem = convolution(num_channels, WIDTHS[0], 3, 1, rngs)
        self.norm = FilterResponseNorm(WIDTHS[0], rngs=rngs)
        blocks, inputs = [], WIDTHS[0]
        for stage, width in enumerate(WIDTHS):
            for number in range(num_blocks):
                blocks.append(FilterResponseBlock(inputs, width, 2 if stage > 0 and number == 0 else 1, rngs))
                inputs = width
        self.blocks = nnx.List(blocks)
        self.outputs = nnx.Linear(inputs, num_classes, rngs=rngs)

    def __call__(self, inputs: Array) -> Array:
        """Logits (n, num_classes)."""
        x = nnx.swish(self.norm(self.stem(inputs)))
        for block in self.blocks:
            x = block(x)
        return self.outputs(jnp.mean(x, axis=(1, 2)))


def frn_resnet(depth: int, num_classes: int, *, num_channels: int = 3, rngs: nnx.Rngs) -> FilterResponseResNet:
    """A residual network of `depth` = 6 n + 2 layers with filter response normalization: 20 for the HMC reference."""
    if depth < 8 or (depth - 2) % 6:
        refuse("depth", "6 n + 2, such as 20, 32 or 56", depth, "Choose such a depth.")
    return FilterResponseResNet((depth - 2) // 6, num_classes, num_channels=num_channels, rngs=rngs)
