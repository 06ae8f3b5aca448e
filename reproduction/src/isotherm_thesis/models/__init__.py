"""Networks that only the thesis' experiments use."""

from isotherm_thesis.models.convolutional import CNN
from isotherm_thesis.models.filter_response import FilterResponseNorm, FilterResponseResNet, frn_resnet
from isotherm_thesis.models.residual import ResNet, bottleneck_resnet, resnet
from isotherm_thesis.models.wide import WideResNet, wide_resnet

__all__ = [
    "CNN",
    "FilterResponseNorm",
    "FilterResponseResNet",
    "ResNet",
    "WideResNet",
    "bottleneck_resnet",
    "frn_resnet",
    "resnet",
    "wide_resnet",
]
