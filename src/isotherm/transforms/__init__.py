"""Constrained parameters: samplers move free numbers, and users see constrained values."""

from isotherm.transforms.constrain import ConstrainedPotential, constrain
from isotherm.transforms.transform import (
    Interval,
    Ordered,
    Positive,
    Simplex,
    Transform,
    interval,
    ordered,
    positive,
    simplex,
)

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
