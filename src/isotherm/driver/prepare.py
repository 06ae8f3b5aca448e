"""Everything that is settled before the first iteration: what `sample`, `resume`, `sweep` and pilots have in common."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from isotherm.driver.choose import temperature_of_draws
from isotherm.driver.data_source import DataSource, source_of
from isotherm.driver.describe import describe
from isotherm.driver.divergence import num_lost_in_data
from isotherm.driver.layout import Layout
from isotherm.driver.settings import Settings, thread_pool_size
from isotherm.engine import program_cache
from isotherm.engine.blocks import Carry, Times
from isotherm.engine.chain_mode import choose_mode
from isotherm.engine.example_check import check_examples
from isotherm.engine.iteration import Parts
from isotherm.engine.lengths import sizes_of
from isotherm.engine.packing import Packing
from isotherm.engine.program import Program, identity
from isotherm.engine.random_inputs import Keys, open_streams
from isotherm.engine.records import Records
from isotherm.foundation.errors import refuse
from isotherm.foundation.parts import number_dtype
from isotherm.foundation.positions import named_leaves
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.potentials.potential import Potential, energy_trace, innermost
from isotherm.run.bias import MAX_COORDINATES
from isotherm.run.record_times import RecordTimes
from isotherm.run.storage.store import check_json
from isotherm.samplers.sampler import Choice, Sampler

# Numbers of all positions that are copied to tell one potential from another.
_MAX_COPIED = 1_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedRun:
    """A run that is ready to go.

    Attributes:
        program: what is compiled.
        keys: where its randomness comes from.
        source: where its data come from.
        settings: what was asked for.
        layout: how its runs are shown.
        times: when draws are taken.
        position: where chains start, leaves (*lanes, ...).
        configs: what was asked for in JSON, for each sampler.
        potential: as the user gave it.
        samplers: likewise, after their pilots.
        pilot_seconds: what those took.
    """

    program: Program
    keys: Keys
    source: DataSource
    settings: Settings
    layout: Layout
    times: RecordTimes
    position: Any
    configs: tuple[dict[str, Any], ...]
    potential: Potential
    samplers: tuple[Sampler, ...]
    pilot_seconds: float = 0.0

    def init(self) -> tuple[Carry, Records]:
        """The carry before the first iteration, and empty buffers."""
        return self.program.init(self.position)

    def energies_at(self, position: Any) -> np.ndarray:
        """Energies of chains at a position, leaves (*lanes, ...), as the first iteration sees them; infinite where they are not."""
        program, (carry, records) = self.program, self.program.init(position)
        nothing = Times(*self.times.rule, 0, 0)
        carry = self.source.work(program, self.keys, carry, 0)
        block = program.block(nothing, self.settings.target_energy, 0, 1)
        carry, _, _ = program.advance(self.keys, self.source.block(0, 1), carry, records, block)
        return np.asarray(program.statistics(carry)["best_energy"])

    def recognized_by(self, carry: Carry) -> np.ndarray:
        """Energies at the positions of a carry, by which the potential is recognized when a run goes on.

        NaN for large positions, which memory may not hold twice, and for data that stream.
        """
        packed = carry.state.position
        size = sum(leaf.size for leaf in jax.tree.leaves(packed))
        if size > _MAX_COPIED or self.potential.is_streamed:
            return np.full_like(carry.milestones.best_energy, np.nan)
        return self.energies_at(jax.tree.map(np.asarray, self.program.packing.unpack(packed)))


@transfers_on_purpose
def prepare(
    potential: Potential,
    samplers: Sequence[Sampler],
    settings: Settings,
    layout: Layout,
    position: Any,
    collect: Callable[[Any], Any] = identity,
    source: dict[str, Any] | None = None,
    choices: tuple[Choice, ...] = (),
) -> PreparedRun:
    """A run of one sampler, or of several with the same structure. Compiles it, and refuses starts without energy.

    `position` has leading axes (R, P) of all runs of the program, in the order of the layout.
    """
    sampler = samplers[0]
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), position)
    settings = dataclasses.replace(settings, chain_mode=choose_mode(settings.chain_mode, potential, one))
    energy = energy_trace(potential, one)
    on_device = potential.on_device()
    check_examples(potential, on_device, jax.tree.map(lambda leaf: leaf[0, 0], position))
    packing = Packing.of(one, sampler.kernel)
    stored = packing.around(on_device)
    bound = [s.parts(stored, settings.chain_mode, number_dtype(position)) for s in samplers]
    times = settings.record_times(sampler.window)
    lanes = (layout.total or 1) * settings.num_chains
    coupling_state = jax.eval_shape(lambda coupling: coupling.init(settings.num_chains), bound[0].coupling)
    sizes = sizes_of(bound[0], lanes, one, coupling_state, settings.thinning, len(times))
    tracks_best = not potential.has_data if settings.track_best is None else settings.track_best
    swept = layout.num_samplers is not None and layout.total is not None
    parts = _stacked(bound, (layout.total or 1) // len(samplers)) if swept else bound[0]
    program = Program(
        parts, layout.total, settings.num_chains, swept, *sizes, tracks_best, energy.dtype, packing, collect
    )
    program_cache.look_again(program, stored, energy.shapes, energy.fingerprint)
    words, runs = settings.seed_words(), np.asarray(layout.run_numbers)
    keys = open_streams(words, runs if layout.total is not None else runs[0], settings.num_chains)
    data = source_of(potential, bound[0], keys, settings.num_chains)
    if layout.total is None:
        position = jax.tree.map(lambda leaf: leaf[0], position)
    prepared = PreparedRun(program, keys, data, settings, layout, times, position, (), potential, tuple(samplers))
    energy = _first_energy(prepared)
    configs = tuple(_configuration(potential, s, prepared, energy) for s in samplers)
    given = {"source": check_json("source", source), "choices": [dataclasses.asdict(choice) for choice in choices]}
    configs = tuple(config | given for config in configs)
    return dataclasses.replace(prepared, configs=configs)


def _stacked(bound: list[Parts], repeats: int) -> Parts:
    """Parts of several samplers with a leading axis of runs, all but the potential."""
    own = [parts.replace_unchecked(potential=None) for parts in bound]
    stacked = jax.tree.map(lambda *leaves: np.repeat(np.stack(leaves), repeats, axis=0), *own)
    return stacked.replace_unchecked(potential=bound[0].potential)


def _first_energy(prepared: PreparedRun) -> float:
    """The energy of the first chain where it starts. All that a run needs is compiled by then."""
    energies = prepared.energies_at(prepared.position)
    is_lost = ~np.isfinite(energies)
    if np.any(is_lost):
        lost = num_lost_in_data(prepared.potential)
        if lost:
            got = f"{lost} that {'is' if lost == 1 else 'are'} not (NaN, infinity)"
            refuse(
                "data", "finite numbers", got, "Remove or replace what is not: the energy is not finite at the start."
            )
        *run, chain = np.argwhere(is_lost)[0]
        got = f"an energy that is not, in chain {chain}" + (f" of run {run[0]}" if run else "")
        refuse("init", "where the energy is finite", got, "Start elsewhere, or mend the energy there.")
    return float(energies.reshape(-1)[0])


def _configuration(potential: Potential, sampler: Sampler, prepared: PreparedRun, energy: float) -> dict[str, Any]:
    """What a run was asked for, and the facts about its parts that checks and estimates need, in JSON."""
    collect, lead = prepared.program.collect, len(prepared.program.lanes)
    shapes = {
        name: [list(leaf.shape[lead:]), str(leaf.dtype)] for name, leaf in named_leaves(prepared.position).items()
    }
    traits, inner = sampler.coupling.traits, innermost(potential)
    num_examples, temperature = getattr(inner, "num_data", None), temperature_of_draws(sampler, prepared.times)
    return {
        "sampler": describe(sampler),
        "potential": describe(potential),
        "texts": {"sampler": repr(sampler), "potential": repr(potential)},
        "settings": prepared.settings.as_json(),
        "position": shapes,
        "collect": getattr(collect, "__qualname__", type(collect).__name__),
        "start_energy": energy,
        "temperature": temperature,
        "claims_distribution": temperature != 0.0 and traits.follows_distribution,
        "weight_edges": traits.weight_edges,
        "is_exact": potential.is_exact,
        "num_examples": None if num_examples is None else int(num_examples),
        "batch_size": describe(getattr(inner, "batch_size", None)),
        "batching": getattr(inner, "batching", None),
        "is_batch_shared": bool(potential.is_batch_shared),
        "is_streamed": bool(potential.is_streamed),
        "reads_noise": bool(traits.noise and potential.has_residuals),
        "reads_whole_energy": potential.coupling_includes_prior,
        "reduces_variance": sampler.estimator.reduces_variance,
        "is_constrained": potential.space is not None,
        "is_joint": sampler.kernel.is_joint,
        "is_network": inner.is_network,
        "mistaken_for": inner.mistaken_for,
        "has_one_start": _has_one_start(prepared.position, lead),
        "start_spread": _start_spread(prepared.position, lead) if potential.space is None else None,
        "thread_pool_size": thread_pool_size(),
    }


def _has_one_start(position: Any, lead: int) -> bool:
    """Whether several chains all start at the same position."""
    number = int(np.prod(jax.tree.leaves(position)[0].shape[:lead]))
    leaves = [np.asarray(leaf).reshape(number, *leaf.shape[lead:]) for leaf in jax.tree.leaves(position)]
    return number > 1 and all(np.array_equal(leaf, np.broadcast_to(leaf[:1], leaf.shape)) for leaf in leaves)


def _start_spread(position: Any, lead: int) -> list[float] | None:
    """The standard deviation of the starts in every coordinate; None for one chain, and for large positions."""
    leaves = jax.tree.leaves(position)
    number, size = int(np.prod(leaves[0].shape[:lead])), sum(int(np.prod(leaf.shape[lead:])) for leaf in leaves)
    if number < 2 or not 0 < size <= MAX_COORDINATES:
        return None
    rows = np.concatenate([np.asarray(leaf, np.float64).reshape(number, -1) for leaf in leaves], axis=1)
    return np.std(rows, axis=0).tolist()
