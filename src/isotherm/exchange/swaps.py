"""One swap stage: which replicas change rungs, given the pairs that the scheme allows and the rule accepts."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.exchange.rules import Pairing


class Readings(NamedTuple):
    """Energies of the replicas and their noise."""

    energies: Array  # Shape (P,), or (K, P) with energies of its own for each pair.
    covariance: Array | None = None  # Of their noise, shape (P, P) or (K, P, P); None if unknown.
    num_examples: Array | None = None  # Number of examples that it is estimated from.


class Swaps(NamedTuple):
    """The result of a stage."""

    replica: Array  # The replica on each rung, shape (P,).
    rung: Array  # The rung of each replica, shape (P,).
    accepted: Array  # Whether the rule accepts each pair, allowed or not, shape (K,).
    swapped: Array  # Whether each pair swapped, shape (K,).


def swap_at_once(
    accept: Callable[[Pairing, Array], Array],
    replica: Array,
    rung: Array,
    readings: Readings,
    temperatures: Array,
    uniform: Array,
    is_allowed: Array,
    is_forced: Array,
) -> Swaps:
    """Swap adjacent pairs, all by the energies before any swap. Allowed pairs must share no replica."""
    energies, covariance = readings.energies[replica], readings.covariance
    variance = None if covariance is None else variance_of_difference(covariance, replica[:-1], replica[1:])
    pairs = Pairing(energies[:-1], energies[1:], temperatures[:-1], temperatures[1:], variance, readings.num_examples)
    is_finite = jnp.isfinite(energies)
    are_alive = is_finite[:-1] & is_finite[1:]
    accepted = accept(pairs, uniform) & are_alive
    swapped = is_allowed & (accepted | (is_forced & are_alive))
    # up[r]: rung r swaps with r + 1; down[r]: with r - 1.
    up, down = jnp.append(swapped, False), jnp.append(jnp.zeros(1, bool), swapped)
    climb = up.astype(rung.dtype) - down.astype(rung.dtype)
    replica = jnp.where(up, jnp.roll(replica, -1), jnp.where(down, jnp.roll(replica, 1), replica))
    return Swaps(replica, rung + climb[rung], accepted, swapped)


def swap_in_turn(
    accept: Callable[[Array, Pairing, Array], Array],
    pairs: np.ndarray,
    replica: Array,
    readings: Readings,
    temperatures: Array,
    uniform: Array,
    is_allowed: Array,
) -> Swaps:
    """Swap pairs one after another, each after the swaps before it. The first argument of `accept` is the index of a pair."""
    energies, covariance, num_examples = readings
    cold, hot = (jnp.asarray(ends, jnp.int32) for ends in pairs.T)

    def attempt(pair, loop):
        replica, accepted, swapped = loop
        ends = replica[cold[pair]], replica[hot[pair]]
        energies_of_pair = energies if energies.ndim == 1 else energies[pair]
        variance = None
        if covariance is not None:
            variance = variance_of_difference(covariance if covariance.ndim == 2 else covariance[pair], *ends)
        between = temperatures[cold[pair]], temperatures[hot[pair]]
        cold_energy, hot_energy = energies_of_pair[ends[0]], energies_of_pair[ends[1]]
        one = Pairing(cold_energy, hot_energy, *between, variance, num_examples)
        is_accepted = accept(pair, one, uniform[pair])
        is_accepted &= jnp.isfinite(cold_energy) & jnp.isfinite(hot_energy)
        is_swapped = is_accepted & is_allowed[pair]
        first, second = jnp.where(is_swapped, ends[1], ends[0]), jnp.where(is_swapped, ends[0], ends[1])
        replica = replica.at[cold[pair]].set(first).at[hot[pair]].set(second)
        return replica, accepted.at[pair].set(is_accepted), swapped.at[pair].set(is_swapped)

    none = jnp.zeros(len(pairs), bool)
    replica, accepted, swapped = lax.fori_loop(0, len(pairs), attempt, (replica, none, none))
    return Swaps(replica, inverse(replica), accepted, swapped)


def variance_of_difference(covariance: Array, one: Array, other: Array) -> Array:
    """The variance of the noise of U_i - U_j for replicas i and j, from the covariance of all, shape (P, P)."""
    return covariance[one, one] + covariance[other, other] - 2.0 * covariance[one, other]


def inverse(permutation: Array) -> Array:
    """The rung of each replica, from the replica on each rung. Without a scatter, which keeps XLA from compiling one function."""
    numbers = jnp.arange(len(permutation), dtype=permutation.dtype)
    return jnp.sum(jnp.where(permutation[None] == numbers[:, None], numbers[None], 0), axis=1, dtype=permutation.dtype)
