"""The loops of one block, which take iterations `first` to `last` - 1.

    host (driver/drive.py), once per block
      refresh or measure on streamed data, if due at `first`
      Program.advance: compiled; loops over chunks or segments; overwrites the carry and the buffers it was given

        chunk: small positions, up to L iterations    segment: large positions, up to the next record
          draw the noise of L iterations                if a record is due: position -> buffers
          loop over groups of at most G iterations      loop over iterations
            periodic work, if due                         periodic work, if due
            loop over iterations                          draw the noise of one iteration
              iterate; position, energy -> trace          iterate
            log weight, if a record is due                log weight, if a record is due
          milestones <- trace                             milestones <- energy, position
          records due (thinning) <- trace               if a record is due: energy, log weight -> buffers

      records -> memory or disk; every `checkpoint_every` seconds the carry -> a checkpoint

A group also ends where periodic work or a log weight is due. Neither noise nor arithmetic of an iteration depends on where a
group, chunk, segment or block begins, so the draws do not depend on how a run is cut.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.engine.iteration import State
from isotherm.engine.periodic_work import next_inside
from isotherm.engine.random_inputs import Keys
from isotherm.engine.records import Milestones, Records, Trace, row_at, slices, write_if, write_row, write_rows, zeros

if TYPE_CHECKING:
    from isotherm.engine.program import Program


class Carry(NamedTuple):
    """What passes from block to block, and all that a checkpoint holds."""

    state: State
    milestones: Milestones


class Times(NamedTuple):
    """The iterations to record, in increasing order: candidates at a stride, some of which are chosen in every period."""

    start: Any  # The first candidate.
    stride: Any  # Iterations between candidates.
    period: Any  # Candidates after which the choice repeats.
    chosen: Any  # Offsets of the chosen candidates within a period.
    number: Any  # Number of the next record.
    end: Any  # Number after the last record.

    def at(self, offsets: Array) -> Array:
        """Iterations of the records `offsets` after the next; past the last record, the largest integer."""
        numbers = self.number + offsets
        whole, rest = jnp.divmod(numbers, len(self.chosen))
        iterations = self.start + self.stride * (whole * self.period + self.chosen[rest])
        return jnp.where(numbers < self.end, iterations, jnp.iinfo(jnp.int32).max)


class Block(NamedTuple):
    """Iterations to run."""

    times: Times  # To record, from `first` on.
    target: Array  # The energy whose first hit is reported.
    first: Array
    last: Array  # The iteration after the block.


class Buffers(NamedTuple):
    """Buffers of records, of which the first `place` are filled."""

    records: Records
    place: Array


def chunk(
    program: "Program", keys: Keys, stream: Any, block: Block, start: Array, carry: Carry, buffers: Buffers
) -> tuple[Array, Carry, Buffers]:
    """Up to L iterations of small positions from `start` on: the iteration after them, and what they lead to."""
    state, milestones = carry
    stop = jnp.minimum(start + program.chunk, block.last)
    upcoming = block.times.at(buffers.place + jnp.arange(program.max_records_per_chunk, dtype=jnp.int32))
    # Records after this chunk are placed at its end.
    offsets = jnp.minimum(upcoming - start, program.chunk)
    inputs = program.draw_noise(keys, start + jnp.arange(program.chunk, dtype=jnp.int32), state.position)
    example = program.row_like(state)
    weighs_some = program.is_weighted and not program.weighs_all

    def group(loop):
        """Writes only to slices: XLA reuses the buffer of `piece`. Weighs its last position, so its own loop has no branch."""
        offset, state, trace, weights, piece = loop
        base = offset // program.group * program.group
        inputs_of_group = slices(inputs, base, program.group)
        state = program.work_inside(keys, state, start + offset)

        def step(place, loop):
            state, piece = loop
            after, energy = program.iterate(keys, stream, state, row_at(inputs_of_group, place), start + base + place)
            number = start + base + place
            log_weight = program.log_weights(after, number) if program.weighs_all else None
            row = Trace(state.position, state.model_state, energy, log_weight, program.observe(state))
            return after, write_row(piece, row, place)

        end = jnp.minimum(base + program.group, stop - start)
        end = jnp.minimum(end, next_inside(program.parts, start + offset) - start)
        if weighs_some:
            end = jnp.minimum(end, jnp.min(jnp.where(offsets >= offset, offsets, program.chunk)) + 1)
        state, piece = lax.fori_loop(offset - base, end - base, step, (state, piece))
        trace = write_rows(trace, piece, base)
        if weighs_some:
            weighed = _weigh(program, state, start + end - 1, jnp.any(offsets == end - 1))
            weights = write_row(weights, weighed, end - 1)
        return end, state, trace, weights, piece

    weights = zeros(example.energy, program.chunk) if weighs_some else None
    begin = (jnp.zeros((), jnp.int32), state, zeros(example, program.chunk), weights, zeros(example, program.group))
    _, state, trace, weights, _ = lax.while_loop(lambda loop: loop[0] < stop - start, group, begin)
    milestones = milestones.after(trace.energy, trace.position, start, stop - start, block.target)
    chosen, weights = jax.tree.map(lambda leaf: leaf[jnp.minimum(offsets, program.chunk - 1)], (trace, weights))
    keep = jax.vmap(program.keep, (0, 0, None if chosen.observed.recorded is None else 0))
    kept = keep(chosen.position, chosen.model_state, chosen.observed.recorded)
    new = *kept, *chosen.scalars(weights if weighs_some else chosen.log_weight)
    records = Records(*write_rows(tuple(buffers.records), new, buffers.place))
    count = jnp.sum(upcoming < stop, dtype=jnp.int32)
    return stop, Carry(state, milestones), Buffers(records, buffers.place + count)


def segment(
    program: "Program", keys: Keys, stream: Any, block: Block, start: Array, carry: Carry, buffers: Buffers
) -> tuple[Array, Carry, Buffers]:
    """Like `chunk`, for large positions: no iteration copies or writes a position."""
    (state, milestones), (records, place) = carry, buffers
    upcoming = block.times.at(place + jnp.arange(2, dtype=jnp.int32))
    is_due = upcoming[0] == start
    stop = jnp.minimum(jnp.where(is_due, upcoming[1], upcoming[0]), block.last)
    kept = program.keep(state.position, state.model_state, program.observe(state).recorded)
    draws, model_state = write_if((records.draws, records.model_state), kept, place, is_due)

    def body(iteration, loop):
        state, milestones, row = loop
        state = program.work_inside(keys, state, iteration)
        inputs = row_at(program.draw_noise(keys, iteration[None], state.position), jnp.zeros((), jnp.int32))
        after, energy = program.iterate(keys, stream, state, inputs, iteration)
        weights = _weigh(program, after, iteration, is_due & (iteration == start)) if program.is_weighted else None
        new = Trace(None, None, energy, weights, program.observe(state))
        position = jax.tree.map(lambda leaf: leaf[None], state.position)
        milestones = milestones.after(energy[None], position, iteration, 1, block.target)
        return after, milestones, jax.tree.map(lambda n, old: jnp.where(iteration == start, n, old), new, row)

    example = program.row_like(state)._replace(position=None, model_state=None)
    example = example._replace(log_weight=example.energy if program.is_weighted else None)
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), example)
    state, milestones, row = lax.fori_loop(start, stop, body, (state, milestones, nothing))
    scalars = write_if(records[2:], row.scalars(row.log_weight), place, is_due)
    buffers = Buffers(Records(draws, model_state, *scalars), place + is_due.astype(jnp.int32))
    return stop, Carry(state, milestones), buffers


def _weigh(program: "Program", state: State, iteration: Array, is_due: Array) -> Array:
    """Log weights of the positions of the last iteration; zero where none are due."""
    shape, dtype = program.lanes, program.energy_dtype
    return lax.cond(is_due, lambda: program.log_weights(state, iteration), lambda: jnp.zeros(shape, dtype))
