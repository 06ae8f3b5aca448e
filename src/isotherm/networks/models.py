"""Networks of Flax nnx: a perceptron, a small convolutional network, and residual networks for images of 32 x 32."""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from isotherm.foundation.errors import check_choice, refuse

WIDTHS = (16, 32, 64)
HE_FAN_OUT = nnx.initializers.variance_scaling(2.0, "fan_out", "normal")


class MLP(nnx.Module):
    """A perceptron with rectified units. The thesis has one hidden layer of 50 for its regressions, two of 100 for its bandits.

    Args:
        num_inputs: features of an example, which is flattened.
        hidden: widths of the hidden layers.
        num_outputs: classes or targets.
        dropout: rate of dropout after each hidden layer.
        rngs: of the weights.
    """

    def __init__(
        self, num_inputs: int, hidden: Sequence[int], num_outputs: int, *, dropout: float = 0.0, rngs: nnx.Rngs
    ):
        widths = [num_inputs, *hidden, num_outputs]
        self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in itertools.pairwise(widths)])
        self.dropout = nnx.Dropout(dropout, rngs=rngs) if dropout > 0 else None

    def __call__(self, inputs: Array) -> Array:
        """Outputs (n, num_outputs)."""
        x = inputs.reshape(len(inputs), -1)
        for layer in list(self.layers)[:-1]:
            x = nnx.relu(layer(x))
            x = x if self.dropout is None else self.dropout(x)
        return self.layers[-1](x)


class CNN(nnx.Module):
    """Two convolutions of 5 x 5 with pooling by 2, one hidden layer, and the outputs.

    Args:
        shape: (height, width, channels) of an image.
        num_classes: of the outputs.
        filters: feature maps of the two convolutions.
        hidden: units of the hidden layer.
        rngs: of the weights.

    Reference:
        Deng 2021, sections 4.2.3 and 5.3.3, after Jarrett et al. 2009.

    Differs from the thesis: one passage of it has two hidden layers of 50; its code has one, as here.
    """

    def __init__(
        self,
        shape: tuple[int, int, int] = (28, 28, 1),
        num_classes: int = 5,
        *,
        filters: tuple[int, int] = (32, 64),
        hidden: int = 50,
        rngs: nnx.Rngs,
    ):
        height, width, channels = shape
        kernel = {"padding": "SAME", "kernel_init": HE_FAN_OUT, "rngs": rngs}
        self.first = nnx.Conv(channels, filters[0], (5, 5), **kernel)
        self.second = nnx.Conv(filters[0], filters[1], (5, 5), **kernel)
        self.hidden = nnx.Linear(height // 4 * (width // 4) * filters[1], hidden, rngs=rngs)
        self.outputs = nnx.Linear(hidden, num_classes, rngs=rngs)

    def __call__(self, inputs: Array) -> Array:
        """Logits (n, num_classes)."""
        x = _pool(nnx.relu(self.first(inputs)))
        x = _pool(nnx.relu(self.second(x)))
        return self.outputs(nnx.relu(self.hidden(x.reshape(len(x), -1))))


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


def num_parameters(module: Any) -> int:
    """The number of weights of a module, BatchNorm's scales and shifts included.

    Example:
        >>> from isotherm.networks import MLP
        >>> num_parameters(MLP(8, (50,), 1, rngs=nnx.Rngs(0)))
        501
    """
    return sum(leaf.size for leaf in jax.tree.leaves(nnx.state(module, nnx.Param)))


def _pool(x: Array) -> Array:
    """Max pooling by 2 x 2. A window reduction is several times slower on a CPU."""
    height, width = x.shape[1] // 2 * 2, x.shape[2] // 2 * 2
    x = x[:, :height, :width]
    rows = jnp.maximum(x[:, ::2], x[:, 1::2])
    return jnp.maximum(rows[:, :, ::2], rows[:, :, 1::2])
