"""A sampler and a potential at fixed sizes, as compiled functions: start, blocks of iterations, and statistics."""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.coupling import Observed
from isotherm.engine import program_cache
from isotherm.engine.blocks import Block, Buffers, Carry, Times, chunk, segment
from isotherm.engine.chain_mode import over_chains
from isotherm.engine.graphs import options_for
from isotherm.engine.iteration import Parts, State, apart, init_state, iterate
from isotherm.engine.packing import Packing
from isotherm.engine.periodic_work import add_pieces, couple, outside, refresh, work_inside
from isotherm.engine.random_inputs import Keys, Stream, draw_batches, draw_noise
from isotherm.engine.records import Records, Trace, choose_chains, init_milestones, zeros
from isotherm.engine.sharding import CHAINS, RUNS, Shard, Sharding
from isotherm.engine.specs import Specs
from isotherm.engine.whole_loops import ALWAYS, MAX_WHOLE_LOOP, NEVER
from isotherm.foundation.parts import Part, Static

F = TypeVar("F", bound=Callable[..., Any])

# Random numbers per draw: enough to hide the cost of drawing, few enough for a core's cache.
_CHUNK_NUMBERS = 65_536
_MAX_CHUNK = 4_096
_MIN_CHUNK = 16
# Bytes of noise in an inner loop. The loop around it dispatches its operations one by one, so it should turn seldom.
_GROUP_BYTES = 4_096
_MAX_GROUP = 32
_BUFFER_BYTES = 32 << 20
_MIN_RECORDS = 256
# The name under which a sharded program observes the chains that it records.
_RECORDED = "recorded chains"
# With less thinning, weighing every iteration costs less than ending groups at those that are kept.
_FEW_ITERATIONS = 4


def identity(position: Any) -> Any:
    """Keep the whole position."""
    return position


def _compiled(donated: tuple[int, ...] = (), has_graphs: bool = False) -> Callable[[F], F]:
    """Compile a method, for one device or several. It overwrites the arguments at the places `donated`; `self` is the first."""

    def decorate(method: F) -> F:
        @functools.wraps(method)
        def call(self: "Program", *arguments: Any) -> Any:
            options = options_for(self.parts.chain_mode) if has_graphs else ()
            function = method if self.sharding is None else sharded
            limit = ALWAYS if self.parts.is_small else NEVER
            given = {"donated": donated, "options": options, "max_whole_loop": limit}
            return program_cache.call(function, self, *arguments, **given)

        def sharded(self: "Program", *arguments: Any) -> Any:
            assert self.sharding is not None
            before, after = getattr(Specs(self), method.__name__)(*arguments)
            local = lambda program, *given: method(program.on_one_device(), *given)  # noqa: E731
            specs = {"in_specs": (Specs(self).program(), *before), "out_specs": after}
            return jax.shard_map(local, mesh=self.sharding.mesh, check_vma=False, **specs)(self, *arguments)

        return call  # pyright: ignore[reportReturnType]

    return decorate


