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

from isotherm.contour.sum_tree import add_to_levels, levels_of, prefix_sums
from isotherm.foundation.errors import check_real
from isotherm.foundation.schedules import Schedule, values_at

FLOOR = 1e-37
_UNIT = 1e28
# The scale may fall to exp of minus this between two folds: masses then stay below the largest number.
LOWEST_LOG_SCALE = 20.0
_MAX_PERIOD = 16_384
# Iterations from which another period may hold; multiples of all periods.
_LATER = (1 << 14, 1 << 17)


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
    return ThetaHistogram(_levels(lowest, has_sums), jnp.full(len(lowest), 1 / _UNIT, lowest.dtype))


def add(histogram: ThetaHistogram, group: Array, index: Array, masses: Array) -> ThetaHistogram:
    """After `masses` (before the scale) were added to bins."""
    return histogram._replace(levels=add_to_levels(histogram.levels, group, index, masses))


def log_theta_around(histogram: ThetaHistogram, group: Array, bins: Array, is_cumulative: bool) -> LogTheta:
    """Log theta around bins."""
    if is_cumulative:
        below = prefix_sums(histogram.levels, group, bins)
        here = below + masses_at(histogram, group, bins)
        values = [below, here, here]
    else:
        last = histogram.levels[0].shape[1] - 1
        places = jnp.maximum(bins - 1, 0), bins, jnp.minimum(bins + 1, last)
        values = [masses_at(histogram, group, place) for place in places]
    return LogTheta(*(jnp.log(jnp.maximum(value, FLOOR)) for value in values))


def masses_at(histogram: ThetaHistogram, group: Array, index: Array) -> Array:
    """Masses of bins, before the scale."""
    return _read(histogram.levels[0], group, index)


def log_mass(histogram: ThetaHistogram, group: Array, index: Array) -> Array:
    """Logarithms of the masses of bins, before the scale."""
    return jnp.log(jnp.maximum(masses_at(histogram, group, index), FLOOR))


@custom_vmap
def _read(level: Array, group: Array, index: Array) -> Array:
    if len(index) > 1:
        return level[group, index]
    return lax.dynamic_slice(level, (group[0], index[0]), (1, 1))[0]


@_read.def_vmap
def _(_size: int, is_batched: Any, *arguments: Array) -> tuple[Array, bool]:
    axes = [0 if batched else None for batched in is_batched]
    return jax.vmap(lambda level, group, index: level[group, index], axes)(*arguments), True


def fold_scale(histogram: ThetaHistogram) -> ThetaHistogram:
    """The same theta with the scale that histograms start with.

    Sums are made anew from the masses: kept up by single additions alone they drift away from these in single precision.
    """
    lowest = jnp.maximum(_UNIT * histogram.scale[:, None] * histogram.levels[0], FLOOR)
    return ThetaHistogram(_levels(lowest, len(histogram.levels) > 1), jnp.full_like(histogram.scale, 1 / _UNIT))


def _levels(lowest: Array, has_sums: bool) -> tuple[Array, ...]:
    return levels_of(lowest) if has_sums else (lowest,)


def fold_times(gain: Schedule) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Iterations after which the scale must be folded in, a power of two, at first and from later iterations on.

    A fold touches every bin, and a gain that falls lets it wait. Refuses a gain out of range.
    """
    counts = np.unique(np.concatenate([[0], np.geomspace(1, 1e8, 60), _LATER]).astype(np.int32))
    with jax.ensure_compile_time_eval():
        gains = values_at(gain, counts)
    check_real("gain", float(gains.min()), "Theta moves this fraction of the way.", above=0.0)
    check_real("gain", float(gains.max()), "Lower it: theta moves this fraction of the way.", maximum=1.0)
    periods = {first: _period(float(gains[counts >= first].max())) for first in (0, *_LATER)}
    return periods.pop(0), tuple(periods.items())


def _period(largest: float) -> int:
    longest = int(np.clip(LOWEST_LOG_SCALE / -np.log1p(-min(largest, 1 - 1e-7)), 1, _MAX_PERIOD))
    return 1 << (longest.bit_length() - 1)
