"""The integral of (psi - 1) over the energy: what a log weight is made of.

Where psi is bounded it is a sum over bins, of which sums over blocks, over blocks of these, and so on are kept up to date, so that
a weight or an iteration touches a few of them, however many bins there are.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from isotherm.contour.multiplier import Multiplier
from isotherm.contour.sum_tree import (
    BRANCHES,
    Levels,
    add_to_levels,
    levels_of,
    prefix_sums,
    quotient,
    sums_of_branches,
)
from isotherm.contour.theta_histogram import FLOOR


class Sums(NamedTuple):
    """Sums of psi - 1 over blocks of bins, at one temperature.

    Attributes:
        blocks: of 32 bins, shape (G, number of blocks), and their sums in turn.
        temperature: the one that the sums belong to; 0 where they are not kept.
    """

    blocks: Levels
    temperature: Array


def init_sums(multiplier: Multiplier, theta: Array, temperature: Array) -> Sums:
    """Sums for theta of shape (G, m)."""
    temperature = jnp.where(jnp.isfinite(temperature), temperature, 0.0)
    excess = excess_of_all(multiplier, theta, temperature)
    return Sums(levels_of(sums_of_branches(excess)), temperature)


def update_sums(
    multiplier: Multiplier,
    sums: Sums,
    group: Array,
    bins: Array,
    old: tuple[Array, Array],
    new: tuple[Array, Array],
    is_shared: bool,
) -> Sums:
    """Sums after the steps up to `bins` and up from them became `new` where they were `old`."""
    blocks, last = sums.blocks, multiplier.partition.num_bins - 1
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        pairs = bins + number
        sloped = multiplier.of_pair(pairs)
        change = multiplier.excess(after, sloped, sums.temperature) - multiplier.excess(
            before, sloped, sums.temperature
        )
        if is_shared and len(bins) > 1:
            # Chains that met in one bin, or in two neighbors, report the same change.
            met = sum(jnp.sum(pairs[:, None] == bins[None] + other, axis=1) for other in range(2))
            change /= jnp.asarray(met, change.dtype)
        blocks = add_to_levels(blocks, group, quotient(jnp.clip(sloped, 0, last), BRANCHES), change)
    return sums._replace(blocks=blocks)


def integral_of_excess(
    multiplier: Multiplier, theta: Array, sums: Sums | None, group: Array, bins: Array, above: Array, temperature: Array
) -> Array:
    """The integral from the first edge, by the sums if they are kept, else over all bins."""
    if sums is None:
        excess = excess_of_all(multiplier, theta, temperature)
        before = (jnp.cumsum(excess, axis=1) - excess)[group, bins]
    else:
        before = _by_sums(multiplier, theta, sums, group, bins, temperature)
    here = multiplier.excess(_steps(multiplier, theta, group, bins), bins, temperature)
    return (before * multiplier.partition.width + jnp.where(bins > 0, here * above, 0.0)) / temperature


def _by_sums(multiplier: Multiplier, theta: Array, sums: Sums, group: Array, bins: Array, temperature: Array) -> Array:
    """The sum of psi - 1 over the bins below `bins`: whole blocks by the sums, the last one bin by bin.

    Sums of another temperature are of no use. Then a loop goes through all blocks; it has no turns where they are.
    """
    last = quotient(bins, BRANCHES)

    def within(block):
        places = block[:, None] * BRANCHES + jnp.arange(BRANCHES)[None]
        excess = multiplier.excess(_steps(multiplier, theta, group[:, None], places), places, temperature)
        return jnp.where(places < bins[:, None], excess, 0.0).sum(axis=1)

    def add(block, total):
        return total + jnp.where(block < last, within(jnp.minimum(block, last)), 0.0)

    is_kept, below = sums.temperature == temperature, prefix_sums(sums.blocks, group, last)
    added = lax.fori_loop(0, jnp.where(is_kept, 0, jnp.max(last)), add, jnp.zeros_like(below))
    return jnp.where(is_kept, below, added) + within(last)


def excess_of_all(multiplier: Multiplier, theta: Array, temperature: Array) -> Array:
    """Psi - 1 in all bins, for theta of shape (G, m)."""
    every = jnp.arange(theta.shape[1])[None]
    logs = jnp.log(jnp.maximum(theta, FLOOR))
    steps = (
        jnp.diff(logs, axis=1, append=logs[:, -1:]) if multiplier.is_forward else jnp.diff(logs, axis=1, prepend=0.0)
    )
    return multiplier.excess(steps, every, temperature)


def _steps(multiplier: Multiplier, theta: Array, group: Array, bins: Array) -> Array:
    """The steps of the pairs that give `bins` their slopes."""
    last = theta.shape[1] - 1
    upper = jnp.clip(multiplier.pair(bins), 1, last)
    logs = [jnp.log(jnp.maximum(theta[group, place], FLOOR)) for place in (upper, upper - 1)]
    return logs[0] - logs[1]
