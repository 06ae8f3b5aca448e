"""Constrained parameters: what samplers move is free, and users see the values that they meant."""

from isotherm.transforms.constrain import ConstrainedPotential, constrain
from isotherm.transforms.elementwise import Interval, Positive, interval, positive
from isotherm.transforms.transform import Transform
from isotherm.transforms.vectors import Ordered, Simplex, ordered, simplex

__all__ = [
    "ConstrainedPotential",
    "Interval",
    "Ordered",
    "Positive",
    "Simplex",
    "Transform",
    "constrain",
    "interval",
    "ordered",
    "positive",
    "simplex",
]
