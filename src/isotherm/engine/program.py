"""The compiled part of the driver: any number of iterations, with traced bounds, in one program.

The outer loop goes over chunks of iterations whose noise is drawn in one call, or, for large positions, over the stretches
between two records; the inner one over their iterations. Neither the noise nor the arithmetic of an iteration depends on where
a chunk or a block of chunks begins, so the bytes do not depend on how a run is cut.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.engine.iteration import (
    Inputs,
    Observation,
    Parts,
    State,
    init_state,
    iterate,
    keep_up,
    next_upkeep,
    over_chains,
)
from isotherm.engine.periodic import add_pieces, measure, refresh
from isotherm.engine.random_inputs import draw_batches, draw_noise, open_streams
from isotherm.engine.records import (
    Book,
    Records,
    Trace,
    choose_chains,
    init_book,
    keep_book,
    row_like,
    rows,
    slices,
    write_if,
    write_rows,
    zeros,
)


class Carry(NamedTuple):
    """Everything that a run carries from block to block, and all that a checkpoint holds. Leaves start with (R, ...)."""

    state: State
    book: Book


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A sampler and a potential at fixed sizes, ready to run. See `Program.advance`.

    Attributes:
        parts: the parts, bound to the potential.
        num_runs: R.
        num_chains: P.
        chunk: L, iterations whose noise is drawn in one call; 1 for large positions.
        group: G, a divisor of L: iterations of an inner loop that touches only slices of the noise and the trace.
        slots: the most records that one call can return.
        rows: the most records in a chunk, at least 2.
        tracks_best: whether best positions are followed.
        collect: maps a position to what a record keeps of it.
    """

    parts: Parts
    num_runs: int
    num_chains: int
    chunk: int
    group: int
    slots: int
    rows: int
    tracks_best: bool
    collect: Callable[[Any], Any]

    @functools.cached_property
    def init(self) -> Callable[[Any], Carry]:
        """`init(position)`: the carry of runs that start at `position`, leaves (R, P, ...)."""

        def init(position):
            state = jax.vmap(lambda x: init_state(self.parts, x, self.num_chains))(position)
            dtype = jnp.result_type(*jax.tree.leaves(position))
            shape = jax.ShapeDtypeStruct((self.num_runs, self.num_chains), dtype)
            # The carry is donated, and no buffer may be donated twice. A weakly typed leaf would be another program's argument.
            carry = Carry(state, init_book(shape, position, self.tracks_best))
            return jax.tree.map(lambda leaf: jnp.array(leaf, jnp.asarray(leaf).dtype), carry)

        return jax.jit(init)

    @functools.cached_property
    def init_records(self) -> Callable[..., Records]:
        """`init_records(seed_key, feed, carry)`: empty buffers for `advance`."""

        def init_records(seed_key, feed, carry):
            example = jax.eval_shape(self._example_record, seed_key, feed, carry)
            return zeros(example, self.slots + self.rows)

        return jax.jit(init_records)

    @functools.cached_property
    def advance(self) -> Callable[..., tuple[Carry, Records, Array]]:
        """`advance(seed_key, feed, carry, records, times, target, first, last)`, compiled.

        Runs the iterations first, ..., last - 1, and returns the carry, the records and their number. `times` holds the
        iterations to record from `first` on in increasing order, padded with large numbers to slots + rows.
        """
        return jax.jit(self._advance, donate_argnums=(2, 3))

    @functools.cached_property
    def measure(self) -> Callable[..., Carry]:
        """`measure(seed_key, feed, carry, iteration)`: periodic measurements for the coupling."""

        def measured(seed_key, feed, carry, iteration):
            return carry._replace(state=measure(self.parts, seed_key, feed, carry.state, iteration))

        return jax.jit(measured, donate_argnums=(2,))

    @functools.cached_property
    def refresh(self) -> Callable[..., Carry]:
        """`refresh(feed, carry, energies)`: periodic work of the estimator, which has all data or their energies."""
        work = lambda feed, carry, energies=None: refresh(self.parts, feed, carry.state, energies)  # noqa: E731
        return jax.jit(lambda feed, carry, *given: carry._replace(state=work(feed, carry, *given)), donate_argnums=(1,))

    @functools.cached_property
    def add_pieces(self) -> Callable[..., Any]:
        """`add_pieces(stream, count, carry, sums)`: sums of energies after pieces of the data were added."""
        return jax.jit(lambda stream, count, carry, sums: add_pieces(self.parts, stream, count, carry.state, sums))

    def _advance(self, seed_key, feed, carry, records, times, target, first, last):
        keys = open_streams(seed_key, self.num_runs, self.num_chains)

        stretch = self._segment if self.chunk == 1 else self._chunk

        def go(loop):
            start, carry, records, slot = loop
            stop, carry, records, count = stretch(keys, feed, carry, records, times, slot, target, start, last)
            return stop, carry, records, slot + count

        first, last = (jnp.asarray(bound, jnp.int32) for bound in (first, last))
        begin = (first, carry, records, jnp.zeros((), jnp.int32))
        _, carry, records, count = lax.while_loop(lambda loop: loop[0] < last, go, begin)
        return carry, records, count

    def _chunk(self, keys, feed, carry, records, times, slot, target, start, last):
        """Small positions: up to L iterations with noise drawn at once, and a trace from which everything is read after."""
        book = carry.book
        stop = jnp.minimum(start + self.chunk, last)
        upcoming = lax.dynamic_slice(times, (slot,), (self.rows,))
        offsets = upcoming - start
        iterations = start + jnp.arange(self.chunk, dtype=jnp.int32)
        draws = draw_noise(self.parts, keys, iterations, carry.state.position)
        example = row_like(records, self.num_chains, self.parts.kernel.is_stack)
        example = example._replace(position=carry.state.position, model_state=carry.state.model_state)
        is_weighted = self.parts.coupling.is_weighted

        def several(loop):
            """Iterations up to the end of a group of G, one that is to be weighed, or the next upkeep of the coupling.

            They touch only slices of noise and trace; that of the trace is a buffer that every group uses again. Only the last
            one may need a weight, which is found after it, so that the loop has no branch in it.
            """
            place, state, trace, weights, piece = loop
            base = place // self.group * self.group
            noise = slices(draws, base, self.group)
            state = self._keep_up(state, start + place)

            def step(offset, loop):
                state, piece = loop
                drawn = jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, offset, 0, keepdims=False), noise)
                after, seen = self._iterate(keys, feed, state, drawn, start + base + offset)
                return after, write_rows(piece, rows(self._seen(state, seen)), offset)

            end = jnp.minimum(base + self.group, stop - start)
            end = jnp.minimum(end, next_upkeep(self.parts, start + place) - start)
            if is_weighted:
                end = jnp.minimum(end, jnp.min(jnp.where(offsets >= place, offsets, self.chunk)) + 1)
            state, piece = lax.fori_loop(place - base, end - base, step, (state, piece))
            trace = write_rows(trace, piece, base)
            if is_weighted:
                weights = write_rows(weights, rows(self._weigh(state, jnp.any(offsets == end - 1))), end - 1)
            return end, state, trace, weights, piece

        weights = jnp.zeros((self.chunk, *example.energy.shape), example.energy.dtype) if is_weighted else None
        buffers = zeros(example, self.chunk), weights, zeros(example, self.group)
        begin = (jnp.zeros((), jnp.int32), self._bare(carry.state), *buffers)
        _, state, trace, weights, _ = lax.while_loop(lambda loop: loop[0] < stop - start, several, begin)
        book = keep_book(book, trace.energy, trace.position, start, stop - start, target)
        chosen, weights = jax.tree.map(lambda leaf: leaf[jnp.minimum(offsets, self.chunk - 1)], (trace, weights))
        kept = jax.vmap(self._keep)(chosen.position, chosen.model_state, chosen.observed)
        records = Records(*write_rows(tuple(records), (*kept, *self._keep_small(chosen, weights)), slot))
        return stop, Carry(self._dressed(state), book), records, jnp.sum(upcoming < stop, dtype=jnp.int32)

    def _segment(self, keys, feed, carry, records, times, slot, target, start, last):
        """Large positions: the iterations up to the next record, with no copy or write of a position in any of them."""
        start_state, book = carry
        upcoming = lax.dynamic_slice(times, (slot,), (2,))
        is_due = upcoming[0] == start
        stop = jnp.minimum(jnp.where(is_due, upcoming[1], upcoming[0]), last)
        kept = self._keep(start_state.position, start_state.model_state, self._observed(self._bare(start_state)))
        draws, model_state = write_if((records.draws, records.model_state), kept, slot, is_due)

        def drawn_at(iteration):
            noise = draw_noise(self.parts, keys, iteration[None], start_state.position)
            return jax.tree.map(lambda leaf: leaf[0], noise)

        def body(iteration, loop):
            state, book, row = loop
            state = self._keep_up(state, iteration)
            after, seen = self._iterate(keys, feed, state, drawn_at(iteration), iteration)
            new = self._seen(state, seen)
            weights = self._weigh(after, is_due & (iteration == start)) if is_weighted else None
            book = keep_book(book, new.energy[None], rows(self._dressed(state.position)), iteration, 1, target)
            kept = jax.tree.map(lambda n, old: jnp.where(iteration == start, n, old), (new, weights), row)
            return after, book, kept

        example = row_like(records, self.num_chains, self.parts.kernel.is_stack)
        is_weighted = self.parts.coupling.is_weighted
        nothing = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), (example, example.energy if is_weighted else None)
        )
        state, book, row = lax.fori_loop(start, stop, body, (self._bare(start_state), book, nothing))
        small = write_if(records[2:], self._keep_small(*row), slot, is_due)
        carry = Carry(self._dressed(state), book)
        return stop, carry, Records(draws, model_state, *small), is_due.astype(jnp.int32)

    def _bare(self, tree: Any) -> Any:
        """Leaves (R, ...) as the loops hold them: a single run without its axis.

        A batched slice would be a gather, and a batched update a scatter, which XLA makes loops of; and dropping the axis in every
        iteration would copy what is updated in place.
        """
        return jax.tree.map(lambda leaf: leaf[0], tree) if self.num_runs == 1 else tree

    def _dressed(self, tree: Any) -> Any:
        """The inverse of `_bare`."""
        return rows(tree) if self.num_runs == 1 else tree

    def _over_runs(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """`function` for every run, of and to bare leaves."""
        if self.num_runs == 1:
            return function(*arguments)
        return over_chains(self.parts.chain_mode, function, *arguments)

    def _iterate(self, keys, feed, state, drawn, iteration) -> tuple[State, Observation]:
        batches = draw_batches(self.parts, keys, iteration, feed)

        def one(state, drawn, batches):
            noise, probe, noises, coupling = drawn
            return iterate(self.parts, state, Inputs(noise, probe, noises, batches, coupling), iteration)

        return self._over_runs(one, state, self._bare(drawn), self._bare(batches))

    def _keep_up(self, state: State, iteration: Array) -> State:
        return keep_up(self.parts, state, iteration, functools.partial(self._over_runs, self.parts.coupling.upkeep))

    def _weigh(self, state: State, is_due: Array) -> Array:
        """Log weights of the positions that were just seen, (R, P); zero where they are not due."""
        shape = (self.num_runs, self.num_chains)
        dtype = jnp.result_type(*jax.tree.leaves(state.position))
        weigh = self.parts.coupling.log_weights
        found = lambda: self._dressed(self._over_runs(weigh, state.coupling)).astype(dtype)  # noqa: E731
        return lax.cond(is_due, found, lambda: jnp.zeros(shape, dtype))

    def _seen(self, state: State, seen: Observation) -> Trace:
        """One row of the trace: what belongs to the positions before the move, and nothing that is known without it."""
        position, model_state = (None, None) if self.chunk == 1 else (state.position, state.model_state)
        energies = seen.energies if self.parts.kernel.is_stack else None
        seen_here = Trace(position, model_state, seen.energy, energies, {})
        return self._dressed(seen_here)._replace(observed=self._observed(state))

    def _observed(self, state: State) -> dict[str, Array]:
        """What the coupling of every run has to tell; one without state has nothing to map over."""
        coupling = self.parts.coupling
        has_state = jax.tree.leaves(state.coupling)
        return self._dressed(self._over_runs(coupling.observe, state.coupling)) if has_state else {}

    def _keep(self, position: Any, model_state: Any, observed: dict[str, Array]) -> tuple[Any, Any]:
        """What a record holds of positions (R, P, ...): leaves (R, Q, ...)."""
        recorded = self.parts.coupling.recorded(observed)
        position, model_state = choose_chains((position, model_state), recorded)
        return jax.vmap(jax.vmap(self.collect))(position), model_state

    def _keep_small(self, seen: Trace, log_weights: Any) -> tuple[Array, Any, dict[str, Array]]:
        """Energies, log weights and observations of a record, or of many."""
        energies = seen.energies if self.parts.kernel.is_stack else seen.energy
        recorded = self.parts.coupling.recorded(seen.observed)
        return *choose_chains((energies, log_weights), recorded), seen.observed

    def _example_record(self, seed_key, feed, carry) -> Records:
        keys, state = open_streams(seed_key, self.num_runs, self.num_chains), carry.state
        draws = draw_noise(self.parts, keys, jnp.zeros(1, jnp.int32), state.position)
        drawn, bare = jax.tree.map(lambda leaf: leaf[0], draws), self._bare(state)
        _, seen = self._iterate(keys, feed, bare, drawn, jnp.zeros((), jnp.int32))
        seen = self._seen(bare, seen)
        kept, model_state = self._keep(state.position, state.model_state, seen.observed)
        log_weights = seen.energy if self.parts.coupling.is_weighted else None
        return Records(kept, model_state, *self._keep_small(seen, log_weights))
