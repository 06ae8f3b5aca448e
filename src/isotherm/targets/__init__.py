"""Potentials with known answers, for tests and experiments."""

from isotherm.targets.functions import TestFunction, ten_functions
from isotherm.targets.landscapes import modes9, modes25
from isotherm.targets.mixture_posterior import mixture_posterior
from isotherm.targets.mixtures import awsgld_mixture, csgld_mixture, mixture, resgld_mixtures
from isotherm.targets.quadrature import Grid, integrate
from isotherm.targets.target import Target
from isotherm.targets.unimodal import banana, gaussian

__all__ = [
    "Grid",
    "Target",
    "TestFunction",
    "awsgld_mixture",
    "banana",
    "csgld_mixture",
    "gaussian",
    "integrate",
    "mixture",
    "mixture_posterior",
    "modes9",
    "modes25",
    "resgld_mixtures",
    "ten_functions",
]
