"""Theta, the learned weights of the bins, stored so that an iteration touches a few of them, however many there are.

All three recursions of the thesis are theta <- (1 - c) theta + c * hit. The factor is kept aside as a scale, so that an
iteration adds to single bins. The scale is folded in at fixed iterations, before it can underflow. Masses are in large units: bins
that are not hit lose weight for ever, and single precision then reaches down to exp(-150) of the heaviest one.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_batching import custom_vmap

from isotherm.foundation.errors import check_real
from isotherm.foundation.schedules import Schedule, as_schedule

_BRANCHES = 32
_MOST_SLICES = 32
FLOOR = 1e-37
_UNIT = 1e28
# The scale may fall to exp of minus this between two folds: masses then stay below the largest number.
LOWEST_LOG_SCALE = 20.0
_LONGEST_PERIOD = 16_384


class ThetaHistogram(NamedTuple):
    """Theta of m bins for each of G groups of chains: theta = scale * levels[0].

    Attributes:
        levels: masses, shape (G, m), and where prefix sums are asked for, sums of 32 of them, of 1024, and so on.
        scale: shape (G,).
    """

    levels: tuple[Array, ...]
    scale: Array

    @property
    def theta(self) -> Array:
        """Theta itself, shape (G, m)."""
        return self.scale[:, None] * self.levels[0]


class LogTheta(NamedTuple):
    """Log theta, before the scale, below, at and above bins, each of shape (P,). Ends are repeated."""

    below: Array
    here: Array
    above: Array

    @property
    def steps(self) -> tuple[Array, Array]:
        """Up to the bins, and up from them."""
        return self.here - self.below, self.above - self.here


def init_histogram(masses: Array, has_sums: bool) -> ThetaHistogram:
    """Theta equal to `masses`, of shape (G, m)."""
    lowest = jnp.maximum(_UNIT * jnp.asarray(masses), FLOOR)
    return ThetaHistogram(_tree(lowest, has_sums), jnp.full(len(lowest), 1 / _UNIT, lowest.dtype))


def _tree(lowest: Array, has_sums: bool) -> tuple[Array, ...]:
    """The masses, and where they are asked for, their sums level by level."""
    levels = [lowest]
    while has_sums and levels[-1].shape[1] > _BRANCHES:
        last = levels[-1]
        padded = jnp.pad(last, ((0, 0), (0, -last.shape[1] % _BRANCHES)))
        levels.append(padded.reshape(len(last), -1, _BRANCHES).sum(axis=2))
    return tuple(levels)


def add(histogram: ThetaHistogram, group: Array, index: Array, masses: Array) -> ThetaHistogram:
    """After `masses` (before the scale) were added to bins."""
    levels = []
    for level in histogram.levels:
        levels.append(add_at(level, group, index, masses.astype(level.dtype)))
        index = quotient(index, _BRANCHES)
    return histogram._replace(levels=tuple(levels))


def log_theta_around(histogram: ThetaHistogram, group: Array, bins: Array, is_cumulative: bool) -> LogTheta:
    """Log theta around bins."""
    if is_cumulative:
        below = prefix_sums(histogram, group, bins)
        here = below + read(histogram, group, bins)
        values = [below, here, here]
    else:
        last = histogram.levels[0].shape[1] - 1
        places = jnp.maximum(bins - 1, 0), bins, jnp.minimum(bins + 1, last)
        values = [read(histogram, group, place) for place in places]
    return LogTheta(*(jnp.log(jnp.maximum(value, FLOOR)) for value in values))


def read(histogram: ThetaHistogram, group: Array, index: Array) -> Array:
    """Masses of bins, before the scale."""
    return _read(histogram.levels[0], group, index)


def log_mass(histogram: ThetaHistogram, group: Array, index: Array) -> Array:
    """Logarithms of the masses of bins, before the scale."""
    return jnp.log(jnp.maximum(read(histogram, group, index), FLOOR))


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


def prefix_sums(histogram: ThetaHistogram, group: Array, index: Array) -> Array:
    """Sums of the masses of all bins below `index`, before the scale."""

    def one(group, index):
        total = jnp.zeros((), histogram.scale.dtype)
        node = index
        for level in histogram.levels:
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


def fold_scale(histogram: ThetaHistogram) -> ThetaHistogram:
    """The same theta with the scale that histograms start with.

    Sums are made anew from the masses: kept up by single additions alone they drift away from these in single precision.
    """
    lowest = jnp.maximum(_UNIT * histogram.scale[:, None] * histogram.levels[0], FLOOR)
    return ThetaHistogram(_tree(lowest, len(histogram.levels) > 1), jnp.full_like(histogram.scale, 1 / _UNIT))


def longest_period(gain: Schedule) -> int:
    """Iterations after which the scale must be folded in, a power of two. Refuses a gain out of range."""
    counts = np.unique(np.concatenate([[0], np.geomspace(1, 1e8, 60).astype(np.int32)]))
    with jax.ensure_compile_time_eval():
        gains = np.asarray([as_schedule(gain)(count) for count in counts])
    check_real("gain", float(gains.min()), "Theta moves this fraction of the way.", above=0.0)
    largest = check_real("gain", float(gains.max()), "Lower it: theta moves this fraction of the way.", maximum=1.0)
    longest = int(np.clip(LOWEST_LOG_SCALE / -np.log1p(-min(largest, 1 - 1e-7)), 1, _LONGEST_PERIOD))
    return 1 << (longest.bit_length() - 1)
