"""What is kept of the iterations: records of some, and milestones, which see all.

A chunk of iterations writes positions and energies into a trace. Milestones and records are read from it once per chunk, in one
vectorized pass, not by many small operations in every iteration. "Lanes" are (P,) chains, or (R, P) runs and chains.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.coupling import Observed


class Trace(NamedTuple):
    """A chunk of L iterations; leaves have shape (L, *lanes, ...)."""

    position: Any  # None in segments, which record it from the state; `model_state` likewise.
    model_state: Any
    energy: Array
    log_weight: Any  # None if draws have no weights, or if only records are weighed.
    observed: Observed

    def scalars(self, log_weights: Any) -> tuple[Array, Any, dict[str, Array]]:
        """Energies, log weights and observations as a record holds them."""
        return *choose_chains((self.energy, log_weights), self.observed.recorded), self.observed.values


class Records(NamedTuple):
    """Records; leaves have shape (max_records, *lanes, ...)."""

    draws: Any
    model_state: Any
    energies: Array
    log_weights: Any  # None if all are zero.
    observed: dict[str, Array]


class Milestones(NamedTuple):
    """What every iteration updates, whatever the thinning. Arrays have the shape of lanes; -1 is never."""

    best_energy: Array
    best_iteration: Array
    best_position: Any  # () if it is not tracked.
    first_hit: Array  # The first iteration whose energy reached the target.
    diverged_at: Array  # The first iteration whose energy was not finite.

    def after(self, energy: Array, position: Any, first: Array, count: Array | int, target: Array) -> "Milestones":
        """Milestones after iterations from `first` on, the first `count` rows of energies (L, *lanes)."""
        lanes = energy.ndim - 1
        is_valid = (jnp.arange(energy.shape[0]) < count).reshape(-1, *(1,) * lanes)
        is_finite = jnp.isfinite(energy)
        considered = jnp.where(is_valid & is_finite, energy, jnp.inf)
        where = jnp.argmin(considered, axis=0).astype(jnp.int32)
        lowest = jnp.min(considered, axis=0)
        is_better = lowest < self.best_energy

        def best(kept, trace):
            index = where.reshape(1, *where.shape, *(1,) * (trace.ndim - 1 - lanes))
            chosen = jnp.take_along_axis(trace, index, axis=0)[0]
            return jnp.where(is_better.reshape(is_better.shape + (1,) * (kept.ndim - lanes)), chosen, kept)

        def first_time(known, happened):
            index = jnp.argmax(happened, axis=0).astype(jnp.int32)
            return jnp.where((known < 0) & jnp.any(happened, axis=0), first + index, known)

        has_position = len(jax.tree.leaves(self.best_position)) > 0
        return Milestones(
            jnp.where(is_better, lowest, self.best_energy),
            jnp.where(is_better, first + where, self.best_iteration),
            jax.tree.map(best, self.best_position, position) if has_position else self.best_position,
            first_time(self.first_hit, considered <= target),
            first_time(self.diverged_at, is_valid & ~is_finite),
        )


def init_milestones(lanes: tuple[int, ...], dtype: Any, position: Any, tracks_best: bool) -> Milestones:
    """Milestones before the first iteration."""
    never = jnp.full(lanes, -1, jnp.int32)
    return Milestones(jnp.full(lanes, jnp.inf, dtype), never, position if tracks_best else (), never, never)


def choose_chains(tree: Any, recorded: Array | None) -> Any:
    """Leaves (..., P, *rest) restricted to the chains `recorded` of shape (..., Q); None keeps all."""
    if recorded is None:
        return tree

    def choose(leaf):
        index = recorded.reshape(recorded.shape + (1,) * (leaf.ndim - recorded.ndim))
        return jnp.take_along_axis(leaf, index, axis=recorded.ndim - 1)

    return jax.tree.map(choose, tree)


def write_rows(buffer: Any, rows: Any, start: Array) -> Any:
    """`buffer` with `rows` from `start` on, in place. Later records overwrite rows past the last one."""
    return jax.tree.map(lambda b, r: lax.dynamic_update_slice_in_dim(b, r.astype(b.dtype), start, 0), buffer, rows)


def write_row(buffer: Any, row: Any, place: Array) -> Any:
    """`buffer` with `row` at `place`."""
    return write_rows(buffer, jax.tree.map(lambda leaf: leaf[None], row), place)


def write_if(buffer: Any, row: Any, place: Array, is_due: Array) -> Any:
    """`buffer` with `row` at `place` if `is_due`. A loop of at most one turn never copies the buffer, as `cond` may."""
    return lax.fori_loop(0, is_due.astype(jnp.int32), lambda _, kept: write_row(kept, row, place), buffer)


def zeros(example: Any, length: int) -> Any:
    """Buffers for `length` rows like those of `example`."""
    return jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), example)


def slices(buffer: Any, begin: Any, length: int) -> Any:
    """`length` rows of `buffer` from `begin` on."""
    return jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, begin, length, 0), buffer)


def row_at(buffer: Any, place: Array) -> Any:
    """The row of `buffer` at `place`."""
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, place, 0, keepdims=False), buffer)
