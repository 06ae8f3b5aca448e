"""Gains that fall: how far a learned number moves in an iteration."""

import dataclasses

import jax.numpy as jnp
from jax import Array

from isotherm.foundation.schedules import ElementwiseSchedule


@dataclasses.dataclass(frozen=True, eq=False)
class PolynomialGain(ElementwiseSchedule):
    """min(limit, scale / (k^power + offset)), the gain of the thesis' toy experiment by default."""

    scale: float = 50.0
    power: float = 0.8
    offset: float = 500.0
    limit: float = 1.0

    def __call__(self, iteration: Array) -> Array:
        xp = self.arrays_for(iteration)
        count = xp.asarray(iteration, jnp.result_type(float))
        return xp.minimum(self.limit, self.scale / (count**self.power + self.offset))
