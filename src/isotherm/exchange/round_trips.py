"""Counting how often replicas travel the ladder."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class RoundTrips(NamedTuple):
    """What is known of the travels of P replicas.

    Attributes:
        phase: 0 before the bottom was reached, 1 after the bottom, 2 after the bottom and then the top.
        num_strict: trips from the bottom to the top and back.
        start: the rung that each replica started on.
        has_bottom: whether the bottom was visited since the last trip in the thesis' sense.
        has_top: likewise for the top.
        num_thesis: returns to the start after both ends were visited, as the thesis' code counts.
    """

    phase: Array
    num_strict: Array
    start: Array
    has_bottom: Array
    has_top: Array
    num_thesis: Array


def init_round_trips(rung: Array) -> RoundTrips:
    """The counters before the first swap, for replicas on `rung`."""
    nothing = jnp.zeros(rung.shape, jnp.int32)
    false = jnp.zeros(rung.shape, bool)
    start = RoundTrips(nothing, nothing, rung, false, false, nothing)
    return count_round_trips(start, rung)


def count_round_trips(trips: RoundTrips, rung: Array) -> RoundTrips:
    """The counters after the replicas have reached `rung`."""
    at_bottom, at_top = rung == 0, rung == rung.shape[0] - 1
    is_back = at_bottom & (trips.phase == 2)
    phase = jnp.where(at_bottom, 1, jnp.where(at_top & (trips.phase == 1), 2, trips.phase))
    has_bottom, has_top = trips.has_bottom | at_bottom, trips.has_top | at_top
    is_home = has_bottom & has_top & (rung == trips.start)
    return RoundTrips(
        phase,
        trips.num_strict + is_back,
        trips.start,
        has_bottom & ~is_home,
        has_top & ~is_home,
        trips.num_thesis + is_home,
    )
