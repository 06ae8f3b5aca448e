"""Where energies and gradients come from."""

from isotherm.estimators.estimator import Estimate, Estimator
from isotherm.estimators.plain import Plain

__all__ = ["Estimate", "Estimator", "Plain"]
