"""Networks of the thesis' experiments, as modules of Flax nnx."""

from isotherm.models.filter_response import FilterResponseNorm, FilterResponseResNet, frn_resnet
from isotherm.models.perceptron import CNN, MLP
from isotherm.models.residual import ResNet, bottleneck_resnet, resnet
from isotherm.models.wide import WideResNet, wide_resnet

__all__ = [
    "CNN",
    "MLP",
    "FilterResponseNorm",
    "FilterResponseResNet",
    "ResNet",
    "WideResNet",
    "bottleneck_resnet",
    "frn_resnet",
    "num_parameters",
    "resnet",
    "wide_resnet",
]


def num_parameters(module) -> int:
    """The number of weights of a module, BatchNorm's scales and shifts included.

    Example:
        >>> from flax import nnx
        >>> num_parameters(MLP(8, (50,), 1, rngs=nnx.Rngs(0)))
        501
    """
    import jax
    from flax import nnx

    return sum(leaf.size for leaf in jax.tree.leaves(nnx.state(module, nnx.Param)))
