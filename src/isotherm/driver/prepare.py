"""What precedes the first iteration of `sample`, `resume`, `sweep` and pilots: checks, programs, keys, data, configuration."""

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.distributed import check_equal, process_count
from isotherm.driver.data_source import DataSource, source_of
from isotherm.driver.describe import describe
from isotherm.driver.divergence import num_lost_in_data
from isotherm.driver.layout import Layout
from isotherm.driver.settings import Settings, temperature_of_draws, thread_pool_size
from isotherm.engine import program_cache
from isotherm.engine.blocks import Carry, Times
from isotherm.engine.chain_mode import choose_mode
from isotherm.engine.iteration import Parts
from isotherm.engine.packing import Packing
from isotherm.engine.program import Program, identity, is_small, sizes_of
from isotherm.engine.random_inputs import Keys, open_streams
from isotherm.engine.sharding import CHAINS, RUNS, Sharding, all_devices, choose_sharding, fill
from isotherm.foundation.errors import refuse
from isotherm.foundation.parts import number_dtype
from isotherm.foundation.positions import named_leaves
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.potentials.likelihood import LikelihoodPotential
from isotherm.potentials.potential import Potential, energy_trace, innermost
from isotherm.run.bias import MAX_COORDINATES
from isotherm.run.record_times import RecordTimes
from isotherm.run.storage.store import check_json
from isotherm.samplers.sampler import Choice, Sampler

