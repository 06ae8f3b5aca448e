"""Residual networks for images of 32 x 32."""

import jax.numpy as jnp
from flax import nnx
from jax import Array

from isotherm.foundation.errors import check_choice, refuse

WIDTHS = (16, 32, 64)
HE_FAN_OUT = nnx.initializers.variance_scaling(2.0, "fan_out", "normal")


def convolution(inputs: int, outputs: int, size: int, stride: int, rngs: nnx.Rngs) -> nnx.Conv:
    """A convolution without bias, initialized by He's rule for the fan-out."""
    shape = {"kernel_size": (size, size), "strides": stride, "padding": size // 2, "use_bias": False}
    return nnx.Conv(inputs, outputs, **shape, kernel_init=HE_FAN_OUT, rngs=rngs)


def batch_norm(width: int, rngs: nnx.Rngs) -> nnx.BatchNorm:
    """BatchNorm with momentum 0.9."""
    return nnx.BatchNorm(width, momentum=0.9, rngs=rngs)


class Shortcut(nnx.Module):
    """The input of a block in the shape of its output: projected or padded where these differ."""

    def __init__(self, inputs: int, outputs: int, stride: int, kind: str, rngs: nnx.Rngs):
        self.stride, self.num_padded = stride, outputs - inputs
        is_changed = stride != 1 or inputs != outputs
        is_projected = is_changed and kind == "projection"
        self.convolution = convolution(inputs, outputs, 1, stride, rngs) if is_projected else None
        self.norm = batch_norm(outputs, rngs) if is_projected else None

    def __call__(self, x: Array) -> Array:
        """The input in the output's shape."""
        if self.convolution is not None and self.norm is not None:
            return self.norm(self.convolution(x))
        x = x[:, :: self.stride, :: self.stride]
        sides = self.num_padded // 2, self.num_padded - self.num_padded // 2
        return jnp.pad(x, ((0, 0), (0, 0), (0, 0), sides)) if self.num_padded else x


class ResidualBlock(nnx.Module):
    """Convolutions with BatchNorm: two of 3 x 3, or a bottleneck of 1 x 1, 3 x 3 and, four times as wide, 1 x 1."""

    def __init__(self, inputs: int, width: int, stride: int, is_bottleneck: bool, kind: str, rngs: nnx.Rngs):
        outputs = 4 * width if is_bottleneck else width
        shapes = [(inputs, width, 3, stride), (width, width, 3, 1)]
        if is_bottleneck:
            shapes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)]
        self.convolutions = nnx.List([convolution(*shape, rngs) for shape in shapes])
        self.norms = nnx.List([batch_norm(shape[1], rngs) for shape in shapes])
        self.shortcut = Shortcut(inputs, outputs, stride, kind, rngs)

    def __call__(self, inputs: Array) -> Array:
        """The block's outputs."""
        x = inputs
        for number, (convolve, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            x = norm(convolve(nnx.relu(x) if number else x))
        return nnx.relu(x + self.shortcut(inputs))


class ResNet(nnx.Module):
    """A residual network for images of 32 x 32: a stem, three stages that halve the image and double the width, and a mean.

    Args:
        num_blocks: in each stage.
        num_classes: of the outputs.
        is_bottleneck: whether blocks are bottlenecks.
        shortcut: "projection" (1 x 1 convolution and BatchNorm, as in the thesis' code) or "padding" (no weights, as He et
            al.).
        num_channels: of the images.
        rngs: of the weights.

    Reference:
        He et al. 2015, section 4.2.
    """

    def __init__(
        self,
        num_blocks: int,
        num_classes: int,
        *,
        is_bottleneck: bool = False,
        shortcut: str = "projection",
        num_channels: int = 3,
        rngs: nnx.Rngs,
    ):
        check_choice("shortcut", shortcut, ("projection", "padding"))
        self.stem = convolution(num_channels, WIDTHS[0], 3, 1, rngs)
        self.norm = batch_norm(WIDTHS[0], rngs)
        blocks, inputs = [], WIDTHS[0]
        for stage, width in enumerate(WIDTHS):
            for number in range(num_blocks):
                stride = 2 if stage > 0 and number == 0 else 1
                blocks.append(ResidualBlock(inputs, width, stride, is_bottleneck, shortcut, rngs))
                inputs = 4 * width if is_bottleneck else width
        self.blocks = nnx.List(blocks)
        self.outputs = nnx.Linear(inputs, num_classes, rngs=rngs)

    def __call__(self, inputs: Array) -> Array:
        """Logits (n, num_classes)."""
        x = nnx.relu(self.norm(self.stem(inputs)))
        for block in self.blocks:
            x = block(x)
        return self.outputs(jnp.mean(x, axis=(1, 2)))


def resnet(depth: int, num_classes: int, *, shortcut: str = "projection", rngs: nnx.Rngs) -> ResNet:
    """He's network with basic blocks and `depth` = 6 n + 2 layers: 20, 32, 44, 56 or 110."""
    if depth < 8 or (depth - 2) % 6:
        refuse("depth", "6 n + 2, such as 20, 32 or 56", depth, "Choose such a depth.")
    return ResNet((depth - 2) // 6, num_classes, shortcut=shortcut, rngs=rngs)


def bottleneck_resnet(num_classes: int, *, num_blocks: int = 9, rngs: nnx.Rngs) -> ResNet:
    """The network that the thesis calls ResNet-56: 9 bottlenecks in each stage, 83 layers."""
    return ResNet(num_blocks, num_classes, is_bottleneck=True, rngs=rngs)
