"""How theta moves: its scale, and what each chain adds to its bin."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from isotherm.contour.theta_histogram import ThetaHistogram
from isotherm.coupling import CouplingInputs
from isotherm.foundation.schedules import as_schedule

if TYPE_CHECKING:
    from isotherm.contour.contour import Contour

_MAX_TRACKING = 1 - 1e-6


def learn(
    contour: "Contour", histogram: ThetaHistogram, strength: Array, inputs: CouplingInputs
) -> tuple[ThetaHistogram, Array]:
    """The new scale, and what each chain adds to its bin. Chains that are not alive leave no trace."""
    is_learning = jnp.asarray(not contour.is_frozen) & (inputs.iteration >= contour.warm_up)
    gain = jnp.where(is_learning, as_schedule(contour.gain)(inputs.iteration), 0.0)
    pull = jnp.where(inputs.is_alive, strength, 0.0)
    alive = inputs.is_alive.astype(pull.dtype)
    number = jnp.maximum(contour.per_group(alive), 1.0)
    # Theta never moves all of the way: nothing of it would be left.
    wanted = gain * contour.per_group(pull) / number
    share = _MAX_TRACKING / jnp.maximum(wanted, _MAX_TRACKING)
    scale = histogram.scale * (1.0 - share * wanted)
    return histogram._replace(scale=scale), share * gain * pull / (number * scale)
