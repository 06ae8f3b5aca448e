"""A network with one convolution and BatchNorm, which compiles in seconds."""

import jax.numpy as jnp
from flax import nnx


class TinyNetwork(nnx.Module):
    """Convolution, BatchNorm, and the mean over pixels."""

    def __init__(self, num_classes, num_channels, rngs):
        self.convolution = nnx.Conv(num_channels, 4, (3, 3), strides=2, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(4, momentum=0.9, rngs=rngs)
        self.outputs = nnx.Linear(4, num_classes, rngs=rngs)

    def __call__(self, inputs):
        return self.outputs(jnp.mean(nnx.relu(self.norm(self.convolution(inputs))), axis=(1, 2)))
