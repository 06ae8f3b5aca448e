"""What a contour sampler reports at the end of a run."""

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from isotherm.contour.integral import excess_of_all
from isotherm.contour.state import ContourState
from isotherm.contour.theta_histogram import add

if TYPE_CHECKING:
    from isotherm.contour.contour import Contour


def statistics_of(contour: "Contour", state: ContourState) -> dict[str, Any]:
    """What a run reports about its contour at the end."""
    histogram = add(state.histogram, contour.groups(len(state.bins)), state.bins, state.masses)
    theta = jnp.cumsum(histogram.theta, axis=1) if contour.field.is_cumulative else histogram.theta
    num_bounded, num_negative, num_top = state.counts
    num_measured, variances = jnp.sum(state.noise, axis=1)
    measured = jnp.sqrt(jnp.where(num_measured > 0, variances / num_measured, jnp.nan))
    noise = measured if contour.noise is None else jnp.full_like(measured, contour.noise)
    # The root of the mean square over where the draws' weight is.
    squares = jnp.where(histogram.theta[:, 1:] > 0, histogram.theta[:, 1:] * jnp.diff(jnp.log(theta), axis=1) ** 2, 0.0)
    slope = jnp.sqrt(jnp.sum(squares, axis=1)) / contour.partition.width
    temperature = jnp.where(jnp.isfinite(state.temperature), state.temperature, 1.0)
    return {
        "theta": theta,
        "num_bounded": num_bounded,
        "num_negative": num_negative,
        "num_top": num_top,
        "lowest_multiplier": state.extremes[0],
        "highest_multiplier": state.extremes[1],
        "energy_noise": noise,
        "weight_slopes": excess_of_all(contour.multiplier, theta, temperature) / temperature,
        "noise_times_slope": noise * contour.zeta * slope,
    }
