"""Samplers in the loops of other libraries."""

from isotherm.adapters.for_blackjax import to_blackjax
from isotherm.adapters.for_optax import as_optax

__all__ = ["as_optax", "to_blackjax"]
