"""The random fields that move theta: how strongly a chain pulls the weight of its bin."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from isotherm.contour.weights import FLOOR, Logs, Weights, read

if TYPE_CHECKING:
    from isotherm.contour.contour import Contour

FIELDS = ("psi", "theta^zeta", "theta", "cumulative")


def strength_of(
    contour: "Contour", weights: Weights, bins: Array, energies: Array, logs: Logs, slope: Array, anchor: Array
) -> Array:
    """How strongly each chain pulls theta towards its bin: f."""
    if contour.field in ("theta", "cumulative"):
        return weights.scale * jnp.exp(logs.here)
    if contour.field == "theta^zeta":
        return jnp.minimum(jnp.exp(contour.zeta * (jnp.log(weights.scale) + logs.here)) + contour.perturbation, 1.0)
    # Over the weight of a heavy bin: the same fixed point, and theta moves however many bins there are and whatever zeta is.
    largest = jnp.log(jnp.maximum(read(weights, contour.groups(len(bins)), anchor), FLOOR))
    return jnp.exp(contour.zeta * jnp.minimum(contour.log_psi(bins, energies, logs, slope) - largest, 0.0))
