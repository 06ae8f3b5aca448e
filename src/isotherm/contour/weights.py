"""The weights of the bins, stored so that an iteration touches a few of them, however many there are.

All three recursions of the thesis are theta <- (1 - c) theta + c * hit. The factor is kept aside as a scale, so that an
iteration adds to single bins. The scale is folded in at fixed iterations, before it can underflow. Masses are in large units: bins
that are not hit lose weight for ever, and single precision then reaches down to exp(-150) of the heaviest one.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap

_BRANCHES = 32
_MOST_SLICES = 32
FLOOR = 1e-37
_UNIT = 1e28
# The scale may fall to exp of minus this between two folds: masses then stay below the largest number.
LOWEST_LOG_SCALE = 20.0


class Weights(NamedTuple):
    """Weights of m bins for each of G groups of chains: theta = scale * levels[0].

    Attributes:
        levels: masses, shape (G, m), and where prefix sums are asked for, sums of 32 of them, of 1024, and so on.
        scale: shape (G,).
    """

    levels: tuple[Array, ...]
    scale: Array

    @property
    def theta(self) -> Array:
        """The weights themselves, shape (G, m)."""
        return self.scale[:, None] * self.levels[0]


class Logs(NamedTuple):
    """Log theta, before the scale, below, at and above bins, each of shape (P,). Ends are repeated."""

    below: Array
    here: Array
    above: Array

    @property
    def steps(self) -> tuple[Array, Array]:
        """Up to the bins, and up from them."""
        return self.here - self.below, self.above - self.here


def init_weights(masses: Array, has_sums: bool) -> Weights:
    """Weights equal to `masses`, of shape (G, m)."""
    lowest = jnp.maximum(_UNIT * jnp.asarray(masses), FLOOR)
    return Weights(_tree(lowest, has_sums), jnp.full(len(lowest), 1 / _UNIT, lowest.dtype))


def _tree(lowest: Array, has_sums: bool) -> tuple[Array, ...]:
    """The masses, and where they are asked for, their sums level by level."""
    levels = [lowest]
    while has_sums and levels[-1].shape[1] > _BRANCHES:
        last = levels[-1]
        padded = jnp.pad(last, ((0, 0), (0, -last.shape[1] % _BRANCHES)))
        levels.append(padded.reshape(len(last), -1, _BRANCHES).sum(axis=2))
    return tuple(levels)


def add(weights: Weights, group: Array, index: Array, masses: Array) -> Weights:
    """After `masses` (before the scale) were added to bins."""
    levels = []
    for level in weights.levels:
        levels.append(add_at(level, group, index, masses.astype(level.dtype)))
        index = quotient(index, _BRANCHES)
    return weights._replace(levels=tuple(levels))


def around(weights: Weights, group: Array, bins: Array, is_cumulative: bool) -> Logs:
    """Log theta around bins."""
    if is_cumulative:
        below = prefix_sums(weights, group, bins)
        here = below + read(weights, group, bins)
        values = [below, here, here]
    else:
        last = weights.levels[0].shape[1] - 1
        places = jnp.maximum(bins - 1, 0), bins, jnp.minimum(bins + 1, last)
        values = [read(weights, group, place) for place in places]
    return Logs(*(jnp.log(jnp.maximum(value, FLOOR)) for value in values))


def read(weights: Weights, group: Array, index: Array) -> Array:
    """Masses of bins, before the scale."""
    return _read(weights.levels[0], group, index)


@custom_vmap
def add_at(level: Array, group: Array, index: Array, masses: Array) -> Array:
    """`level` of shape (G, n) after `masses` were added at places.

    For few places one slice is updated after another: XLA turns a scatter into a loop of many small operations. Where runs are
    batched there is one scatter for all of them.
    """
    if len(index) > _MOST_SLICES:
        return level.at[group, index].add(masses)
    for chain in range(len(index)):
        place = (group[chain], index[chain])
        old = lax.dynamic_slice(level, place, (1, 1))
        level = lax.dynamic_update_slice(level, old + masses[chain], place)
    return level


@add_at.def_vmap
def _(_size: int, is_batched: Any, *arguments: Array) -> tuple[Array, bool]:
    axes = [0 if batched else None for batched in is_batched]
    return jax.vmap(lambda level, *rest: level.at[rest[0], rest[1]].add(rest[2]), axes)(*arguments), True


@custom_vmap
def _read(level: Array, group: Array, index: Array) -> Array:
    if len(index) > 1:
        return level[group, index]
    return lax.dynamic_slice(level, (group[0], index[0]), (1, 1))[0]


@_read.def_vmap
def _(_size: int, is_batched: Any, *arguments: Array) -> tuple[Array, bool]:
    axes = [0 if batched else None for batched in is_batched]
    return jax.vmap(lambda level, group, index: level[group, index], axes)(*arguments), True


def prefix_sums(weights: Weights, group: Array, index: Array) -> Array:
    """Sums of the masses of all bins below `index`, before the scale."""

    def one(group, index):
        total = jnp.zeros((), weights.scale.dtype)
        node = index
        for level in weights.levels:
            first = quotient(node, _BRANCHES) * _BRANCHES
            length = min(_BRANCHES, level.shape[1])
            start = jnp.minimum(first, level.shape[1] - length)
            siblings = lax.dynamic_slice(level, (group, start), (1, length))[0]
            places = start + jnp.arange(length)
            total += jnp.sum(jnp.where((places >= first) & (places < node), siblings, 0.0))
            node = quotient(node, _BRANCHES)
        return total

    return jax.vmap(one)(group, index)


def quotient(index: Array, length: int) -> Array:
    """Index // length for indices that are not negative, in one operation and in their own type."""
    return lax.div(index, jnp.asarray(length, index.dtype))


def fold_scale(weights: Weights) -> Weights:
    """The same weights with the scale that weights start with.

    Sums are made anew from the masses: kept up by single additions alone they drift away from these in single precision.
    """
    lowest = jnp.maximum(_UNIT * weights.scale[:, None] * weights.levels[0], FLOOR)
    return Weights(_tree(lowest, len(weights.levels) > 1), jnp.full_like(weights.scale, 1 / _UNIT))
