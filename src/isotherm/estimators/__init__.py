"""Where energies and gradients come from."""

from isotherm.estimators.control_variate import ControlVariate
from isotherm.estimators.estimator import EnergyAndGradient, Estimator
from isotherm.estimators.plain import Plain

__all__ = ["ControlVariate", "EnergyAndGradient", "Estimator", "Plain"]