# Numbers in a position from which on the chains of a run are spread over devices by default.
_MIN_SPLIT = 10_000
# Larger positions are not copied to recognize the potential.
_MAX_COPIED = 1_000_000
# Relative difference between a batch and its single examples that is more than rounding.
_TOLERANCE = 1e-3
_NUM_EXAMPLES = 3


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedRun:
    """A compiled run."""

    program: Program
    keys: Keys
    source: DataSource
    settings: Settings
    layout: Layout
    times: RecordTimes
    position: Any  # At the start, leaves (*lanes, ...).
    configs: tuple[dict[str, Any], ...]  # For each sampler.
    potential: Potential  # As the user gave it.
    samplers: tuple[Sampler, ...]  # After pilots.
    pilot_seconds: float = 0.0

    def energies_at(self, position: Any) -> np.ndarray:
        """Energies of positions, leaves (*lanes, ...), as the first iteration computes them; infinity replaces NaN."""
        program, (carry, records) = self.program, self.program.init(position)
        carry = self.source.work(program, self.keys, carry, 0)
        block = program.block(Times(*self.times.rule, 0, 0), self.settings.target_energy, 0, 1)
        carry, _, _ = program.advance(self.keys, self.source.block(0, 1), carry, records, block)
        return np.asarray(program.whole(carry.milestones.best_energy, "lanes"))

    def recognized_by(self, carry: Carry) -> np.ndarray:
        """Energies at the positions of a carry, by which `resume` recognizes the potential.

        NaN for large positions, which may not fit in memory twice, and for streamed data.
        """
        packed = carry.state.position
        size = sum(leaf.size for leaf in jax.tree.leaves(packed))
        if size > _MAX_COPIED or self.potential.is_streamed:
            return np.full(self.program.lanes, np.nan, self.program.energy_dtype)
        packed = self.program.whole(packed, "lanes")
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
    """Compile a run of one sampler, or of several with the same structure. Refuses starts whose energy is not finite.

    `position` has leading axes (R, P) of all runs of the program, in the order of the layout.
    """
    sampler = samplers[0]
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), position)
    settings = dataclasses.replace(settings, chain_mode=choose_mode(settings.chain_mode, potential, one))
    energy = energy_trace(potential, one)
    on_device = potential.on_device()
    _check_examples(potential, on_device, jax.tree.map(lambda leaf: leaf[0, 0], position))
    packing = Packing.of(one, sampler.kernel)
    stored = packing.around(on_device)
    mode = settings.chain_mode
    if mode == "vmap" and settings.chains_at_once is not None:
        mode = f"vmap:{settings.chains_at_once}"
    bound = [s.parts(stored, mode, number_dtype(position)) for s in samplers]
    times = settings.record_times(sampler.window)
    sharding = _sharding_of(sampler, settings, layout, one)
    lanes = (layout.total or 1) * settings.num_chains
    is_whole = is_small(lanes, one, energy.size)
    restarts = settings.on_divergence == "restart"
    if restarts and sampler.kernel.is_adjusted:
        remedy = "Its test rejects positions whose energy is not finite. Leave it out."
        refuse("on_divergence", f"'freeze' or 'stop' for {sampler.name}", "'restart'", remedy)
    bound = [parts.replace_unchecked(is_small=is_whole, restarts=restarts) for parts in bound]
    if sharding is not None:
        lanes = sharding.size_on(RUNS, layout.total or 1) * sharding.size_on(CHAINS, settings.num_chains)
    coupling_state = jax.eval_shape(lambda coupling: coupling.init(settings.num_chains), bound[0].coupling)
    sizes = sizes_of(bound[0], lanes, one, coupling_state, settings.thinning, max(len(times), settings.room))
    tracks_best = not potential.has_data if settings.track_best is None else settings.track_best
    swept = layout.num_samplers is not None and layout.total is not None
    parts = _stacked(bound, (layout.total or 1) // len(samplers)) if swept else bound[0]
    if sharding is not None:
        parts = sharding.with_parts(parts, layout.total if swept else None)
    program = Program(
        parts, layout.total, settings.num_chains, swept, tracks_best, energy.dtype, packing, collect, **sizes
    ).replace_unchecked(sharding=sharding)
    program_cache.drop_stale(program, stored, energy.shapes, energy.fingerprint)
    words, runs = settings.seed_words(), np.asarray(layout.run_numbers)
    num_chains = settings.num_chains
    if sharding is not None:
        runs, num_chains = fill(runs, 0, sharding.filled(RUNS, len(runs))), sharding.filled(CHAINS, num_chains)
    keys = open_streams(words, runs if layout.total is not None else runs[0], num_chains)
    data = source_of(potential, bound[0], keys, num_chains)
    if layout.total is None:
        position = jax.tree.map(lambda leaf: leaf[0], position)
    prepared = PreparedRun(program, keys, data, settings, layout, times, position, (), potential, tuple(samplers))
    energy = _first_energy(prepared)
    given = {"source": check_json("source", source), "choices": [dataclasses.asdict(choice) for choice in choices]}
    configs = tuple(_configuration(potential, s, prepared, energy) | given for s in samplers)
    _check_processes(configs, prepared)
    return dataclasses.replace(prepared, configs=configs)


def _check_processes(configs: Any, prepared: PreparedRun) -> None:
    """Refuse runs whose processes do not agree on what to run: their programs would wait for each other forever."""
    if process_count() == 1:
        return
    if prepared.potential.is_streamed:
        remedy = "Give the data on the device, or run one process."
        refuse("is_streamed", "False for a run of several processes", True, remedy)
    leaves = [np.ascontiguousarray(leaf).tobytes() for leaf in jax.tree.leaves(prepared.position)]
    content = json.dumps(configs, default=repr).encode()
    remedy = (
        "Give all processes the same script, data and seed. Pilots on different hardware may differ: run them on one machine, "
        "and give their result."
    )
    check_equal(content + b"".join(leaves), "run", remedy)


def _sharding_of(sampler: Sampler, settings: Settings, layout: Layout, one: Any) -> Sharding | None:
    """The devices of a run: all, or those of `devices`.

    By default the chains of a run share one device if their coupling exchanges energies in every iteration and an iteration is
    short: the exchange would take longer.
    """
    devices = all_devices() if settings.devices is None else settings.devices
    size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(one))
    is_short = size < _MIN_SPLIT and sampler.coupling.traits.reads_others
    # Several processes are there to share a run.
    is_asked = settings.devices is not None or process_count() > 1
    splits = not sampler.kernel.is_joint and (is_asked or not is_short)
    return choose_sharding(tuple(devices), layout.total, settings.num_chains, splits)


def _stacked(bound: list[Parts], repeats: int) -> Parts:
    """Parts of several samplers with a leading axis of runs; they share the potential."""
    own = [parts.replace_unchecked(potential=None) for parts in bound]
    stacked = jax.tree.map(lambda *leaves: np.repeat(np.stack(leaves), repeats, axis=0), *own)
    return stacked.replace_unchecked(potential=bound[0].potential)


def _check_examples(potential: Potential, on_device: Potential, position: Any) -> None:
    """Refuse a log likelihood that mixes the examples of a batch, for instance by subtracting their mean. Networks may (BatchNorm).

    The check evaluates near `position`: at zero, products with it would vanish. The run reports errors better than this check.
    """
    inner = innermost(potential)
    if not isinstance(inner, LikelihoodPotential) or inner.batch_size is None or inner.may_mix_examples:
        return
    rows = jax.tree.map(lambda leaf: np.asarray(leaf[:_NUM_EXAMPLES]), inner.data)
    try:
        beside = jax.tree.map(_moved, position)
        together, *alone = np.asarray(program_cache.call(_energies, on_device, beside, rows), np.float64)
    except Exception:
        return
    if abs(together - np.mean(alone)) > _TOLERANCE * np.max(np.abs([together, *alone])):
        refuse(
            inner.function_name,
            "a function whose value for an example does not depend on the other examples of its batch",
            "one that mixes them",
            "Compute what is common to all examples, such as their mean, from all data beforehand.",
        )


