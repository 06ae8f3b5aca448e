"""What is kept of the iterations: records for the run, and milestones that see every iteration.

Inside a chunk of iterations, positions and energies go into a trace; best energies, first hits, divergences and records are
read from it once per chunk, vectorized, rather than with many small operations in every iteration. In what follows, "lanes" are
(P,) chains, or (R, P) runs and chains.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.coupling import Observed


class Trace(NamedTuple):
    """What a chunk of L iterations saw; leaves have shape (L, *lanes, ...). What need not be written is None.

    Attributes:
        position: None in chunks of one, where it is written from the state.
        model_state: likewise.
        energy: of each chain.
        log_weight: of each chain; None where draws are not weighted, or only those that are recorded.
        observed: what the coupling wants recorded.
    """

    position: Any
    model_state: Any
    energy: Array
    log_weight: Any
    observed: Observed


class Records(NamedTuple):
    """Records; leaves have shape (max_records, *lanes, ...). No log weights where all are zero."""

    draws: Any
    model_state: Any
    energies: Array
    log_weights: Any
    observed: dict[str, Array]


class Milestones(NamedTuple):
    """What is known from every iteration, thinning or not. Shapes are lanes; -1 stands for never.

    Attributes:
        best_energy: the lowest energy seen.
        best_iteration: when.
        best_position: where, or () when positions are not followed.
        first_hit: the first iteration whose energy reached the target.
        diverged_at: the first iteration whose energy was not finite.
    """

    best_energy: Array
    best_iteration: Array
    best_position: Any
    first_hit: Array
    diverged_at: Array


def init_milestones(lanes: tuple[int, ...], dtype: Any, position: Any, tracks_best: bool) -> Milestones:
    """Before the first iteration."""
    never = jnp.full(lanes, -1, jnp.int32)
    return Milestones(jnp.full(lanes, jnp.inf, dtype), never, position if tracks_best else (), never, never)


def pass_milestones(
    known: Milestones, energy: Array, position: Any, first: Array, count: Array | int, target: Array
) -> Milestones:
    """After a chunk with energies (L, *lanes), of which the first `count` belong to the iterations from `first` on."""
    lanes = energy.ndim - 1
    is_valid = (jnp.arange(energy.shape[0]) < count).reshape(-1, *(1,) * lanes)
    is_finite = jnp.isfinite(energy)
    considered = jnp.where(is_valid & is_finite, energy, jnp.inf)
    where = jnp.argmin(considered, axis=0).astype(jnp.int32)
    lowest = jnp.min(considered, axis=0)
    is_better = lowest < known.best_energy

    def best(kept, trace):
        index = where.reshape(1, *where.shape, *(1,) * (trace.ndim - 1 - lanes))
        chosen = jnp.take_along_axis(trace, index, axis=0)[0]
        return jnp.where(is_better.reshape(is_better.shape + (1,) * (kept.ndim - lanes)), chosen, kept)

    has_position = len(jax.tree.leaves(known.best_position)) > 0
    return Milestones(
        jnp.where(is_better, lowest, known.best_energy),
        jnp.where(is_better, first + where, known.best_iteration),
        jax.tree.map(best, known.best_position, position) if has_position else known.best_position,
        _first(known.first_hit, considered <= target, first),
        _first(known.diverged_at, is_valid & ~is_finite, first),
    )


def _first(known: Array, happened: Array, first: Array) -> Array:
    index = jnp.argmax(happened, axis=0).astype(jnp.int32)
    return jnp.where((known < 0) & jnp.any(happened, axis=0), first + index, known)


def write_rows(buffer: Any, rows: Any, start: Array) -> Any:
    """`buffer` with `rows` from `start` on, in place. Rows past the last record are overwritten by later ones."""
    return jax.tree.map(lambda b, r: lax.dynamic_update_slice_in_dim(b, r.astype(b.dtype), start, 0), buffer, rows)


def write_if(buffer: Any, row: Any, place: Array, is_due: Array) -> Any:
    """`buffer` with `row` at `place` where `is_due`. A loop of no or one turn: it never copies the buffer, as `cond` may."""
    return lax.fori_loop(0, is_due.astype(jnp.int32), lambda _, kept: write_rows(kept, one_row(row), place), buffer)


def choose_chains(tree: Any, recorded: Array | None) -> Any:
    """Leaves (..., P, *rest) restricted to the chains `recorded` of shape (..., Q); all of them where it is None."""
    if recorded is None:
        return tree

    def choose(leaf):
        index = recorded.reshape(recorded.shape + (1,) * (leaf.ndim - recorded.ndim))
        return jnp.take_along_axis(leaf, index, axis=recorded.ndim - 1)

    return jax.tree.map(choose, tree)


def zeros(example: Any, length: int) -> Any:
    """Buffers for `length` rows like those of `example`."""
    return jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), example)


def slices(buffer: Any, begin: Any, length: int) -> Any:
    """`length` rows of `buffer` from `begin` on."""
    return jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, begin, length, 0), buffer)


def row_at(buffer: Any, place: Array) -> Any:
    """The row of `buffer` at `place`."""
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, place, 0, keepdims=False), buffer)


def one_row(tree: Any) -> Any:
    """Leaves with a leading axis of one."""
    return jax.tree.map(lambda leaf: leaf[None], tree)
