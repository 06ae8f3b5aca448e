"""Networks that only the thesis' experiments use."""

from isotherm_thesis.models.filter_response import FilterResponseNorm, FilterResponseResNet, frn_resnet
from isotherm_thesis.models.wide import WideResNet, wide_resnet

__all__ = [
    "FilterResponseNorm",
    "FilterResponseResNet",
    "WideResNet",
    "frn_resnet",
    "wide_resnet",
]
