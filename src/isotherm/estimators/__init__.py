"""Estimators of energies and gradients."""

from isotherm.estimators.control_variate import ControlVariate
from isotherm.estimators.estimator import EnergyAndGradient, Estimator, Plain

__all__ = ["ControlVariate", "EnergyAndGradient", "Estimator", "Plain"]
