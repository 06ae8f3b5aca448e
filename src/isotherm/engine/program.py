"""A sampler and a potential at fixed sizes, as functions that compile: start, any number of iterations, and what they saw."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.coupling import Observed
from isotherm.engine import program_cache
from isotherm.engine.blocks import Block, Buffers, Carry, Times, chunk, segment
from isotherm.engine.chain_mode import compiler_options, over_chains
from isotherm.engine.iteration import Parts, State, init_state, iterate
from isotherm.engine.packing import Packing
from isotherm.engine.periodic_work import add_pieces, couple, outside, refresh, work_inside
from isotherm.engine.random_inputs import Keys, draw_batches, draw_noise
from isotherm.engine.records import Records, Trace, choose_chains, init_milestones, zeros
from isotherm.engine.stream import Stream
from isotherm.foundation.parts import Part, Static


def identity(position: Any) -> Any:
    """Keeps the whole position."""
    return position


@dataclasses.dataclass(frozen=True, eq=False)
class Program(Part):
    """See `Program.advance`.

    Attributes:
        parts: what iterates.
        num_runs: R; None for a single run, without an axis for it anywhere.
        num_chains: P.
        is_swept: whether every run has parts of its own, whose leaves, but for the potential's, then have a leading axis of R.
        chunk: L, iterations whose noise is drawn in one call; 1 for large positions.
        group: G, a divisor of L: iterations of an inner loop that touches only slices of the noise and the trace.
        max_records: the most records that one call can return.
        max_records_per_chunk: at least 2.
        weighs_all: whether every iteration is weighed, or only those that are recorded.
        tracks_best: whether best positions are followed.
        energy_dtype: of energies.
        packing: how the engine holds positions.
        collect: maps a position to what a record keeps of it.
    """

    parts: Parts
    num_runs: Static[int | None]
    num_chains: Static[int]
    is_swept: Static[bool]
    chunk: Static[int]
    group: Static[int]
    max_records: Static[int]
    max_records_per_chunk: Static[int]
    weighs_all: Static[bool]
    tracks_best: Static[bool]
    energy_dtype: Static[Any]
    packing: Static[Packing]
    collect: Static[Callable[[Any], Any]]

    def init(self, position: Any) -> tuple[Carry, Records]:
        """The carry of runs that start at `position`, leaves (*lanes, ...), and empty buffers for `advance`."""
        return program_cache.call(Program._init, self, position)

    def advance(
        self, keys: Keys, stream: Any, carry: Carry, records: Records, block: Block
    ) -> tuple[Carry, Records, Array]:
        """Runs the iterations of a block, and returns the carry, the records and their number.

        The carry and the records that are given are used up.
        """
        arguments = (self, keys, stream, carry, records, block)
        options = compiler_options(self.parts.chain_mode)
        return program_cache.call(Program._advance, *arguments, donated=(3, 4), options=options)

    def block(self, times: Times, target: float, first: int, last: int) -> Block:
        """The iterations first, ..., last - 1, of which those at `times` are recorded."""
        numbers = jax.tree.map(lambda number: np.asarray(number, np.int32), (times, first, last))
        limit: Any = np.asarray(target, self.energy_dtype)
        return Block(numbers[0], limit, *numbers[1:])

    def statistics(self, carry: Carry) -> dict[str, Any]:
        """What the milestones, the kernel and the coupling have to tell."""
        return program_cache.call(Program._statistics, self, carry)

    def couple(self, keys: Keys, stream: Stream, carry: Carry, iteration: int) -> Carry:
        """The coupling's periodic work on data that stream."""
        arguments = (keys, stream, carry, jnp.asarray(iteration, jnp.int32))
        return program_cache.call(Program._couple, self, *arguments, donated=(3,))

    def refresh(self, stream: Stream, carry: Carry, energies: Array) -> Carry:
        """The estimator's periodic work on data that stream, whose energies were summed."""
        return program_cache.call(Program._refresh, self, stream, carry, energies, donated=(2,))

    def add_pieces(self, stream: Stream, count: int, carry: Carry, sums: Any) -> Any:
        """Sums of energies after pieces of the data were added."""
        return program_cache.call(Program._add_pieces, self, stream, jnp.asarray(count, jnp.int32), carry, sums)

    @property
    def lanes(self) -> tuple[int, ...]:
        """(P,) or (R, P)."""
        return (self.num_chains,) if self.num_runs is None else (self.num_runs, self.num_chains)

    def over_runs(
        self, function: Callable[..., Any], *arguments: Any, mode: str | None = None, out_axes: int = 0
    ) -> Any:
        """`function(parts, ...)` for every run, along the leading axis of the arguments."""
        if self.num_runs is None:
            return function(self.parts, *arguments)
        potential, own = self.parts.potential, self.parts.replace_unchecked(potential=None)

        def one(settings, *given):
            parts = own if settings is None else settings
            return function(parts.replace_unchecked(potential=potential), *given)

        settings = own if self.is_swept else None
        if out_axes:
            return jax.vmap(one, out_axes=out_axes)(settings, *arguments)
        return over_chains(mode or self.parts.chain_mode, one, settings, *arguments)

    def iterate(self, keys: Keys, stream: Any, state: State, drawn: Any, iteration: Array) -> tuple[State, Array]:
        """One iteration of every run."""
        held = (stream.examples, stream.weights) if isinstance(stream, Stream) else None

        def one(parts, keys, state, drawn, held):
            own = None if held is None else stream._replace(examples=held[0], weights=held[1])
            batches = draw_batches(parts, keys, iteration, own)
            return iterate(parts, state, drawn._replace(batches=batches), iteration)

        return self.over_runs(one, keys, state, drawn, held)

    def work_inside(self, keys: Keys, state: State, iteration: Array) -> State:
        """Every run after the periodic work that is due before an iteration."""
        return self.over_runs(lambda parts, keys, state: work_inside(parts, keys, state, iteration), keys, state)

    def draw_noise(self, keys: Keys, iterations: Array, position: Any) -> Any:
        """All random inputs of L iterations but the batches: leaves (L, *lanes, ...)."""
        return self.over_runs(lambda parts, *g: draw_noise(parts, g[0], iterations, g[1]), keys, position, out_axes=1)

    def log_weights(self, state: State) -> Array:
        """Log weights of the positions that the couplings have just seen."""

        def one(parts, coupling):
            return parts.coupling.log_weights(coupling)

        return self.over_runs(one, state.coupling).astype(self.energy_dtype)

    def observe(self, state: State) -> Observed:
        """What the couplings want recorded; one without state has nothing to map over."""
        if not jax.tree.leaves(state.coupling):
            return self.parts.coupling.observe(state.coupling)
        return self.over_runs(lambda parts, coupling: parts.coupling.observe(coupling), state.coupling)

    def keep(self, position: Any, model_state: Any, recorded: Array | None) -> tuple[Any, Any]:
        """What a record holds of positions (*lanes, ...)."""
        position, model_state = choose_chains((position, model_state), recorded)
        collect = self.collect
        for _ in self.lanes:
            collect = jax.vmap(collect)
        return collect(self.packing.unpack(position)), model_state

    def row_like(self, state: State) -> Trace:
        """The shapes of a row of the trace."""
        energy = jax.ShapeDtypeStruct(self.lanes, self.energy_dtype)
        log_weight = energy if self.weighs_all else None
        observed = jax.eval_shape(self.observe, state)
        return Trace(state.position, state.model_state, energy, log_weight, observed)  # pyright: ignore[reportArgumentType]

    @property
    def is_weighted(self) -> bool:
        """Whether draws carry weights."""
        return self.parts.coupling.log_weights is not None

    def _init(self, position: Any) -> tuple[Carry, Records]:
        position = self.packing.pack(position)
        state = self.over_runs(init_state, position, mode="vmap")
        carry = Carry(state, init_milestones(self.lanes, self.energy_dtype, position, self.tracks_best))
        # A weakly typed leaf would be another program's argument.
        return jax.tree.map(lambda leaf: lax.convert_element_type(leaf, leaf.dtype), carry), self.empty_records(state)

    def empty_records(self, state: State) -> Records:
        """Buffers for `advance`."""

        def example(state):
            observed = self.observe(state)
            energies = jnp.zeros(self.lanes, self.energy_dtype)
            kept = self.keep(state.position, state.model_state, observed.recorded)
            energies = choose_chains(energies, observed.recorded)
            return Records(*kept, energies, energies if self.is_weighted else None, observed.values)

        return zeros(jax.eval_shape(example, state), self.max_records + self.max_records_per_chunk)

    def _advance(self, keys, stream, carry, records, block):
        several = segment if self.chunk == 1 else chunk

        def go(loop):
            start, carry, records, place = loop
            stop, carry, records, count = several(self, keys, stream, carry, Buffers(records, place), block, start)
            return stop, carry, records, place + count

        begin = (block.first, carry, records, jnp.zeros((), jnp.int32))
        _, carry, records, count = lax.while_loop(lambda loop: loop[0] < block.last, go, begin)
        return carry, records, count

    def _statistics(self, carry: Carry) -> dict[str, Any]:
        state = carry.state
        told = {}
        if jax.tree.leaves(state.coupling):
            told = self.over_runs(lambda parts, s: parts.coupling.statistics(s), state.coupling, mode="vmap")
        of_chain = lambda parts, kernel: jax.vmap(parts.kernel.statistics)(kernel)  # noqa: E731
        moved = self.over_runs(of_chain, state.kernel, mode="vmap")
        seen = carry.milestones
        if self.tracks_best:
            seen = seen._replace(best_position=self.packing.unpack(seen.best_position))
        return {**seen._asdict(), **moved, **told}

    def preconditioner(self, carry: Carry) -> Any:
        """The factors on the gradients at the end, like positions; None where there are none."""
        of_run = lambda parts, kernel: jax.vmap(parts.kernel.preconditioner)(kernel)  # noqa: E731
        factors = self.over_runs(of_run, carry.state.kernel, mode="vmap")
        return self.packing.unpack(factors) if jax.tree.leaves(factors) else None

    def _couple(self, keys, stream, carry, iteration):
        held = (stream.examples, stream.weights)

        def one(parts, keys, state, held):
            own = stream._replace(examples=held[0], weights=held[1])
            for work in outside(parts)[0]:
                state = state._replace(coupling=couple(parts, work, keys, state, iteration, own))
            return state

        return carry._replace(state=self.over_runs(one, keys, carry.state, held))

    def _refresh(self, stream, carry, energies):
        def one(parts, state, energies):
            for work in outside(parts)[1]:
                state = state._replace(estimator=refresh(parts, work, state, stream, energies))
            return state

        return carry._replace(state=self.over_runs(one, carry.state, energies))

    def _add_pieces(self, stream, count, carry, sums):
        return self.over_runs(lambda parts, *g: add_pieces(parts, stream, count, *g), carry.state, sums)