@dataclasses.dataclass(frozen=True, eq=False)
class Program(Part):
    """Parts, and everything static about their runs."""

    parts: Parts
    num_runs: Static[int | None]  # R, the sets of coupled chains: each ladder is a run. None for one, without an axis.
    num_chains: Static[int]  # P.
    is_swept: Static[bool]  # Each run has parts of its own: leaves, except the potential's, have a leading axis of R.
    tracks_best: Static[bool]
    energy_dtype: Static[Any]
    packing: Static[Packing]
    collect: Static[Callable[[Any], Any]]  # Maps a position to what a record keeps.
    chunk: Static[int]  # L, iterations whose noise is drawn in one call; 1 for large positions.
    group: Static[int]  # G, a divisor of L: iterations of an inner loop, which touches only slices of noise and trace.
    max_records: Static[int]  # Of one call.
    max_records_per_chunk: Static[int]  # At least 2.
    weighs_all: Static[bool]  # Every iteration is weighed, not only those recorded.
    sharding: Static[Sharding | None] = (
        None  # Of several devices. Sizes L, G and those of buffers are then those of one device.
    )

    def init(self, position: Any) -> tuple[Carry, Records]:
        """The carry of runs that start at `position`, leaves (*lanes, ...), and empty buffers."""
        if self.sharding is not None:
            position = self.sharding.placed(position, Specs(self).lanes, self._numbers)
        return self._init(position)

    @_compiled()
    def _init(self, position: Any) -> tuple[Carry, Records]:
        position = self.packing.pack(position)
        state = self.over_runs(init_state, position, mode="vmap")
        carry = Carry(state, init_milestones(self.lanes, self.energy_dtype, position, self.tracks_best))
        # Strong types: weak ones would compile `advance` a second time.
        return jax.tree.map(lambda leaf: lax.convert_element_type(leaf, leaf.dtype), carry), self.empty_records(state)

    def carry_like(self, position: Any) -> Carry:
        """The shapes of `init(position)`, as they are on the host."""
        return jax.eval_shape(inspect.unwrap(Program._init), self, position)[0]

    def on_one_device(self) -> "Program":
        """The program of the runs and chains on one device, inside a sharded program."""
        sharding = self.sharding
        if sharding is None:
            return self
        size = sharding.size_on(CHAINS, self.num_chains)
        shard = Shard(sharding.over_chains, size, self.num_chains) if sharding.over_chains > 1 else None
        runs = None if self.num_runs is None else sharding.size_on(RUNS, self.num_runs)
        parts = self.parts.replace_unchecked(shard=shard)
        return self.replace_unchecked(parts=parts, num_runs=runs, num_chains=size, sharding=None)

    def on_devices(self, carry: Carry) -> Carry:
        """A carry from the host."""
        if self.sharding is None:
            return carry
        return self.sharding.placed(carry, Specs(self).carry, self._numbers)

    def to_host(self, carry: Carry) -> Carry:
        """A whole carry on the host, whatever the devices."""
        if self.sharding is None:
            return carry
        return self.sharding.whole(carry, Specs(self).carry, self._numbers)

    def whole(self, tree: Any, axes: str) -> Any:
        """Arrays with leading axes of "lanes", or of what the coupling knows, "coupled", on the host, whatever the devices."""
        if self.sharding is None:
            return tree
        return self.sharding.whole(tree, getattr(Specs(self), axes), self._numbers)

    def records_to_host(self, records: Records) -> Records:
        """Whole records on the host."""
        if self.sharding is None:
            return jax.device_get(records)
        numbers = self._numbers if self._records_all else {}
        found = self.sharding.whole(records._replace(observed={}), Specs(self).records, numbers)
        observed = dict(self.sharding.whole(records.observed, Specs(self).observed, self._numbers))
        recorded = observed.pop(_RECORDED, None)
        found = found._replace(observed=observed)
        if recorded is None:
            return found
        # Every device holds a chain where its own would be; the one with the recorded chain is right.
        owner = recorded // self.sharding.size_on(CHAINS, self.num_chains)
        axis, places = recorded.ndim - 1, owner * recorded.shape[-1] + np.arange(recorded.shape[-1])
        runs = (slice(None), slice(self.num_runs)) if self.num_runs is not None else (slice(None),)

        def choose(leaf):
            leaf = leaf[runs]
            index = places.reshape(places.shape + (1,) * (leaf.ndim - places.ndim))
            return np.take_along_axis(leaf, index, axis)

        scalars = jax.tree.map(choose, found._replace(observed={}))
        return scalars._replace(observed=observed)

    @property
    def _numbers(self) -> dict[str, int]:
        """The true sizes of the axes of devices."""
        return {CHAINS: self.num_chains} | ({} if self.num_runs is None else {RUNS: self.num_runs})

    @property
    def _records_all(self) -> bool:
        coupling = self.parts.coupling
        state = jax.eval_shape(lambda: coupling.init(self.num_chains))
        return not (self.sharding and self.sharding.over_chains > 1) or (
            jax.eval_shape(coupling.observe, state).recorded is None
        )

    @_compiled(donated=(3, 4), has_graphs=True)
    def advance(
        self, keys: Keys, stream: Any, carry: Carry, records: Records, block: Block
    ) -> tuple[Carry, Records, Array]:
        """Run a block: the new carry, records and their number."""
        several = segment if self.chunk == 1 else chunk

        def go(loop):
            return several(self, keys, stream, block, *loop)

        begin = (block.first, carry, Buffers(records, jnp.zeros((), jnp.int32)))
        _, carry, (records, count) = lax.while_loop(lambda loop: loop[0] < block.last, go, begin)
        return carry, records, count

    def block(self, times: Times, target: float, first: int, last: int) -> Block:
        """The iterations first, ..., last - 1, recorded at `times`."""
        numbers = jax.tree.map(lambda number: np.asarray(number, np.int32), (times, first, last))
        limit: Any = np.asarray(target, self.energy_dtype)
        return Block(numbers[0], limit, *numbers[1:])

    def statistics(self, carry: Carry) -> dict[str, Any]:
        """Milestones and the statistics of kernel and coupling, on the host if there are several devices."""
        found = self._statistics(carry)
        if self.sharding is None:
            return found
        return self.sharding.whole(found, Specs(self).of_statistics(carry), self._numbers)

    @_compiled()
    def _statistics(self, carry: Carry) -> dict[str, Any]:
        state, coupled = carry.state, {}
        if jax.tree.leaves(state.coupling):
            coupled = self.over_runs(lambda parts, s: parts.coupling.statistics(s), state.coupling, mode="vmap")
        of_chain = lambda parts, kernel: jax.vmap(parts.kernel.statistics)(kernel)  # noqa: E731
        moved = self.over_runs(of_chain, state.kernel, mode="vmap")
        milestones = carry.milestones
        if self.tracks_best:
            milestones = milestones._replace(best_position=self.packing.unpack(milestones.best_position))
        restarts = {"num_restarts": state.restart.number} if self.parts.restarts else {}
        return {**milestones._asdict(), **restarts, **moved, **coupled}

    @_compiled(donated=(3,))
    def couple(self, keys: Keys, stream: Stream, carry: Carry, iteration: Any) -> Carry:
        """The carry after the coupling's periodic work on streamed data."""

        def one(parts, keys, state, data):
            own_stream = stream._replace(examples=data[0], weights=data[1])
            for work in outside(parts)[0]:
                state = state._replace(coupling=couple(parts, work, keys, state, iteration, own_stream))
            return state

        data = (stream.examples, stream.weights)
        return carry._replace(state=self.over_runs(one, keys, carry.state, data))

    @_compiled(donated=(2,))
    def refresh(self, stream: Stream, carry: Carry, energies: Array) -> Carry:
        """The carry after the estimator's periodic work on streamed data; `energies` are sums over all data."""

        def one(parts, state, energies):
            for work in outside(parts)[1]:
                state = state._replace(estimator=refresh(parts, work, state, stream, energies))
            return state

        return carry._replace(state=self.over_runs(one, carry.state, energies))

    @_compiled()
    def add_pieces(self, stream: Stream, count: Any, carry: Carry, sums: Any) -> Any:
        """Sums of energies after the first `count` pieces of a stream."""
        return self.over_runs(lambda parts, *g: add_pieces(parts, stream, count, *g), carry.state, sums)

    @property
    def lanes(self) -> tuple[int, ...]:
        """(P,) or (R, P)."""
        return (self.num_chains,) if self.num_runs is None else (self.num_runs, self.num_chains)

    def over_runs(
        self, function: Callable[..., Any], *arguments: Any, mode: str | None = None, out_axes: int = 0
    ) -> Any:
        """`function(parts, ...)` for every run along the leading axis of the arguments."""
        if self.num_runs is None:
            return function(self.parts, *arguments)
        potential, other_parts = self.parts.potential, self.parts.replace_unchecked(potential=None)

        def one(settings, *of_run):
            parts = other_parts if settings is None else settings
            return function(parts.replace_unchecked(potential=potential), *of_run)

        settings = other_parts if self.is_swept else None
        if out_axes:
            return jax.vmap(one, out_axes=out_axes)(settings, *arguments)
        kind, _, at_once = (mode or self.parts.chain_mode).partition(":")
        kind += f":{max(int(at_once) // self.num_chains, 1)}" if at_once else ""
        return over_chains(kind, one, settings, *arguments)

    def iterate(self, keys: Keys, stream: Any, state: State, inputs: Any, iteration: Array) -> tuple[State, Array]:
        """One iteration of every run."""
        data = (stream.examples, stream.weights) if isinstance(stream, Stream) else None

        def one(parts, keys, state, inputs, data):
            own_stream = None if data is None else stream._replace(examples=data[0], weights=data[1])
            batches = draw_batches(parts, keys, iteration, own_stream)
            return iterate(parts, state, inputs._replace(batches=batches), iteration)

        return self.over_runs(one, keys, state, inputs, data)

    def work_inside(self, keys: Keys, state: State, iteration: Array) -> State:
        """The state after the periodic work due before an iteration."""
        return self.over_runs(lambda parts, keys, state: work_inside(parts, keys, state, iteration), keys, state)

    def draw_noise(self, keys: Keys, iterations: Array, position: Any) -> Any:
        """Random inputs of L iterations, except batches: leaves (L, *lanes, ...)."""
        return self.over_runs(lambda parts, *g: draw_noise(parts, g[0], iterations, g[1]), keys, position, out_axes=1)

    def log_weights(self, state: State, iteration: Array) -> Array:
        """Log weights of the positions of the last iteration."""

        def one(parts, coupling):
            return parts.own(apart(parts.is_apart, iteration, parts.coupling.log_weights, coupling))

        return self.over_runs(one, state.coupling).astype(self.energy_dtype)

    def observe(self, state: State) -> Observed:
        """What the couplings record."""
        # A coupling without state has no leaves to map over.
        if not jax.tree.leaves(state.coupling):
            return _observed(self.parts, state.coupling)
        return self.over_runs(lambda parts, coupling: _observed(parts, coupling), state.coupling)

    def keep(self, position: Any, model_state: Any, recorded: Array | None) -> tuple[Any, Any]:
        """What a record keeps of positions (*lanes, ...)."""
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
        """Whether draws have weights."""
        return self.parts.coupling.log_weights is not None

    def empty_records(self, state: State) -> Records:
        """Empty buffers for `advance`."""

        def example(state):
            observed = self.observe(state)
            energies = jnp.zeros(self.lanes, self.energy_dtype)
            kept = self.keep(state.position, state.model_state, observed.recorded)
            energies = choose_chains(energies, observed.recorded)
            return Records(*kept, energies, energies if self.is_weighted else None, observed.values)

        return zeros(jax.eval_shape(example, state), self.max_records + self.max_records_per_chunk)

    def preconditioner(self, carry: Carry) -> Any:
        """Factors on the gradients at the end, like positions; None if the kernel has none."""
        if self.sharding is None:
            return inspect.unwrap(Program._preconditioner)(self, carry)  # A few operations, not worth a program.
        return self.whole(self._preconditioner(carry), "lanes")

    @_compiled()
    def _preconditioner(self, carry: Carry) -> Any:
        of_run = lambda parts, kernel: jax.vmap(parts.kernel.preconditioner)(kernel)  # noqa: E731
        factors = self.over_runs(of_run, carry.state.kernel, mode="vmap")
        return self.packing.unpack(factors) if jax.tree.leaves(factors) else None


