"""What is kept of the iterations: records for the run, and the bookkeeping that sees every iteration.

Inside a chunk of iterations, positions and energies go into a trace; best energies, first hits, divergences and records are
read from it once per chunk, vectorised, rather than with many small operations in every iteration.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax


class Trace(NamedTuple):
    """What a chunk of L iterations saw; leaves have shape (L, R, P, ...). What need not be written is None.

    Attributes:
        position: None in chunks of one, where it is written from the state.
        model_state: likewise.
        energy: of each chain.
        energies: of each particle, in stacks.
        observed: what the coupling wants recorded, (L, R, ...).
    """

    position: Any
    model_state: Any
    energy: Array
    energies: Any
    observed: dict[str, Array]


class Records(NamedTuple):
    """Records; leaves have shape (slots, R, Q, ...), those of `observed` (slots, R, ...). No log weights where all are zero."""

    draws: Any
    model_state: Any
    energies: Array
    log_weights: Any
    observed: dict[str, Array]


class Book(NamedTuple):
    """What is known from every iteration, thinning or not. Shapes (R, P); -1 stands for never.

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


def row_like(records: Records, num_chains: int, is_stack: bool) -> Trace:
    """The shapes of a row of the trace, without positions: known from those of records, with no iteration traced for them."""
    num_runs, particles = records.energies.shape[1], records.energies.shape[3:]
    energy: Any = jax.ShapeDtypeStruct((num_runs, num_chains), records.energies.dtype)
    energies = jax.ShapeDtypeStruct((num_runs, num_chains, *particles), energy.dtype) if is_stack else None
    observed = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), records.observed)
    return Trace(None, None, energy, energies, observed)


def init_book(energy_like: Any, position: Any, tracks_best: bool) -> Book:
    """A book with nothing in it; `energy_like` has shape (R, P)."""
    never = jnp.full(energy_like.shape, -1, jnp.int32)
    best = position if tracks_best else ()
    return Book(jnp.full(energy_like.shape, jnp.inf, energy_like.dtype), never, best, never, never)


def keep_book(book: Book, energy: Array, position: Any, first: Array, count: Array | int, target: Array) -> Book:
    """The book after a chunk with energies (L, R, P), of which the first `count` belong to the iterations from `first` on."""
    is_valid = (jnp.arange(energy.shape[0]) < count)[:, None, None]
    is_finite = jnp.isfinite(energy)
    considered = jnp.where(is_valid & is_finite, energy, jnp.inf)
    where = jnp.argmin(considered, axis=0).astype(jnp.int32)
    lowest = jnp.min(considered, axis=0)
    is_better = lowest < book.best_energy

    def best(kept, trace):
        index = where.reshape(1, *where.shape, *(1,) * (trace.ndim - 3))
        chosen = jnp.take_along_axis(trace, index, axis=0)[0]
        return jnp.where(is_better.reshape(is_better.shape + (1,) * (kept.ndim - 2)), chosen, kept)

    has_position = len(jax.tree.leaves(book.best_position)) > 0
    return Book(
        jnp.where(is_better, lowest, book.best_energy),
        jnp.where(is_better, first + where, book.best_iteration),
        jax.tree.map(best, book.best_position, position) if has_position else book.best_position,
        _first(book.first_hit, considered <= target, first),
        _first(book.diverged_at, is_valid & ~is_finite, first),
    )


def write_rows(buffer: Any, rows: Any, slot: Array) -> Any:
    """`buffer` with `rows` at `slot`, in place. Rows past the last record are overwritten by later ones."""
    return jax.tree.map(lambda b, r: lax.dynamic_update_slice_in_dim(b, r.astype(b.dtype), slot, 0), buffer, rows)


def write_if(buffer: Any, row: Any, slot: Array, is_due: Array) -> Any:
    """`buffer` with `row` at `slot` where `is_due`. A loop of no or one turn: it never copies the buffer, as `cond` may."""
    rows = jax.tree.map(lambda leaf: leaf[None], row)
    return lax.fori_loop(0, is_due.astype(jnp.int32), lambda _, kept: write_rows(kept, rows, slot), buffer)


def choose_chains(tree: Any, recorded: Array | None) -> Any:
    """Leaves (..., R, P, *rest) restricted to the chains `recorded` of shape (..., R, Q); all of them where it is None."""
    if recorded is None:
        return tree

    def choose(leaf):
        index = recorded.reshape(recorded.shape + (1,) * (leaf.ndim - recorded.ndim))
        return jnp.take_along_axis(leaf, index, axis=recorded.ndim - 1)

    return jax.tree.map(choose, tree)


def _first(known: Array, happened: Array, first: Array) -> Array:
    index = jnp.argmax(happened, axis=0).astype(jnp.int32)
    return jnp.where((known < 0) & jnp.any(happened, axis=0), first + index, known)


def zeros(example: Any, length: int) -> Any:
    """Buffers for `length` rows like those of `example`."""
    return jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), example)


def slices(buffer: Any, begin: Any, length: int) -> Any:
    """`length` rows of `buffer` from `begin` on."""
    return jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, begin, length, 0), buffer)


def rows(tree: Any) -> Any:
    """One row: leaves with a leading axis of one."""
    return jax.tree.map(lambda leaf: leaf[None], tree)
