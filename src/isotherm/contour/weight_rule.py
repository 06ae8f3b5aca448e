"""Weights of draws that stay of the same order when theta, raised to a large power, would leave one draw with all of it."""

import dataclasses

import jax.numpy as jnp
from jax import Array

from isotherm.foundation.errors import check_real
from isotherm.foundation.parts import Part, Static


@dataclasses.dataclass(frozen=True, eq=False)
class RegularizedWeights(Part):
    """The weight (theta(J) / s)^power + floor of a draw in bin J; `floor` alone in the top bin.

    With zeta in the millions, as cold posteriors of networks want it, the exact weight of all but one draw is nothing. The thesis
    then averages networks with these weights, which are no longer those of the sampled density.

    Attributes:
        power: of theta; zeta where the weight is to be the thesis' theta^zeta(J).
        floor: what every draw gets.
        is_relative: whether s is the largest theta; else 1.

    Reference:
        Deng 2021, "a proper regularization is applied to the importance weights"; the numbers are those of the author's code:
        power 1 and 1e-10 for CIFAR, zeta and 1e-3 for the bandit, zeta and relative for the digits.
    """

    power: float = 1.0
    floor: float = 1e-10
    is_relative: Static[bool] = False

    def __post_init__(self):
        check_real("power", self.power, "Give the power of theta, such as 1.", minimum=0.0)
        check_real("floor", self.floor, "Give the weight of a draw that has no other.", above=0.0)

    def log_weights(self, log_theta: Array, log_largest: Array, is_top: Array) -> Array:
        """Log weights from log theta at the bins."""
        above = self.power * (log_theta - (log_largest if self.is_relative else 0.0))
        return jnp.logaddexp(jnp.where(is_top, -jnp.inf, above), jnp.log(self.floor))
