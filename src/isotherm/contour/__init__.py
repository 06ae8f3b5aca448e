"""Contour samplers: a partition of the energy axis, the weights of its bins, and the multiplier that flattens them."""

from isotherm.contour.contour import Contour
from isotherm.contour.partition import Partition, Pilot, uniform_partition

__all__ = ["Contour", "Partition", "Pilot", "uniform_partition"]
