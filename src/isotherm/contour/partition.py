"""Partitions of the energy axis into bins of equal width with open ends."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.errors import check_integer, check_real, refuse


@dataclasses.dataclass(frozen=True)
class Partition:
    """m bins: (-inf, low], (low, low + width], ..., (low + (m - 2) width, inf).

    The first bin must be reachable: `low` should lie above the lowest energy that chains meet. An empty first bin loses all
    its weight, and the multiplier above it grows up to its bound.

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
    num_bins: int

    def __post_init__(self):
        check_real("low", self.low, "Give the first edge, above the lowest energy.")
        check_real("width", self.width, "Give the width of a bin in units of energy.", above=0.0)
        check_integer("num_bins", self.num_bins, 3, "Two bins are open; a partition needs one between them.")

    @property
    def edges(self) -> np.ndarray:
        """The m - 1 edges between bins."""
        return self.low + self.width * np.arange(self.num_bins - 1)

    def index(self, energies: Array) -> Array:
        """The bin of each energy; the top bin where it is not a number."""
        place = jnp.ceil((energies - self.low) / self.width)
        bounded = jnp.clip(jnp.nan_to_num(place, nan=self.num_bins - 1), 0, self.num_bins - 1)
        return bounded.astype(jnp.int32)

    def left(self, index: Array) -> Array:
        """The left edge of each bin; of the first, whose left end is open, its right edge less the width."""
        return self.low + self.width * (index - 1)


def uniform_partition(low: float, high: float, num_bins: int) -> Partition:
    """A partition whose inner bins cover (low, high).

    Example:
        >>> uniform_partition(0.0, 4.0, 10).width
        0.5
    """
    check_integer("num_bins", num_bins, 3, "Two bins are open; a partition needs one between them.")
    if not low < high:
        refuse("partition", "(low, high, num_bins) with low below high", repr((low, high)), "Swap the ends.")
    return Partition(low, (high - low) / (num_bins - 2), num_bins)


def as_partition(given: Any) -> Partition:
    """A partition from itself, or from (low, high, num_bins)."""
    if isinstance(given, Partition):
        return given
    if isinstance(given, tuple) and len(given) == 3:
        return uniform_partition(*given)
    return refuse("partition", "a Partition or (low, high, num_bins)", repr(given), "Give one of them.")
