"""Log weights of draws, which undo the flattening, from theta at the time of the draw."""

import dataclasses
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from isotherm.contour.multiplier import integral_of_excess
from isotherm.contour.theta_histogram import FLOOR, log_theta_around
from isotherm.foundation.errors import check_real
from isotherm.foundation.parts import Part, Static

if TYPE_CHECKING:
    from isotherm.contour.contour import Contour, ContourState


@dataclasses.dataclass(frozen=True, eq=False)
class RegularizedWeights(Part):
    """The weight (theta(J) / s)^power + floor of a draw in bin J; `floor` alone in the top bin.

    For a zeta in the millions, as for cold posteriors of networks, the exact weight of all but one draw vanishes. The thesis then
    averages networks with these weights, which are not those of the sampled density.

    Attributes:
        power: of theta; zeta gives the thesis' theta^zeta(J).
        floor: the smallest weight.
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
        check_real("floor", self.floor, "Give the smallest weight of a draw.", above=0.0)

    def log_weights(self, log_theta: Array, log_largest: Array, is_top: Array) -> Array:
        """Log weights from log theta at the bins."""
        above = self.power * (log_theta - (log_largest if self.is_relative else 0.0))
        return jnp.logaddexp(jnp.where(is_top, -jnp.inf, above), jnp.log(self.floor))


def log_weights_of_draws(contour: "Contour", state: "ContourState") -> Array:
    """Log weights of the P positions of the last `Contour.update`, from the state that it returned.

    They are relative to the total mass of the bins that Psi covers: the scale of theta cancels, and weights do not sink when theta
    runs into another bin. Theta is that before the update by the draw itself.
    """
    bins, group = state.bins, contour.groups(len(state.bins))
    masses = state.histogram.levels[0]
    anchor, log_total = state.anchor[group], jnp.log(state.total[group])
    # A cumulative theta is anchored at the first bin, where it is that bin's mass.
    at_anchor = jnp.log(jnp.maximum(masses[group, anchor], FLOOR)) - log_total
    constant = contour.zeta * at_anchor
    if contour.weight_rule is not None:
        theta = jnp.cumsum(masses, axis=1) if contour.field.is_cumulative else masses
        here, largest = (jnp.maximum(t, FLOOR) for t in (theta[group, bins], jnp.max(theta, axis=1)[group]))
        is_top = bins == contour.partition.num_bins - 1
        # The thesis' theta sums to one over all bins.
        log_sum = jnp.log(jnp.sum(masses, axis=1))[group]
        found = contour.weight_rule.log_weights(jnp.log(here) - log_sum, jnp.log(largest) - log_sum, is_top)
        at_first = at_anchor + log_total - log_sum
        constant = contour.weight_rule.log_weights(at_first, at_first, jnp.zeros_like(is_top))
    elif contour.bounds is None:
        logs = log_theta_around(state.histogram, group, bins, contour.field.is_cumulative)
        slope = contour.multiplier.slope(logs.steps[int(contour.multiplier.is_forward)], bins)
        found = contour.zeta * (contour.multiplier.log_psi(bins, state.energies, logs, slope) - log_total)
    else:
        found = constant + _from_anchor(contour, state, group, anchor)
    # Draws of the plain sampler (psi = 1) have one weight.
    return jnp.where(jnp.isfinite(state.temperature), found, constant)


def _from_anchor(contour: "Contour", state: "ContourState", group: Array, anchor: Array) -> Array:
    """The integral of (psi - 1) / tau from the edge where Psi is theta(anchor) to the energies."""
    theta = state.histogram.levels[0]
    theta = jnp.cumsum(theta, axis=1) if contour.field.is_cumulative else theta
    temperature = jnp.where(jnp.isfinite(state.temperature), state.temperature, 1.0)
    above = state.energies - contour.partition.left(state.bins)
    edge = jnp.full_like(above, 0.0 if contour.multiplier.is_forward else contour.partition.width)
    groups, bins = jnp.concatenate([group, group]), jnp.concatenate([state.bins, anchor])
    heights = jnp.concatenate([above, edge])
    ends = integral_of_excess(contour.multiplier, theta, state.sums, groups, bins, heights, temperature)
    return ends[: len(anchor)] - ends[len(anchor) :]