def _moved(leaf: Any) -> np.ndarray:
    leaf = np.asarray(leaf)
    away = 0.1 * np.cos(np.arange(leaf.size)).reshape(leaf.shape)
    return (leaf + away * (1.0 + np.abs(leaf))).astype(leaf.dtype)


def _energies(potential: Potential, position: Any, rows: Any) -> jax.Array:
    """The energy of a batch of a few examples, then of each example alone."""
    words, zero = jnp.zeros(2, jnp.uint32), jnp.zeros(1, jnp.int32)
    noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(words, words, zero, position))

    def energy(examples):
        return potential.evaluate(position, potential.as_batch(examples), noise, potential.init_model_state()).energy

    number = len(jax.tree.leaves(rows)[0])
    alone = [energy(jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], rows)) for k in range(number)]
    return jnp.stack([energy(rows), *alone])


def _first_energy(prepared: PreparedRun) -> float:
    """The energy of the first chain at its start. Compiles everything that a run needs."""
    energies = prepared.energies_at(prepared.position)
    is_lost = ~np.isfinite(energies)
    if np.any(is_lost):
        lost = num_lost_in_data(prepared.potential)
        if lost:
            got = f"{lost} that {'is' if lost == 1 else 'are'} not (NaN, infinity)"
            refuse("data", "finite numbers", got, "Remove or replace them: the energy is not finite at the start.")
        *run, chain = np.argwhere(is_lost)[0]
        got = f"an energy that is not, in chain {chain}" + (f" of run {run[0]}" if run else "")
        refuse("init", "where the energy is finite", got, "Start elsewhere, or give the energy a finite value there.")
    return float(energies.reshape(-1)[0])


def _configuration(potential: Potential, sampler: Sampler, prepared: PreparedRun, energy: float) -> dict[str, Any]:
    """A run's arguments, and the facts about its parts that checks and estimates need, in JSON."""
    collect, lead = prepared.program.collect, len(prepared.program.lanes)
    leaves = named_leaves(prepared.position)
    traits, inner = sampler.coupling.traits, innermost(potential)
    num_examples, temperature = getattr(inner, "num_data", None), temperature_of_draws(sampler, prepared.times)
    return {
        "sampler": describe(sampler),
        "potential": describe(potential),
        "texts": {"sampler": repr(sampler), "potential": repr(potential)},
        "settings": prepared.settings.as_json(),
        "position": {name: [list(leaf.shape[lead:]), str(leaf.dtype)] for name, leaf in leaves.items()},
        "collect": getattr(collect, "__qualname__", type(collect).__name__),
        "start_energy": energy,
        "temperature": temperature,
        "claims_distribution": temperature != 0.0 and traits.follows_distribution,
        "weight_edges": traits.weight_edges,
        "is_exact": potential.is_exact,
        "num_examples": None if num_examples is None else int(num_examples),
        "batch_size": getattr(inner, "batch_size", None),
        "batching": getattr(inner, "batching", None),
        "is_batch_shared": potential.is_batch_shared,
        "is_streamed": potential.is_streamed,
        "reads_noise": bool(traits.noise and potential.has_residuals),
        "reads_whole_energy": potential.coupling_includes_prior,
        "reduces_variance": sampler.estimator.reduces_variance,
        "is_constrained": potential.space is not None,
        "has_jacobian": potential.space is not None and potential.space.has_jacobian,
        "is_joint": sampler.kernel.is_joint,
        "is_adjusted": sampler.kernel.is_adjusted,
        "is_network": inner.is_network,
        "mistaken_for": inner.mistaken_for,
        **_facts_of_starts(prepared.position, lead, potential),
        "thread_pool_size": thread_pool_size(),
        "num_devices": 1 if prepared.program.sharding is None else len(prepared.program.sharding.devices),
    }


def _facts_of_starts(position: Any, lead: int, potential: Potential) -> dict[str, Any]:
    """Whether several chains start at one position, and the standard deviation of the starts in each coordinate."""
    leaves = jax.tree.leaves(position)
    number = int(np.prod(leaves[0].shape[:lead]))
    rows = [np.asarray(leaf).reshape(number, -1) for leaf in leaves]
    has_one = number > 1 and all(np.array_equal(leaf, np.broadcast_to(leaf[:1], leaf.shape)) for leaf in rows)
    spread = None
    if potential.space is None and number > 1 and 0 < sum(leaf.shape[1] for leaf in rows) <= MAX_COORDINATES:
        spread = np.std(np.concatenate([leaf.astype(np.float64) for leaf in rows], axis=1), axis=0).tolist()
    return {"has_one_start": has_one, "start_spread": spread}
