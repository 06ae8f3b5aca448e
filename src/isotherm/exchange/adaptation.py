"""Ladders that adapt until every pair accepts equally often."""

import dataclasses

import jax.numpy as jnp
from jax import Array

from isotherm.foundation.errors import check_choice, check_real
from isotherm.foundation.parts import Part, Static
from isotherm.foundation.schedules import Schedule, as_schedule, check_schedule


@dataclasses.dataclass(frozen=True, eq=False)
class EquiAcceptance(Part):
    r"""Moves the inner rungs so that the acceptance of every pair goes to S; the ends stay.

        d_i = z_i - z_{i-1},   a_i = max(0, d_i) exp{ g_k (A_i - S) }
        z_i <- ( z_{i-1} + a_i + z_{i+1} - a_{i+1} ) / 2        for the inner rungs, all right-hand sides of iteration k

    A_i is the indicator that pair (i-1, i) would accept, of all pairs in every iteration, allowed to swap or not.

    Attributes:
        target: S.
        gain: g_k, a function of the iteration.
        of: "step_size" adapts z = step sizes (for the deterministic rule), "temperature" z = log temperatures.

    Reference:
        Deng 2021, equation (double SA) of section 3.3.

    Differs from the thesis: the printed indices are shifted by one; with them the last inner rung would need a rung past the end.
    """

    target: float
    gain: Schedule
    of: Static[str] = "step_size"

    def __post_init__(self):
        check_real("target", self.target, "Give an acceptance rate.", above=0.0, below=1.0)
        check_schedule("gain", self.gain, allow_zero=True)
        check_choice("of", self.of, ("step_size", "temperature"))

    def move(self, values: Array, accepted: Array, iteration: Array) -> Array:
        """The values of the rungs after an iteration, from the indicators of the adjacent pairs."""
        z = jnp.log(values) if self.of == "temperature" else values
        step = as_schedule(self.gain)(iteration) * (accepted.astype(z.dtype) - self.target)
        reach = jnp.maximum(jnp.diff(z), 0.0) * jnp.exp(step)
        inner = 0.5 * (z[:-2] + reach[:-1] + z[2:] - reach[1:])
        moved = jnp.concatenate([z[:1], inner, z[-1:]])
        return jnp.exp(moved) if self.of == "temperature" else moved
