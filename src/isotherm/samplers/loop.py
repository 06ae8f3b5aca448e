"""Loops by hand: the state of one run, and one iteration of it."""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from isotherm.engine import program_cache
from isotherm.engine.blocks import Carry, Times
from isotherm.engine.iteration import Parts, State, init_state, iterate
from isotherm.engine.packing import Packing
from isotherm.engine.periodic_work import work_inside
from isotherm.engine.program import Program, identity, is_small, sizes_of
from isotherm.engine.random_inputs import Keys, draw_batches, draw_noise, open_streams
from isotherm.engine.records import Milestones, Records, init_milestones, row_at
from isotherm.foundation.errors import check_type, refuse, short
from isotherm.foundation.parts import Part, Static, as_arguments, number_dtype
from isotherm.foundation.randomness import seed_words
from isotherm.potentials.batches import Batch
from isotherm.potentials.potential import Potential, energy_trace
from isotherm.potentials.start import PerChain, start_positions

if TYPE_CHECKING:
    from isotherm.samplers.sampler import Sampler


@dataclasses.dataclass(frozen=True, eq=False)
class LoopState(Part):
    """The state of `Sampler.step`.

    Attributes:
        chains: the state of the chains of one run.
        iteration: the number of the next iteration.
        potential: what is sampled.
        energy_dtype: the type of its energies.
        packing: the layout of positions in the engine.
        is_small: whether iterations are compiled into one function on a CPU.
    """

    chains: State
    iteration: Any
    potential: Potential
    energy_dtype: Static[str]
    packing: Static[Packing]
    is_small: Static[bool] = False

    @property
    def position(self) -> Any:
        """The positions of the chains, with a leading axis of chains."""
        return self.packing.unpack(self.chains.position)


class Info(NamedTuple):
    """The report of `Sampler.step` on the positions before the move.

    Attributes:
        energy: of every chain, shape (P,).
        log_weight: of every chain, shape (P,); zero for samplers without weights.
        observed: values from the coupling, such as the rung of every replica.
    """

    energy: Array
    log_weight: Array
    observed: dict[str, Array]


def start(sampler: "Sampler", potential: Potential, position: Any, num_chains: int | None) -> LoopState:
    """The state before the first iteration, checked."""
    if isinstance(position, PerChain) and not num_chains:
        num_chains = position.number
    number = sampler.choose_num_chains(num_chains)
    starts = start_positions(position, seed_words(0), np.zeros(1, np.int32), number)
    sampler.check(potential, starts)
    if potential.is_streamed:
        remedy = "Give the data on the device, or batches of your own to `step`; `iso.sample` streams."
        refuse("potential", "one without streamed data for a loop by hand", "a stream", remedy)
    return begin(sampler, potential.on_device(), jax.tree.map(lambda leaf: leaf[0], starts))


def begin(sampler: "Sampler", potential: Potential, positions: Any) -> LoopState:
    """The state of chains at `positions`, leaves (chain, ...), which may be traced."""
    potential = as_arguments(potential, number_dtype(positions))
    one = _one(positions)
    packing = Packing.of(one, sampler.kernel)
    parts = sampler.parts(packing.around(potential), "vmap", number_dtype(positions))
    packed, energy = packing.pack(positions), energy_trace(potential, one)
    is_traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((parts, packed)))
    if not is_traced:
        program_cache.drop_stale(parts, parts.potential, energy.shapes, energy.fingerprint)
    chains = _first_state(parts, packed) if is_traced else program_cache.call(_first_state, parts, packed)
    number = jax.tree.leaves(positions)[0].shape[0]
    whole = is_small(number, one, energy.size)
    return LoopState(chains, jnp.zeros((), jnp.int32), potential, energy.dtype, packing, whole)


