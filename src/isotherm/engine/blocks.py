"""The loops over iterations: chunks for small positions, segments between two records for large ones.

Neither the noise nor the arithmetic of an iteration depends on where a chunk, a segment or a block of them begins, so the bytes do
not depend on how a run is cut.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.engine.iteration import State
from isotherm.engine.periodic_work import next_inside
from isotherm.engine.random_inputs import Keys
from isotherm.engine.records import (
    Milestones,
    Records,
    Trace,
    choose_chains,
    one_row,
    pass_milestones,
    row_at,
    slices,
    write_if,
    write_rows,
    zeros,
)

if TYPE_CHECKING:
    from isotherm.engine.program import Program


class Carry(NamedTuple):
    """Everything that runs carry from block to block, and all that a checkpoint holds. Leaves start with (R, ...) or not."""

    state: State
    milestones: Milestones


class Times(NamedTuple):
    """The iterations to record, in increasing order, as arithmetic: a rule, and which of its numbers are meant.

    Attributes:
        start: the first candidate.
        stride: iterations between two candidates.
        period: candidates after which the same ones are chosen again.
        chosen: those of a period.
        number: of the next record.
        end: the number after the last one.
    """

    start: Any
    stride: Any
    period: Any
    chosen: Any
    number: Any
    end: Any

    def at(self, offsets: Array) -> Array:
        """The iterations of the records so many after the next; past the last one, the largest number there is."""
        numbers = self.number + offsets
        whole, rest = jnp.divmod(numbers, len(self.chosen))
        found = self.start + self.stride * (whole * self.period + self.chosen[rest])
        return jnp.where(numbers < self.end, found, jnp.iinfo(jnp.int32).max)


class Block(NamedTuple):
    """Iterations to run.

    Attributes:
        times: those to record from `first` on.
        target: the energy whose first hit is noted.
        first: the first iteration.
        last: the one after the last.
    """

    times: Times
    target: Array
    first: Array
    last: Array


class Buffers(NamedTuple):
    """Where records go: the buffers, and how many are already there."""

    records: Records
    place: Array


def chunk(
    program: "Program", keys: Keys, stream: Any, carry: Carry, buffers: Buffers, block: Block, start: Array
) -> tuple[Array, Carry, Records, Array]:
    """Small positions: up to L iterations with noise drawn at once, and a trace from which everything is read after.

    Returns where they ended, the carry, the records, and how many were added.
    """
    state, known = carry
    stop = jnp.minimum(start + program.chunk, block.last)
    upcoming = block.times.at(buffers.place + jnp.arange(program.max_records_per_chunk, dtype=jnp.int32))
    # Those that are not in this chunk are at its end.
    offsets = jnp.minimum(upcoming - start, program.chunk)
    draws = program.draw_noise(keys, start + jnp.arange(program.chunk, dtype=jnp.int32), state.position)
    example = program.row_like(state)
    weighs_some = program.is_weighted and not program.weighs_all

    def several(loop):
        """Iterations up to the end of a group of G, to one that is to be weighed, or to the next periodic work.

        They touch only slices of noise and trace; that of the trace is a buffer that every group uses again. Only the last
        one may need a weight, which is found after it, so that the loop has no branch in it.
        """
        offset, state, trace, weights, piece = loop
        base = offset // program.group * program.group
        noise = slices(draws, base, program.group)
        state = program.work_inside(keys, state, start + offset)

        def step(place, loop):
            state, piece = loop
            after, energy = program.iterate(keys, stream, state, row_at(noise, place), start + base + place)
            log_weight = program.log_weights(after) if program.weighs_all else None
            row = Trace(state.position, state.model_state, energy, log_weight, program.observe(state))
            return after, write_rows(piece, one_row(row), place)

        end = jnp.minimum(base + program.group, stop - start)
        end = jnp.minimum(end, next_inside(program.parts, start + offset) - start)
        if weighs_some:
            end = jnp.minimum(end, jnp.min(jnp.where(offsets >= offset, offsets, program.chunk)) + 1)
        state, piece = lax.fori_loop(offset - base, end - base, step, (state, piece))
        trace = write_rows(trace, piece, base)
        if weighs_some:
            weights = write_rows(weights, one_row(_weigh(program, state, jnp.any(offsets == end - 1))), end - 1)
        return end, state, trace, weights, piece

    weights = zeros(example.energy, program.chunk) if weighs_some else None
    begin = (jnp.zeros((), jnp.int32), state, zeros(example, program.chunk), weights, zeros(example, program.group))
    _, state, trace, weights, _ = lax.while_loop(lambda loop: loop[0] < stop - start, several, begin)
    known = pass_milestones(known, trace.energy, trace.position, start, stop - start, block.target)
    chosen, weights = jax.tree.map(lambda leaf: leaf[jnp.minimum(offsets, program.chunk - 1)], (trace, weights))
    keep = jax.vmap(program.keep, (0, 0, None if chosen.observed.recorded is None else 0))
    kept = keep(chosen.position, chosen.model_state, chosen.observed.recorded)
    small = _small(chosen, weights if weighs_some else chosen.log_weight)
    records = Records(*write_rows(tuple(buffers.records), (*kept, *small), buffers.place))
    return stop, Carry(state, known), records, jnp.sum(upcoming < stop, dtype=jnp.int32)


def segment(
    program: "Program", keys: Keys, stream: Any, carry: Carry, buffers: Buffers, block: Block, start: Array
) -> tuple[Array, Carry, Records, Array]:
    """Large positions: the iterations up to the next record, with no copy or write of a position in any of them."""
    (state, known), (records, place) = carry, buffers
    upcoming = block.times.at(place + jnp.arange(2, dtype=jnp.int32))
    is_due = upcoming[0] == start
    stop = jnp.minimum(jnp.where(is_due, upcoming[1], upcoming[0]), block.last)
    kept = program.keep(state.position, state.model_state, program.observe(state).recorded)
    draws, model_state = write_if((records.draws, records.model_state), kept, place, is_due)

    def body(iteration, loop):
        state, known, row = loop
        state = program.work_inside(keys, state, iteration)
        drawn = row_at(program.draw_noise(keys, iteration[None], state.position), jnp.zeros((), jnp.int32))
        after, energy = program.iterate(keys, stream, state, drawn, iteration)
        weights = _weigh(program, after, is_due & (iteration == start)) if program.is_weighted else None
        new = Trace(None, None, energy, weights, program.observe(state))
        known = pass_milestones(known, energy[None], one_row(state.position), iteration, 1, block.target)
        return after, known, jax.tree.map(lambda n, old: jnp.where(iteration == start, n, old), new, row)

    example = program.row_like(state)._replace(position=None, model_state=None)
    example = example._replace(log_weight=example.energy if program.is_weighted else None)
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), example)
    state, known, row = lax.fori_loop(start, stop, body, (state, known, nothing))
    small = write_if(records[2:], _small(row, row.log_weight), place, is_due)
    return stop, Carry(state, known), Records(draws, model_state, *small), is_due.astype(jnp.int32)


def _weigh(program: "Program", state: State, is_due: Array) -> Array:
    """Log weights of the positions that were just seen; zero where they are not due."""
    shape, dtype = program.lanes, program.energy_dtype
    return lax.cond(is_due, lambda: program.log_weights(state), lambda: jnp.zeros(shape, dtype))


def _small(seen: Trace, log_weights: Any) -> tuple[Array, Any, dict[str, Array]]:
    """Energies, log weights and observations of a record, or of many."""
    observed = seen.observed
    return *choose_chains((seen.energy, log_weights), observed.recorded), observed.values
