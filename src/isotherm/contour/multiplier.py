"""The multiplier of the gradient as a function of the energy: its slopes, its bounds, and its open ends."""

import dataclasses

import jax.numpy as jnp
from jax import Array

from isotherm.contour.partition import Partition
from isotherm.contour.theta_histogram import LogTheta
from isotherm.foundation.parts import Part, Static

_ROW = 1024


@dataclasses.dataclass(frozen=True, eq=False)
class Multiplier(Part):
    """psi = 1 + zeta * temperature * slope, within bounds, constant on every bin.

    A pair of neighboring bins has the number of its upper bin; its step is log theta(upper) - log theta(lower).

    Attributes:
        partition: the bins.
        zeta: how far to flatten.
        is_forward: whether the slope of a bin is that of the pair above it, or of the pair below it.
        bounds: of psi; None leaves it free.
        goes_on: whether the top bin has a slope; in the first bin psi is 1.
        empty_step: a step of log theta above which the lower bin counts as empty: energies end there, which is no slope. None
            takes every step as one.
    """

    partition: Partition
    zeta: float
    is_forward: Static[bool]
    bounds: tuple[float, float] | None
    goes_on: Static[bool]
    empty_step: float | None = None

    def slope(self, steps: Array, bins: Array) -> Array:
        """The slope of log Psi in `bins`, from the steps of their pairs."""
        is_sloped = (bins > 0) & ((bins < self.partition.num_bins - 1) | self.goes_on)
        steps = jnp.where(self.is_lowest(steps, bins), 0.0, steps)
        return jnp.where(is_sloped, steps / self.partition.width, 0.0)

    def is_lowest(self, steps: Array, bins: Array) -> Array:
        """Whether there is nothing below `bins`: it is the first, or the one below is empty."""
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

    def log_psi(self, bins: Array, energies: Array, logs: LogTheta, slope: Array) -> Array:
        """Log Psi, without bounds and before the scale. In the open bins it is that of the nearest edge."""
        first = int(self.is_forward)
        is_lowest = self.is_lowest(logs.steps[first], bins) & ((bins < self.partition.num_bins - 1) | self.goes_on)
        at_left = jnp.where(is_lowest, logs[first + 1], logs[first])
        above = jnp.where(bins == 0, 0.0, energies - self.partition.left(bins))
        return at_left + slope * above

    def is_known(self, bins: Array) -> Array:
        """Whether Psi takes the weight of a bin somewhere; of a running sum, that of every bin."""
        if self.goes_on:
            return jnp.ones_like(bins, bool)
        return bins > 0 if self.is_forward else bins < self.partition.num_bins - 1

    def known_mass(self, masses: Array) -> Array:
        """The mass of all bins that Psi knows, shape (G,)."""
        return jnp.sum(masses[:, self._known()], axis=1)

    def heaviest(self, masses: Array) -> Array:
        """The heaviest bin that Psi knows, shape (G,); of a running sum the first, where it is that bin's mass."""
        if self.goes_on:
            return jnp.zeros(len(masses), jnp.int32)
        return _place_of_largest(masses[:, self._known()]) + int(self.is_forward)

    def _known(self) -> slice:
        """The places of the bins that Psi knows."""
        return slice(None) if self.goes_on else slice(1, None) if self.is_forward else slice(None, -1)

    def pair(self, bins: Array) -> Array:
        """The pair that gives a bin its slope."""
        return bins + 1 if self.is_forward else bins

    def of_pair(self, pairs: Array) -> Array:
        """The bin whose slope a pair gives."""
        return pairs - 1 if self.is_forward else pairs


def _place_of_largest(masses: Array) -> Array:
    """Where each row, of shape (G, m) with no negative numbers, is largest. XLA looks for maxima faster than for places."""
    rows = jnp.pad(masses, ((0, 0), (0, -masses.shape[1] % _ROW))).reshape(len(masses), -1, _ROW)
    row = jnp.argmax(jnp.max(rows, axis=2), axis=1)
    within = jnp.argmax(jnp.take_along_axis(rows, row[:, None, None], axis=1)[:, 0], axis=1)
    return (row * _ROW + within).astype(jnp.int32)
