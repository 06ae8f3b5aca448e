"""Wide residual networks for images of 32 x 32."""

import jax.numpy as jnp
from flax import nnx
from jax import Array

from isotherm.foundation.errors import check_integer, refuse
from isotherm.networks.models import WIDTHS, batch_norm, convolution


class WideBlock(nnx.Module):
    """BatchNorm, rectifier and convolution, twice; where the shape changes, a 1 x 1 convolution of the rectified input is added."""

    def __init__(self, inputs: int, width: int, stride: int, rngs: nnx.Rngs):
        self.norms = nnx.List([batch_norm(inputs, rngs), batch_norm(width, rngs)])
        self.convolutions = nnx.List(
            [convolution(inputs, width, 3, stride, rngs), convolution(width, width, 3, 1, rngs)]
        )
        is_changed = stride != 1 or inputs != width
        self.shortcut = convolution(inputs, width, 1, stride, rngs) if is_changed else None

    def __call__(self, inputs: Array) -> Array:
        """The block's outputs."""
        active = nnx.relu(self.norms[0](inputs))
        x = self.convolutions[0](active)
        x = self.convolutions[1](nnx.relu(self.norms[1](x)))
        return x + (inputs if self.shortcut is None else self.shortcut(active))


class WideResNet(nnx.Module):
    """Pre-activation blocks, `widening` times as wide as those of a ResNet.

    Args:
        num_blocks: in each of the three stages.
        widening: k.
        num_classes: of the outputs.
        rngs: of the weights.

    Reference:
        Zagoruyko and Komodakis 2016, without dropout.
    """

    def __init__(self, num_blocks: int, widening: int, num_classes: int, *, rngs: nnx.Rngs):
        self.stem = convolution(3, WIDTHS[0], 3, 1, rngs)
        blocks, inputs = [], WIDTHS[0]
        for stage, width in enumerate(WIDTHS):
            for number in range(num_blocks):
                stride = 2 if stage > 0 and number == 0 else 1
                blocks.append(WideBlock(inputs, widening * width, stride, rngs))
                inputs = widening * width
        self.blocks = nnx.List(blocks)
        self.norm = batch_norm(inputs, rngs)
        self.outputs = nnx.Linear(inputs, num_classes, rngs=rngs)

    def __call__(self, inputs: Array) -> Array:
        """Logits (n, num_classes)."""
        x = self.stem(inputs)
        for block in self.blocks:
            x = block(x)
        return self.outputs(jnp.mean(nnx.relu(self.norm(x)), axis=(1, 2)))


def wide_resnet(depth: int, widening: int, num_classes: int, *, rngs: nnx.Rngs) -> WideResNet:
    """WRN-depth-widening, such as WRN-16-8 and WRN-28-10; the depth is 6 n + 4."""
    if depth < 10 or (depth - 4) % 6:
        refuse("depth", "6 n + 4, such as 16 or 28", depth, "Choose such a depth.")
    check_integer("widening", widening, 1, "Give the factor on the widths, such as 8.")
    return WideResNet((depth - 4) // 6, widening, num_classes, rngs=rngs)
