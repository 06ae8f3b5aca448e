"""Partitions of the energy axis into bins of equal width with open ends."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.foundation.parts import Part, Static

# Bins below the lowest energy of a pilot, and at most above it.
NUM_BELOW, _MAX_ABOVE = 200, 800


@dataclasses.dataclass(frozen=True, eq=False)
class Partition(Part):
    """m bins: (-inf, low], (low, low + width], ..., (low + (m - 2) width, inf).

    Chains must reach the first bin: `low` should lie above their lowest energy. An empty first bin loses all its weight, and the
    multiplier above it grows up to its bound.

    Attributes:
        low: the first edge.
        width: of the inner bins.
        num_bins: m.

    Example:
        >>> Partition(0.0, 0.5, 5).index(jnp.array([-3.0, 0.0, 0.1, 0.6, 99.0])).tolist()
        [0, 0, 1, 2, 4]
    """

    low: float
    width: float
    num_bins: Static[int]

    def __post_init__(self):
        check_real("low", self.low, "Give the first edge, above the lowest energy.")
        check_real("width", self.width, "Give the width of a bin in units of energy.", above=0.0)
        check_integer("num_bins", self.num_bins, 3, "Two bins are open; a partition needs one between them.")

    @property
    def edges(self) -> np.ndarray:
        """The m - 1 edges between bins."""
        return self.low + self.width * np.arange(self.num_bins - 1)

    def index(self, energies: Array) -> Array:
        """The bin of each energy; the top bin for NaN."""
        place = jnp.ceil((energies - self.low) / self.width)
        bounded = jnp.clip(jnp.nan_to_num(place, nan=self.num_bins - 1), 0, self.num_bins - 1)
        return bounded.astype(jnp.int32)

    def left(self, index: Array) -> Array:
        """The left edge of each bin; for the first, which is open, its right edge minus the width."""
        return self.low + self.width * (index - 1).astype(jnp.result_type(self.width))


def uniform_partition(low: float, high: float, num_bins: int) -> Partition:
    """A partition whose inner bins cover (low, high).

    Example:
        >>> uniform_partition(0.0, 4.0, 10).width
        0.5
    """
    check_integer("num_bins", num_bins, 3, "Two bins are open; a partition needs one between them.")
    for end in (low, high):
        check_real("partition", end, "Give (low, high, num_bins) with ends in units of the energy.")
    if not low < high:
        refuse("partition", "(low, high, num_bins) with low below high", repr((low, high)), "Swap the ends.")
    return Partition(low, (high - low) / (num_bins - 2), num_bins)


class FoundPartition(NamedTuple):
    """The result of pilot runs for a contour.

    Attributes:
        partition: the bins.
        noise: the standard deviation of energies at one position.
        bins_met: the bins of the energies at the sampler's temperature, for a start of theta.
    """

    partition: Partition
    noise: float
    bins_met: np.ndarray

    def as_json(self) -> dict[str, Any]:
        counts = np.bincount(self.bins_met, minlength=self.partition.num_bins).tolist()
        return {**dataclasses.asdict(self.partition), "noise": self.noise, "counts": counts}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "FoundPartition":
        bins = Partition(*(stored[name] for name in ("low", "width", "num_bins")))
        return cls(bins, stored["noise"], np.repeat(np.arange(bins.num_bins), stored["counts"]))


@dataclasses.dataclass(frozen=True)
class PartitionSearch:
    """A partition found, or checked, by short runs of the plain sampler.

    Attributes:
        num_steps: iterations of the pilot, once at the sampler's temperature and once at ten times that. While energies at the
            sampler's temperature drift, it is repeated with twice the iterations, up to 8 times `num_steps`.
        partition: a partition to check, refused if no energy of the pilot falls between its ends; None finds one.
        width: of a bin, in standard deviations of the energies at the sampler's temperature.
        num_below: bins below the lowest energy of the pilot; 0 puts a tenth of the energies into the first bin.
        offset: subtracted from energies.
    """

    num_steps: int = 2_000
    partition: Partition | None = None
    width: float = 0.5
    num_below: int = NUM_BELOW
    offset: float = 0.0
    name = "partition"

    def __post_init__(self):
        check_integer("num_steps", self.num_steps, 100, "A pilot needs some iterations to see energies.")
        check_real("width", self.width, "Give standard deviations of the energies, such as 0.5.", above=0.0)

    def example(self, plain: Any) -> FoundPartition:
        """A partition to check options on."""
        return FoundPartition(self.partition or Partition(0.0, 1.0, 10), 0.0, np.zeros(1, int))

    def fit(self, cold: np.ndarray, hot: np.ndarray, noise: float) -> FoundPartition:
        """A partition for energies like `cold`, up to those of `hot`, with bins no narrower than the noise."""
        cold, hot = cold - self.offset, hot - self.offset
        every = np.concatenate([cold, hot])
        if every.size == 0:
            refuse("partition", "found by a pilot", "no finite energy in it", "Lower `step_size`, or use a `box`.")
        bins = self.partition
        if bins is None:
            bins = self._fitted(cold[len(cold) // 2 :], float(np.quantile(every, 0.999)), noise)
        elif not np.any((every > bins.edges[0]) & (every <= bins.edges[-1])):
            remedy = f"The pilot saw energies from {every.min():.6g} to {every.max():.6g}: choose a partition of these."
            got = f"({bins.edges[0]:.6g}, {bins.edges[-1]:.6g}), never entered"
            refuse("partition", "where energies are", got, remedy)
        return FoundPartition(bins, noise, np.asarray(bins.index(jnp.asarray(cold))))

    def _fitted(self, settled: np.ndarray, highest: float, noise: float) -> Partition:
        """Bins from far below the settled energies, in case chains go further down, to the highest energy."""
        width = max(noise, self.width * float(settled.std()), 1e-6 * max(abs(highest), 1.0))
        low = (
            float(settled.min()) - (self.num_below - 1) * width if self.num_below else float(np.quantile(settled, 0.1))
        )
        num_above = int(np.clip(np.ceil((highest - low) / width), 4, self.num_below + _MAX_ABOVE))
        return Partition(low, width, num_above + 2)


def as_partition(given: Any) -> Partition | PartitionSearch:
    """A partition from itself or from (low, high, num_bins); "auto" and `PartitionSearch` are searches."""
    if isinstance(given, Partition):
        return given
    if isinstance(given, str) and given == "auto":
        return PartitionSearch()
    if isinstance(given, PartitionSearch):
        inner = None if given.partition is None else as_partition(given.partition)
        return dataclasses.replace(given, partition=inner if isinstance(inner, Partition) else None)
    if isinstance(given, tuple) and len(given) == 3:
        return uniform_partition(*given)
    rule = 'a Partition, (low, high, num_bins), a PartitionSearch, or "auto"'
    return refuse("partition", rule, repr(given), "Give one of them.")
