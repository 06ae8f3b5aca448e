"""The integral of (psi - 1) over the energy: what a log weight is made of.

Where psi is bounded it is a sum over bins, of which sums over blocks are kept up to date, so that a weight costs about the square
root of the number of bins, and an iteration touches two of them.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap

from isotherm.contour.multiplier import Multiplier
from isotherm.contour.theta_histogram import FLOOR, add_at, quotient


class Sums(NamedTuple):
    """Sums of psi - 1 over blocks of bins, at one temperature.

    Attributes:
        blocks: shape (G, number of blocks).
        temperature: the one that the sums belong to; 0 where they are not kept.
    """

    blocks: Array
    temperature: Array


def block_length(num_bins: int) -> int:
    """Bins of a block."""
    return max(8, math.isqrt(num_bins))


def init_sums(multiplier: Multiplier, theta: Array, temperature: Array) -> Sums:
    """Sums for theta of shape (G, m)."""
    temperature = jnp.where(jnp.isfinite(temperature), temperature, 0.0)
    excess = _excess_of_all(multiplier, theta, temperature)
    length = block_length(theta.shape[1])
    padded = jnp.pad(excess, ((0, 0), (0, -theta.shape[1] % length)))
    return Sums(padded.reshape(len(theta), -1, length).sum(axis=2), temperature)


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
    length, last = block_length(multiplier.partition.num_bins), multiplier.partition.num_bins - 1
    blocks = sums.blocks
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        pairs = bins + number
        sloped = multiplier.of_pair(pairs)
        change = multiplier.excess(after, sloped, sums.temperature) - multiplier.excess(
            before, sloped, sums.temperature
        )
        if is_shared and len(bins) > 1:
            # Chains that met in one bin, or in two neighbours, report the same change.
            change /= sum(jnp.sum(pairs[:, None] == bins + other, axis=1) for other in range(2))
        blocks = add_at(blocks, group, quotient(jnp.clip(sloped, 0, last), length), change.astype(blocks.dtype))
    return sums._replace(blocks=blocks)


@custom_vmap
def integrate(
    multiplier: Multiplier, theta: Array, sums: Sums, group: Array, bins: Array, above: Array, temperature: Array
) -> Array:
    """The integral from the first edge, by the sums if they are those of this temperature, else over all bins."""
    is_kept = sums.temperature == temperature
    return lax.cond(is_kept, _by_sums, _over_all, multiplier, theta, sums, group, bins, above, temperature)


@integrate.def_vmap
def _(_size: int, is_batched: Any, *arguments: Any) -> tuple[Array, bool]:
    axes = tuple(jax.tree.map(lambda batched: 0 if batched else None, is_batched))
    is_kept = jnp.all(arguments[2].temperature == arguments[-1])
    return lax.cond(is_kept, jax.vmap(_by_sums, axes), jax.vmap(_over_all, axes), *arguments), True


def _by_sums(multiplier, theta, sums, group, bins, above, temperature) -> Array:
    length = block_length(multiplier.partition.num_bins)
    block = bins // length
    before = jnp.where(jnp.arange(sums.blocks.shape[1]) < block[:, None], sums.blocks[group], 0.0).sum(axis=1)
    places = block[:, None] * length + jnp.arange(length)
    excess = multiplier.excess(_steps(multiplier, theta, group[:, None], places), places, temperature)
    inside = jnp.where(places < bins[:, None], excess, 0.0).sum(axis=1)
    return _finish(multiplier, theta, before + inside, group, bins, above, temperature)


def _over_all(multiplier, theta, sums, group, bins, above, temperature) -> Array:
    del sums
    excess = _excess_of_all(multiplier, theta, temperature)
    before = jnp.cumsum(excess, axis=1) - excess
    return _finish(multiplier, theta, before[group, bins], group, bins, above, temperature)


def _finish(multiplier, theta, before, group, bins, above, temperature) -> Array:
    here = multiplier.excess(_steps(multiplier, theta, group, bins), bins, temperature)
    return (before * multiplier.partition.width + jnp.where(bins > 0, here * above, 0.0)) / temperature


def _excess_of_all(multiplier: Multiplier, theta: Array, temperature: Array) -> Array:
    every = jnp.arange(theta.shape[1])
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
