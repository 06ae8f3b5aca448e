"""Constrained parameters: samplers move free numbers, and users see constrained values."""

from isotherm.transforms.constrain import ConstrainedPotential, constrain
from isotherm.transforms.transform import (
    Circular,
    Interval,
    Ordered,
    Positive,
    Simplex,
    Transform,
    circular,
    interval,
    ordered,
    positive,
    simplex,
)

__all__ = [
    "Circular",
    "ConstrainedPotential",
    "Interval",
    "Ordered",
    "Positive",
    "Simplex",
    "Transform",
    "circular",
    "constrain",
    "interval",
    "ordered",
    "positive",
    "simplex",
]
