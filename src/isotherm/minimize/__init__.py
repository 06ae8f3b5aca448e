"""Global minimization."""

from isotherm.minimize.search import minimize

__all__ = ["minimize"]
