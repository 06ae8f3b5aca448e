"""Contour samplers: a partition of the energy axis, the weights of its bins, and the multiplier that flattens them."""

from isotherm.contour.contour import Contour
from isotherm.contour.partition import Partition, Pilot, uniform_partition
from isotherm.contour.weighing import Regularised

__all__ = ["Contour", "Partition", "Pilot", "Regularised", "uniform_partition"]
