"""What a contour coupling carries from iteration to iteration."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from isotherm.contour.integral import Sums, init_sums
from isotherm.contour.multiplier import Multiplier
from isotherm.contour.theta_histogram import LogTheta, ThetaHistogram, init_histogram, log_theta_around


class ContourState(NamedTuple):
    """What is learned of the bins, for G groups of P chains.

    Attributes:
        histogram: theta of this iteration once `bins` and `masses` are added.
        energies: of the last iteration, shape (P,).
        temperature: of the last iteration.
        bins: where its chains hit, shape (P,).
        masses: what they add there, shape (P,). Added first in an iteration, and read after: XLA then copies no histogram.
        counts: iterations in which a chain's multiplier was at its bound, was negative, and its energy in the top bin.
        extremes: the lowest and the highest multiplier so far, each of shape (P,).
        total: the mass of all bins whose weight Psi takes somewhere, in the units of `histogram.levels`, shape (G,).
        noise: how often the variance of the energy at one position was measured, and the sum of what was found, shape (2, P).
        multiplier: of the last iteration, shape (P,).
        anchor: a heavy bin, shape (G,), from whose edge weights are integrated where psi is bounded.
        sums: from which weights are found where psi is bounded; None where they are not kept.
        logs: of theta around `bins`, before `masses`; None without `sums`.
    """

    histogram: ThetaHistogram
    energies: Array
    temperature: Array
    bins: Array
    masses: Array
    counts: tuple[Array, ...]
    extremes: tuple[Array, Array]
    total: Array
    noise: Array
    multiplier: Array
    anchor: Array
    sums: Sums | None
    logs: LogTheta | None


def init_contour_state(multiplier: Multiplier, masses: Array, group: Array, is_tracked: bool) -> ContourState:
    """The state before the first iteration, with theta of shape (G, m) and the group of each chain, shape (P,)."""
    histogram, bins = init_histogram(masses, multiplier.goes_on), jnp.zeros_like(group)
    nothing = jnp.zeros(len(group), masses.dtype)
    return ContourState(
        histogram,
        energies=nothing,
        temperature=jnp.ones((), masses.dtype),
        bins=bins,
        masses=nothing,
        counts=tuple(jnp.zeros(len(group), jnp.int32) for _ in range(3)),
        extremes=(jnp.full_like(nothing, jnp.inf), jnp.full_like(nothing, -jnp.inf)),
        total=multiplier.known_mass(histogram.levels[0]),
        noise=jnp.zeros((2, len(group)), masses.dtype),
        multiplier=jnp.ones_like(nothing),
        anchor=multiplier.heaviest(histogram.levels[0]),
        sums=init_sums(multiplier, masses, jnp.zeros((), masses.dtype)) if is_tracked else None,
        logs=log_theta_around(histogram, group, bins, False) if is_tracked else None,
    )