def _one(positions: Any) -> Any:
    """The shapes of the position of one chain."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), positions)


def _first_state(parts: Parts, positions: Any) -> State:
    # A weakly typed leaf would compile another program.
    return jax.tree.map(lambda leaf: lax.convert_element_type(leaf, leaf.dtype), init_state(parts, positions))


def step(sampler: "Sampler", key: Any, state: LoopState, data: Any) -> tuple[LoopState, Info]:
    """One iteration: by the compiled block where nothing is traced, else inside the user's program."""
    remedy = "Call `state, info = sampler.step(key, state)` with the state from `sampler.init(potential, position)`."
    check_type("state", state, LoopState, "the state of a loop", remedy)
    num_chains = jax.tree.leaves(state.chains.position)[0].shape[0]
    keys = open_streams(_words(key), np.zeros((), np.int32), num_chains)
    potential = state.packing.around(state.potential)
    parts = sampler.parts(potential, "vmap", number_dtype(state.chains.position))
    parts = parts.replace_unchecked(is_small=state.is_small)
    if data is not None and sampler.kernel.is_adjusted:
        remedy = "Leave it out: the potential's own data are used in every step."
        refuse(
            "data", "None for an adjusted kernel, whose energies are those of the last step's data", short(data), remedy
        )
    batches = None if data is None else _given(parts, data, num_chains)
    leaves = jax.tree.leaves((keys, state, sampler, batches))
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        chains, info = _iterate_once(parts, keys, state.chains, state.iteration, batches)
    elif batches is not None:
        chains, info = program_cache.call(_iterate_once, parts, keys, state.chains, state.iteration, batches)
    else:
        chains, info = _by_block(parts, keys, state)
    return state.replace_unchecked(chains=chains, iteration=state.iteration + 1), info


def _iterate_once(parts: Parts, keys: Keys, state: State, iteration: Array, batches: Any) -> tuple[State, Info]:
    observed = parts.coupling.observe(state.coupling)
    state = work_inside(parts, keys, state, iteration)
    inputs = row_at(draw_noise(parts, keys, iteration[None], state.position), jnp.zeros((), jnp.int32))
    batches = draw_batches(parts, keys, iteration, None) if batches is None else batches
    after, energy = iterate(parts, state, inputs._replace(batches=batches), iteration)
    weigh = parts.coupling.log_weights
    log_weight = jnp.zeros_like(energy) if weigh is None else weigh(after.coupling).astype(energy.dtype)
    return after, Info(energy, log_weight, observed.values)


def _by_block(parts: Parts, keys: Keys, state: LoopState) -> tuple[State, Info]:
    """The compiled block of `iso.sample` with the bounds (k, k + 1)."""
    position, iteration = state.chains.position, int(state.iteration)
    num_chains = jax.tree.leaves(position)[0].shape[0]
    sizes = sizes_of(parts, num_chains, _one(position), state.chains.coupling, thinning=1, num_records=1)
    program = Program(parts, None, num_chains, False, False, state.energy_dtype, state.packing, identity, **sizes)
    carry, records = program_cache.call(_before, program, state.chains)
    block = program.block(Times(iteration, 1, 1, np.zeros(1, np.int32), 0, 1), -np.inf, iteration, iteration + 1)
    carry, records, _ = program.advance(keys, None, carry, records, block)
    return carry.state, program_cache.call(_info, carry.milestones, records.log_weights, records.observed)


def _before(program: Program, chains: State) -> tuple[Carry, Records]:
    """A carry with copies of the chains, since its buffers are donated and the caller keeps the old state, and empty records."""
    milestones = init_milestones(program.lanes, program.energy_dtype, (), False)
    return Carry(chains, milestones), program.empty_records(chains)


def _info(known: Milestones, log_weights: Any, observed: dict[str, Array]) -> Info:
    energy = jnp.where(known.diverged_at >= 0, jnp.nan, known.best_energy)
    log_weight = jnp.zeros_like(energy) if log_weights is None else log_weights[0]
    return Info(energy, log_weight, {name: value[0] for name, value in observed.items()})


def _given(parts: Parts, data: Any, num_chains: int) -> tuple[Any, ...]:
    """The user's batches."""
    number = parts.num_batches
    given = data if number > 1 else (data,)
    if not isinstance(given, tuple) or len(given) != number:
        remedy = f"This sampler needs {number} in every step."
        refuse("data", f"a tuple of {number} batches", type(data).__name__, remedy)
    batches = tuple(parts.potential.as_batch(examples) for examples in given)
    if parts.potential.is_batch_shared or all(isinstance(one, Batch) for one in given):
        return batches
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)), batches)


def _words(key: Any) -> Any:
    """The words of a key, of the new kind or the old; on the host where it is not traced."""
    if not hasattr(key, "dtype"):
        refuse("key", "a key of JAX", short(key), "Pass `jax.random.key(0)`, say.")
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return seed_words(key)
    return key if isinstance(key, Tracer) else np.asarray(key)
