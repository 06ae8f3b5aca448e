"""Theta, the learned weights of the bins, stored so that an iteration touches a few bins, however many there are.

All three recursions of the thesis are theta <- (1 - c) theta + c * hit. The factor 1 - c is stored apart as a scale, so that an
iteration adds to single bins, and folded in at fixed iterations before it can underflow. Masses are in large units: a bin without
hits loses mass in every iteration, and single precision then reaches down to exp(-150) of the heaviest bin.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_batching import custom_vmap

from isotherm.contour.sum_tree import add_to_levels, levels_of, prefix_sums
from isotherm.foundation.errors import check_choice, check_real, refuse, short
from isotherm.foundation.schedules import Schedule, values_at

FLOOR = 1e-37
_UNIT = 1e28
# The scale may fall to exp of minus this between two folds: masses then stay below the largest number.
LOWEST_LOG_SCALE = 20.0
_MAX_PERIOD = 16_384
# Iterations from which a longer period may hold; multiples of all periods.
_LATER = (1 << 14, 1 << 17)


class ThetaHistogram(NamedTuple):
    """Theta of m bins for each of G groups of chains: theta = scale * levels[0]."""

    levels: tuple[
        Array, ...
    ]  # Masses, shape (G, m); if prefix sums are needed, also sums of 32 masses, of 1024, and so on.
    scale: Array  # Shape (G,).

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
        """The step from the bin below, and the step to the bin above."""
        return self.here - self.below, self.above - self.here


def init_histogram(masses: Array, has_sums: bool) -> ThetaHistogram:
    """Theta equal to `masses`, of shape (G, m)."""
    return _in_units(_UNIT * jnp.asarray(masses), has_sums)


def _in_units(masses: Array, has_sums: bool) -> ThetaHistogram:
    lowest = jnp.maximum(masses, FLOOR)
    levels = levels_of(lowest) if has_sums else (lowest,)
    return ThetaHistogram(levels, jnp.full(len(lowest), 1 / _UNIT, lowest.dtype))


def add(histogram: ThetaHistogram, group: Array, index: Array, masses: Array) -> ThetaHistogram:
    """Add `masses` (before the scale) to bins."""
    return histogram._replace(levels=add_to_levels(histogram.levels, group, index, masses))


def log_theta_around(histogram: ThetaHistogram, group: Array, bins: Array, is_cumulative: bool) -> LogTheta:
    """Log theta around bins."""
    if is_cumulative:
        below = prefix_sums(histogram.levels, group, bins)
        here = below + _read(histogram.levels[0], group, bins)
        values = [below, here, here]
    else:
        last = histogram.levels[0].shape[1] - 1
        places = jnp.maximum(bins - 1, 0), bins, jnp.minimum(bins + 1, last)
        values = [_read(histogram.levels[0], group, place) for place in places]
    return LogTheta(*(jnp.log(jnp.maximum(value, FLOOR)) for value in values))


def log_mass(histogram: ThetaHistogram, group: Array, index: Array) -> Array:
    """Logarithms of the masses of bins, before the scale."""
    return jnp.log(jnp.maximum(_read(histogram.levels[0], group, index), FLOOR))


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
    """The same theta with the scale of a new histogram.

    Sums are recomputed from the masses, since single additions drift in single precision.
    """
    return _in_units(_UNIT * histogram.scale[:, None] * histogram.levels[0], len(histogram.levels) > 1)


def fold_times(gain: Schedule) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Iterations between two folds, a power of two: from iteration 0, and from later iterations on.

    A fold touches every bin; it is needed less often when the gain has fallen. Refuses a gain out of range.
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


def check_start(name: str, given: Any, num_bins: int) -> Any:
    """The name of a start of theta, or its values as an array; refuse anything else."""
    if isinstance(given, str):
        return check_choice(name, given, ("uniform", "decreasing", "flat"))
    try:
        theta = np.asarray(given, float)
    except (TypeError, ValueError):
        refuse(name, "positive numbers, one for every bin", short(given), "Give a value for every bin.")
    if theta.shape != (num_bins,) or not np.all(theta > 0) or not np.all(np.isfinite(theta)):
        refuse(name, f"{num_bins} positive numbers", f"{theta.shape}", "Give a value for every bin.")
    return theta


def starting_masses(start: Any, num_bins: int, is_cumulative: bool) -> Any:
    """The masses of the bins, shape (m,): theta itself, or its increments for a running sum.

    `start` is "uniform", "decreasing" (linearly), "flat" (0.1 everywhere for a running sum), or theta.
    """
    if not isinstance(start, str):
        return jnp.diff(start, prepend=0.0) if is_cumulative else start
    if start == "flat" and is_cumulative:
        return np.concatenate([[0.1], np.zeros(num_bins - 1)])
    falling = np.arange(num_bins, 0, -1.0)
    return falling / falling.sum() if start == "decreasing" else np.full(num_bins, 1 / num_bins)


def masses_of(bins: np.ndarray, num_bins: int, is_cumulative: bool) -> np.ndarray:
    """Theta from the bins that a pilot visited; no bin is empty."""
    counts = np.bincount(bins, minlength=num_bins) / max(len(bins), 1) + 1e-4
    theta = counts / counts.sum()
    return np.cumsum(theta) if is_cumulative else theta