def _observed(parts: Parts, coupling: Any) -> Observed:
    """What a coupling records; the places of chains on this device, beside their numbers, where others have some."""
    found = parts.coupling.observe(coupling)
    if parts.shard is None or not parts.gathers or found.recorded is None:
        return found
    return Observed({**found.values, _RECORDED: found.recorded}, parts.shard.place_of(found.recorded))


def is_small(num_lanes: int, one: Any, num_traced: int) -> bool:
    """Whether iterations of positions like `one` are compiled into one function on a CPU.

    `num_lanes` counts the chains of all runs on all devices; `num_traced` numbers are computed for an energy.
    """
    size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(one))
    return 4 * num_lanes * (num_traced + 4 * size) <= MAX_WHOLE_LOOP


def sizes_of(
    parts: Parts, num_lanes: int, one: Any, coupling_state: Any, thinning: int, num_records: int
) -> dict[str, Any]:
    """The sizes of a `Program` for positions like `one`; `num_lanes` counts the chains of all runs on one device."""
    model_state = jax.tree.leaves(parts.potential.init_model_state())
    size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(one)) + sum(np.size(leaf) for leaf in model_state)
    # Few values of this, so that runs of similar lengths share a program.
    room = _MIN_RECORDS
    while room < num_records:
        room *= 16
    max_records = min(max(_BUFFER_BYTES // (4 * num_lanes * (size + 2)), 1), room)
    # Noise drawn past a return to the host would be drawn twice.
    periods = [work.every for works in outside(parts) for work in works]
    numbers = max(num_lanes * size, 1)
    chunk = min(_CHUNK_NUMBERS // numbers, _MAX_CHUNK)
    group = chunk = min([chunk if chunk >= _MIN_CHUNK else 1, *periods])
    if jax.tree.leaves(coupling_state):
        # XLA compiles a loop on a CPU into one function only if it touches little memory and holds no scatter. Otherwise it
        # dispatches every operation of the body, which for a few numbers costs more than the arithmetic.
        group = min(chunk & -chunk, _MAX_GROUP)
        while group > 1 and 4 * group * num_lanes * size > _GROUP_BYTES:
            group //= 2
        group = group if group > 1 else chunk
    weighs_all = parts.coupling.log_weights is not None and thinning < _FEW_ITERATIONS and chunk > 1
    per_chunk = max(2, -(-chunk // thinning))
    lengths = {"chunk": chunk, "group": group, "max_records": max_records, "max_records_per_chunk": per_chunk}
    return lengths | {"weighs_all": weighs_all}
