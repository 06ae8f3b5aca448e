"""The multiplier of the gradient as a function of the energy, and its integral, from which log weights are made.

If psi is bounded, the integral is a sum over bins. Sums over blocks of bins, over blocks of blocks, and so on are kept up to date:
a weight or an iteration touches a few of them, however many bins there are.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from isotherm.contour.partition import Partition
from isotherm.contour.sum_tree import (
    BRANCHES,
    Levels,
    add_to_levels,
    levels_of,
    prefix_sums,
    quotient,
    sums_of_branches,
)
from isotherm.contour.theta_histogram import FLOOR, LogTheta
from isotherm.foundation.parts import Part, Static

_ROW = 1024


@dataclasses.dataclass(frozen=True, eq=False)
class Multiplier(Part):
    """psi = 1 + zeta * temperature * slope, within bounds, constant on every bin.

    A pair of neighboring bins has the index of its upper bin; its step is log theta(upper) - log theta(lower).
    """

    partition: Partition  # The bins.
    zeta: float  # How far to flatten.
    is_forward: Static[bool]  # Whether the slope of a bin is that of the pair above it, or of the pair below it.
    bounds: tuple[float, float] | None  # Of psi; None leaves it free.
    has_top_slope: Static[bool]  # Whether the top bin has a slope; in the first bin psi is 1.
    # A step above which the lower bin counts as empty, and the upper one has no slope; None takes every step as a slope.
    empty_step: float | None = None

    def slope(self, steps: Array, bins: Array) -> Array:
        """The slope of log Psi in `bins`, from the steps of their pairs."""
        is_sloped = (bins > 0) & ((bins < self.partition.num_bins - 1) | self.has_top_slope)
        steps = jnp.where(self._is_lowest(steps, bins), 0.0, steps)
        return jnp.where(is_sloped, steps / self.partition.width, 0.0)

    def _is_lowest(self, steps: Array, bins: Array) -> Array:
        """Whether there is no bin below, or an empty one."""
        is_first = bins <= 0
        return is_first if self.empty_step is None or self.is_forward else is_first | (steps > self.empty_step)

    def free(self, slope: Array, temperature: Array) -> Array:
        """Psi before its bounds."""
        return 1.0 + self.zeta * temperature * slope

    def bounded(self, psi: Array) -> Array:
        """Psi within its bounds."""
        return psi if self.bounds is None else jnp.clip(psi, *self.bounds)

    def excess(self, steps: Array, bins: Array, temperature: Array) -> Array:
        """Psi - 1 in `bins`, from the steps of their pairs."""
        return self.bounded(self.free(self.slope(steps, bins), temperature)) - 1.0

    def excess_of_all(self, theta: Array, temperature: Array) -> Array:
        """Psi - 1 in all bins, for theta of shape (G, m)."""
        logs = jnp.log(jnp.maximum(theta, FLOOR))
        padded = jnp.pad(logs, ((0, 0), (0, 1)), "edge") if self.is_forward else jnp.pad(logs, ((0, 0), (1, 0)))
        return self.excess(jnp.diff(padded, axis=1), jnp.arange(theta.shape[1])[None], temperature)

    def log_psi(self, bins: Array, energies: Array, logs: LogTheta, slope: Array) -> Array:
        """Log Psi, without bounds and before the scale. In the open bins it is that of the nearest edge."""
        first = int(self.is_forward)
        is_lowest = self._is_lowest(logs.steps[first], bins) & (
            (bins < self.partition.num_bins - 1) | self.has_top_slope
        )
        at_left = jnp.where(is_lowest, logs[first + 1], logs[first])
        above = jnp.where(bins == 0, 0.0, energies - self.partition.left(bins))
        return at_left + slope * above

    def is_covered(self, bins: Array) -> Array:
        """Whether Psi equals the weight of a bin somewhere, and so covers it; a running sum covers every bin."""
        if self.has_top_slope:
            return jnp.ones_like(bins, bool)
        return bins > 0 if self.is_forward else bins < self.partition.num_bins - 1

    def covered_mass(self, masses: Array) -> Array:
        """The mass of all covered bins, shape (G,)."""
        return jnp.sum(masses[:, self._covered()], axis=1)

    def heaviest(self, masses: Array) -> Array:
        """The heaviest covered bin, shape (G,); the first for a running sum, which equals that bin's mass there."""
        if self.has_top_slope:
            return jnp.zeros(len(masses), jnp.int32)
        return _argmax(masses[:, self._covered()]) + int(self.is_forward)

    def _covered(self) -> slice:
        return slice(None) if self.has_top_slope else slice(1, None) if self.is_forward else slice(None, -1)


