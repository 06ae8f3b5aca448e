"""Global minimization."""

from isotherm.minimization.search import minimize

__all__ = ["minimize"]
