"""The small convolutional network of the thesis' digits."""

import jax.numpy as jnp
from flax import nnx
from jax import Array

from isotherm_thesis.models.residual import HE_FAN_OUT


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


def _pool(x: Array) -> Array:
    """Max pooling by 2 x 2. A window reduction is several times slower on a CPU."""
    height, width = x.shape[1] // 2 * 2, x.shape[2] // 2 * 2
    x = x[:, :height, :width]
    rows = jnp.maximum(x[:, ::2], x[:, 1::2])
    return jnp.maximum(rows[:, :, ::2], rows[:, :, 1::2])
