"""Log weights of draws: what undoes the flattening, of theta at the draw's own time."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from isotherm.contour.integral import integral_of_excess
from isotherm.contour.state import ContourState
from isotherm.contour.theta_histogram import FLOOR, log_theta_around

if TYPE_CHECKING:
    from isotherm.contour.contour import Contour


def log_weights_of_draws(contour: "Contour", state: ContourState) -> Array:
    """Log weights of the positions that `Contour.update` has just seen, shape (P,), from the state that it returned.

    They are relative to the total mass of the bins that Psi knows, in which the scale of theta cancels: so they do not sink when
    theta runs into another bin, and the draw's own pull on theta, which comes after it, is not in them.
    """
    bins, group = state.bins, contour.groups(len(state.bins))
    masses = state.histogram.levels[0]
    anchor, log_total = state.anchor[group], jnp.log(state.total[group])
    # A cumulative theta is anchored at the first bin, where it is that bin's mass.
    at_anchor = jnp.log(jnp.maximum(masses[group, anchor], FLOOR)) - log_total
    if contour.weight_rule is not None:
        theta = jnp.cumsum(masses, axis=1) if contour.field.is_cumulative else masses
        here, largest = (jnp.maximum(t, FLOOR) for t in (theta[group, bins], jnp.max(theta, axis=1)[group]))
        is_top = bins == contour.partition.num_bins - 1
        # The thesis' weight is of theta as it is, which sums to one over all bins.
        log_sum = jnp.log(jnp.sum(masses, axis=1))[group]
        found = contour.weight_rule.log_weights(jnp.log(here) - log_sum, jnp.log(largest) - log_sum, is_top)
        at_first = at_anchor + log_total - log_sum
        constant = contour.weight_rule.log_weights(at_first, at_first, jnp.zeros_like(is_top))
    elif contour.bounds is None:
        logs = log_theta_around(state.histogram, group, bins, contour.field.is_cumulative)
        slope = contour.multiplier.slope(logs.steps[int(contour.multiplier.is_forward)], bins)
        found = contour.zeta * (contour.multiplier.log_psi(bins, state.energies, logs, slope) - log_total)
        constant = contour.zeta * at_anchor
    else:
        constant = contour.zeta * at_anchor
        found = constant + _from_anchor(contour, state, group, anchor)
    # Where psi is 1 whatever the energy, there is nothing to undo.
    return jnp.where(jnp.isfinite(state.temperature), found, constant)


def _from_anchor(contour: "Contour", state: ContourState, group: Array, anchor: Array) -> Array:
    """The integral of (psi - 1) / tau from the edge where Psi is theta(anchor) to the energies."""
    theta = state.histogram.levels[0]
    theta = jnp.cumsum(theta, axis=1) if contour.field.is_cumulative else theta
    temperature = jnp.where(jnp.isfinite(state.temperature), state.temperature, 1.0)
    above = state.energies - contour.partition.left(state.bins)
    edge = jnp.full_like(above, 0.0 if contour.multiplier.is_forward else contour.partition.width)
    groups, bins = jnp.concatenate([group, group]), jnp.concatenate([state.bins, anchor])
    ends = integral_of_excess(
        contour.multiplier, theta, state.sums, groups, bins, jnp.concatenate([above, edge]), temperature
    )
    return ends[: len(anchor)] - ends[len(anchor) :]
