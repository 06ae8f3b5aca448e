"""Counts of the round trips of replicas."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

# Bits of `RoundTrips.seen`: a strict trip left the bottom, or reached the top; the thesis' trip visited the bottom, or the top.
_ON_THE_WAY, _AT_THE_TOP, _BOTTOM, _TOP = 1, 2, 4, 8


class RoundTrips(NamedTuple):
    """Round trips of P replicas, in few arrays, since they are updated in every iteration."""

    start: Array  # The rung on which each replica started.
    seen: Array  # Ends visited since the last trip, as bits.
    counts: Array  # Strict trips and the thesis' trips, shape (2, P).

    @property
    def num_strict(self) -> Array:
        """Trips from the bottom to the top and back."""
        return self.counts[0]

    @property
    def num_thesis(self) -> Array:
        """Returns to the start after visits of both ends, as the thesis' code counts."""
        return self.counts[1]


def init_round_trips(rung: Array) -> RoundTrips:
    """The counters before the first swap, for replicas on `rung`."""
    return count_round_trips(RoundTrips(rung, jnp.zeros_like(rung), jnp.zeros((2, len(rung)), jnp.int32)), rung)


def count_round_trips(trips: RoundTrips, rung: Array) -> RoundTrips:
    """The counters after the replicas have reached `rung`."""
    at_bottom, at_top = rung == 0, rung == rung.shape[0] - 1
    is_back = at_bottom & (trips.seen & _AT_THE_TOP > 0)
    climbs = jnp.where(at_top & (trips.seen & _ON_THE_WAY > 0), _ON_THE_WAY | _AT_THE_TOP, trips.seen & 3)
    strict = jnp.where(at_bottom, _ON_THE_WAY, climbs)
    ends = (trips.seen & (_BOTTOM | _TOP)) | jnp.where(at_bottom, _BOTTOM, 0) | jnp.where(at_top, _TOP, 0)
    is_home = (ends == _BOTTOM | _TOP) & (rung == trips.start)
    counts = trips.counts + jnp.stack([is_back, is_home]).astype(trips.counts.dtype)
    return RoundTrips(trips.start, strict | jnp.where(is_home, 0, ends), counts)
