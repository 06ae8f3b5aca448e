"""A perceptron of Flax nnx, and the number of weights of a module."""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
from flax import nnx
from jax import Array


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


def num_parameters(module: Any) -> int:
    """The number of weights of a module, BatchNorm's scales and shifts included.

    Example:
        >>> from isotherm.networks import MLP
        >>> num_parameters(MLP(8, (50,), 1, rngs=nnx.Rngs(0)))
        501
    """
    return sum(leaf.size for leaf in jax.tree.leaves(nnx.state(module, nnx.Param)))
