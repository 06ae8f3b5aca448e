"""Contour samplers: a partition of the energy axis, the weights of its bins, and the multiplier that flattens them."""

from isotherm.contour.contour import Contour
from isotherm.contour.draw_weights import RegularizedWeights
from isotherm.contour.fields import Cumulative, Psi, Theta, ThetaPower
from isotherm.contour.partition import Partition, PartitionSearch, uniform_partition

__all__ = [
    "Contour",
    "Cumulative",
    "Partition",
    "PartitionSearch",
    "Psi",
    "RegularizedWeights",
    "Theta",
    "ThetaPower",
    "uniform_partition",
]