class Sums(NamedTuple):
    """Sums of psi - 1 over blocks of bins, at one temperature."""

    blocks: Levels  # Of 32 bins, shape (G, number of blocks), and their sums in turn.
    temperature: Array  # Of these sums; 0 if there are none.


def init_sums(multiplier: Multiplier, theta: Array, temperature: Array) -> Sums:
    """Sums for theta of shape (G, m)."""
    temperature = jnp.where(jnp.isfinite(temperature), temperature, 0.0)
    return Sums(levels_of(sums_of_branches(multiplier.excess_of_all(theta, temperature))), temperature)


def update_sums(
    multiplier: Multiplier,
    sums: Sums,
    group: Array,
    bins: Array,
    old: tuple[Array, Array],
    new: tuple[Array, Array],
    is_shared: bool,
) -> Sums:
    """Sums after the steps from below `bins` and to above them changed from `old` to `new`."""
    blocks, last = sums.blocks, multiplier.partition.num_bins - 1
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        pairs = bins + number
        sloped = pairs - int(multiplier.is_forward)
        excess = [multiplier.excess(steps, sloped, sums.temperature) for steps in (after, before)]
        change = excess[0] - excess[1]
        if is_shared and len(bins) > 1:
            # Chains in one bin, or in two neighbors, report the same change.
            sharing = sum(jnp.sum(pairs[:, None] == bins[None] + other, axis=1) for other in range(2))
            change /= jnp.asarray(sharing, change.dtype)
        blocks = add_to_levels(blocks, group, quotient(jnp.clip(sloped, 0, last), BRANCHES), change)
    return sums._replace(blocks=blocks)


def integral_of_excess(
    multiplier: Multiplier, theta: Array, sums: Sums | None, group: Array, bins: Array, above: Array, temperature: Array
) -> Array:
    """The integral of (psi - 1) / tau from the first edge to `above` the left edge of `bins`."""
    if sums is None:
        excess = multiplier.excess_of_all(theta, temperature)
        before = (jnp.cumsum(excess, axis=1) - excess)[group, bins]
    else:
        before = _sum_below(multiplier, theta, sums, group, bins, temperature)
    here = multiplier.excess(_steps(multiplier, theta, group, bins), bins, temperature)
    return (before * multiplier.partition.width + jnp.where(bins > 0, here * above, 0.0)) / temperature


def _sum_below(
    multiplier: Multiplier, theta: Array, sums: Sums, group: Array, bins: Array, temperature: Array
) -> Array:
    """The sum of psi - 1 over the bins below `bins`: whole blocks by the sums, the last one bin by bin.

    Sums of another temperature are replaced by a loop over all blocks, which is empty otherwise.
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


def _steps(multiplier: Multiplier, theta: Array, group: Array, bins: Array) -> Array:
    """The steps of the pairs that give `bins` their slopes."""
    upper = jnp.clip(bins + int(multiplier.is_forward), 1, theta.shape[1] - 1)
    logs = [jnp.log(jnp.maximum(theta[group, place], FLOOR)) for place in (upper, upper - 1)]
    return logs[0] - logs[1]


def _argmax(masses: Array) -> Array:
    """The place of the largest number of each row, shape (G, m), none negative. XLA finds maxima faster than places."""
    rows = jnp.pad(masses, ((0, 0), (0, -masses.shape[1] % _ROW))).reshape(len(masses), -1, _ROW)
    row = jnp.argmax(jnp.max(rows, axis=2), axis=1)
    within = jnp.argmax(jnp.take_along_axis(rows, row[:, None, None], axis=1)[:, 0], axis=1)
    return (row * _ROW + within).astype(jnp.int32)
