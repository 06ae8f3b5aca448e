"""Networks that only the thesis' experiments use."""

from isotherm_thesis.models.filter_response import FilterResponseNorm, FilterResponseResNet, frn_resnet

__all__ = ["FilterResponseNorm", "FilterResponseResNet", "frn_resnet"]
