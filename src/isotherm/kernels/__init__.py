"""Kernels, which move one chain."""

from isotherm.kernels.federated import FederatedLangevin
from isotherm.kernels.ghmc import GHMC, MALA
from isotherm.kernels.kernel import Kernel, Move
from isotherm.kernels.psgld import PSGLD
from isotherm.kernels.sghmc import SGHMC, MomentumSGD
from isotherm.kernels.sgld import SGD, SGLD
from isotherm.kernels.stein import Stein
from isotherm.kernels.wrapped import limited, scaled, within

__all__ = [
    "GHMC",
    "MALA",
    "PSGLD",
    "SGD",
    "SGHMC",
    "SGLD",
    "FederatedLangevin",
    "Kernel",
    "MomentumSGD",
    "Move",
    "Stein",
    "limited",
    "scaled",
    "within",
]
