"""`sample`: the host loop around the compiled program."""

import contextlib
import pathlib
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.engine.program import Carry, Program
from isotherm.foundation.errors import check_real, refuse
from isotherm.potentials.potential import Potential
from isotherm.runs.pytree_json import named_leaves
from isotherm.runs.run import Run
from isotherm.runs.store import FORMAT, MemorySink, StoreSink, write_arrays, write_json
from isotherm.sampling.checkpoints import Checkpoints
from isotherm.sampling.data_source import Feeder, feeder_of
from isotherm.sampling.describe import describe, environment
from isotherm.sampling.harvest import final_statistics, on_host, refuse_run_without_draws, report_divergence
from isotherm.sampling.lock import locked
from isotherm.sampling.pilot import settle
from isotherm.sampling.progress import Progress, Status
from isotherm.sampling.sampler import Sampler, as_potential
from isotherm.sampling.settings import Settings, build_program, check_start, thread_pool_size
from isotherm.sampling.start import start_positions

_SECONDS_PER_BLOCK = 0.5
_GROWTH_PER_BLOCK = 16
# Draws at which a scheduled temperature is looked at.
_MOST_LOOKS = 100_000


def identity(position: Any) -> Any:
    """Keeps the whole position."""
    return position


def sample(
    potential: Potential | Callable[[Any], Any],
    sampler: Sampler,
    *,
    num_steps: int,
    num_chains: int | None = None,
    num_runs: int = 1,
    seed: int = 0,
    thinning: int = 1,
    burn_in: int = 0,
    init: Any = None,
    out: str | pathlib.Path | None = None,
    collect: Callable[[Any], Any] = identity,
    target_energy: float = -np.inf,
    track_best: bool | None = None,
    chain_mode: str = "vmap",
    block_length: int | None = None,
    checkpoint_every: float = 60.0,
    progress: bool | None = None,
    throw: bool = False,
    callback: Callable[[Status], Any] | None = None,
    source: dict[str, Any] | None = None,
) -> Run:
    """Run a sampler on a potential.

    The result is a function of the arguments alone: not of the block length, of checkpoints, or of having been stopped and
    resumed.

    Args:
        potential: what to sample; a plain function is taken as an energy.
        sampler: how, such as `iso.sgld(step_size=0.01)`.
        num_steps: iterations.
        num_chains: chains in a run, among which couplings act; None is what the coupling needs, or 1.
        num_runs: independent repeats of the whole, in one program.
        seed: of all randomness.
        thinning: iterations between two draws.
        burn_in: iterations before the first draw.
        init: a position, `iso.per_chain(positions)`, or a function of a key, called for every chain.
        out: a folder to stream draws and checkpoints to; None keeps draws in memory.
        collect: what to keep of a position; by default all of it.
        target_energy: the energy whose first hit is reported.
        track_best: whether the best position is followed at every iteration; None does it for potentials without data.
        chain_mode: "vmap" runs the chains of an iteration at once, "map" one after another (faster for convolutions).
        block_length: iterations between two returns to the host; None adapts it to the clock.
        checkpoint_every: seconds between two checkpoints, where there is a folder.
        progress: whether to show a progress bar; None shows it on a terminal.
        throw: whether a diverged chain raises `DivergenceError`; otherwise it warns, and its draws have weight zero.
        callback: called with a `Status` about twice a second; the run ends early where it returns True.
        source: where the potential came from, kept with the run for the command line.

    Returns:
        A `Run`, whose arrays have axes (run, chain, draw, ...).

    Example:
        >>> import isotherm as iso
        >>> energy = lambda x: 0.5 * (x ** 2).sum()
        >>> run = iso.sample(energy, iso.sgld(step_size=0.1), num_steps=1000, num_chains=4, init=jnp.zeros(2))
        >>> run.draws.shape
        (1, 4, 1000, 2)
    """
    potential = as_potential(potential)
    num_chains = sampler.choose_num_chains(num_chains)
    settings = Settings(
        num_steps, num_chains, num_runs, seed, thinning, burn_in, target_energy, track_best, chain_mode, block_length
    )
    check_real("checkpoint_every", checkpoint_every, "Give seconds.", minimum=0.0)
    sampler.coupling.check(potential)
    sampler.estimator.check(potential)
    times = settings.record_times(sampler)
    with contextlib.ExitStack() as stack:
        folder = None if out is None else stack.enter_context(_claimed(pathlib.Path(out)))
        seed_key = settings.seed_key()
        position = start_positions(init, seed_key, num_runs, num_chains, sampler.kernel)
        sampler = settle(sample, potential, sampler, settings, position)
        program = build_program(potential, sampler, settings, position, collect, len(times))
        feeder = feeder_of(potential, program.parts, seed_key, num_runs, num_chains)
        start_energy = check_start(program, potential, seed_key, feeder.block(0, 1), position)
        config = configuration(potential, sampler, settings, times, position, collect, start_energy, source)
        carry = program.init(position)
        checkpoints = None
        if folder is not None:
            checkpoints = Checkpoints(folder)
            write_arrays(folder / "start", position)
            # Written last: a folder with this file can be resumed.
            write_json(folder / "run.json", {"format": FORMAT, "config": config, "environment": environment()})
        return drive(
            program,
            settings,
            times,
            feeder,
            carry,
            config,
            folder,
            checkpoints,
            checkpoint_every,
            progress,
            throw,
            callback,
        )


def drive(
    program: Program,
    settings: Settings,
    times: np.ndarray,
    feeder: Feeder,
    carry: Carry,
    config: dict[str, Any],
    folder: pathlib.Path | None = None,
    checkpoints: Checkpoints | None = None,
    checkpoint_every: float = 60.0,
    progress: bool | None = None,
    throw: bool = False,
    callback: Callable[[Status], Any] | None = None,
    first: int = 0,
    num_done: int = 0,
) -> Run:
    """Iterations `first`, ..., num_steps - 1, with `num_done` records already kept, and the `Run` of all of them."""
    seed_key = settings.seed_key()
    target = jnp.asarray(settings.target_energy, carry.book.best_energy.dtype)
    sink = MemorySink(len(times)) if folder is None else StoreSink(folder / "records", len(times))
    feed = feeder.block(first, first + 1)
    records = program.init_records(seed_key, feed, carry)
    iteration, pace = first, settings.block_length or program.chunk
    with Progress(config["sampler"]["name"], first, settings.num_steps, progress) as bar:
        nothing = _pad(times[:0], program.slots + program.rows)
        tick = time.perf_counter()
        carry, records, count = program.advance(seed_key, feed, carry, records, nothing, target, first, first)
        # No iteration and no record: everything is compiled when they have arrived.
        on_host(records, int(count), program.parts.kernel.is_stack)
        began = saved = time.perf_counter()
        compile_seconds = began - tick
        while iteration < settings.num_steps:
            carry = _periodic_work(program, seed_key, feeder, carry, iteration)
            last = _end_of_block(program, settings, times, iteration, num_done, min(pace, feeder.longest or pace))
            feed = feeder.block(iteration, last)
            upcoming = _pad(times[num_done : num_done + program.slots], program.slots + program.rows)
            tick = time.perf_counter()
            carry, records, count = program.advance(seed_key, feed, carry, records, upcoming, target, iteration, last)
            count = int(count)
            seconds = time.perf_counter() - tick
            energy = float(np.min(np.asarray(carry.book.best_energy)))
            if count:
                kept = on_host(records, count, program.parts.kernel.is_stack)
                sink.write(num_done, kept)
                energy = float(np.mean(kept["energies"][:, :, -1]))
            length, iteration, num_done = last - iteration, last, num_done + count
            bar.update(iteration, energy)
            if settings.block_length is None:
                wanted = length * _SECONDS_PER_BLOCK / max(seconds, 1e-6)
                pace = int(np.clip(wanted, 1, min(_GROWTH_PER_BLOCK * pace, settings.num_steps)))
            if checkpoints is not None and time.perf_counter() - saved > checkpoint_every:
                sink.flush()
                checkpoints.save(iteration, carry, num_done)
                saved = time.perf_counter()
            if np.all(np.asarray(carry.book.diverged_at) >= 0):
                break
            if callback is not None and callback(Status.of(iteration, carry.book)) is True:
                break
    sink.flush()
    arrays = sink.read()
    seconds = time.perf_counter() - began
    spent = {"seconds": seconds, "compile_seconds": compile_seconds}
    diverged_at = np.asarray(carry.book.diverged_at)
    if num_done == 0 or np.all((diverged_at >= 0) & (diverged_at <= times[0])):
        refuse_run_without_draws(diverged_at)
    if checkpoints is not None:
        checkpoints.save(iteration, carry, num_done)
        checkpoints.close()
    carry = _measured_at_the_end(program, seed_key, feeder, carry, iteration)
    run = Run.assemble(arrays, times, final_statistics(program, carry), config, environment(), iteration, **spent)
    if folder is not None:
        run.write_summary_files(folder)
    report_divergence(diverged_at, throw)
    return run


def configuration(
    potential: Potential,
    sampler: Sampler,
    settings: Settings,
    times: np.ndarray,
    position: Any,
    collect: Callable[[Any], Any],
    start_energy: float,
    source: dict[str, Any] | None,
) -> dict[str, Any]:
    """What a run was asked for, in JSON."""
    shapes = {name: [list(leaf.shape[2:]), str(leaf.dtype)] for name, leaf in named_leaves(position).items()}
    return {
        "sampler": describe(sampler),
        "potential": describe(potential),
        "settings": {key: value for key, value in vars(settings).items() if key != "block_length"},
        "position": shapes,
        "collect": getattr(collect, "__qualname__", type(collect).__name__),
        "start_energy": start_energy,
        "temperature": temperature_of_draws(sampler, times),
        "is_exact": potential.is_exact,
        "thread_pool_size": thread_pool_size(),
        "source": source,
    }


def temperature_of_draws(sampler: Sampler, times: np.ndarray) -> float | None:
    """The temperature at the iterations that are recorded; None where it is not one and the same."""
    if not callable(sampler.temperature):
        return float(sampler.temperature)
    looked_at = times[np.unique(np.linspace(0, len(times) - 1, _MOST_LOOKS).astype(int))]
    found = np.unique(np.asarray(jax.vmap(sampler.temperature)(jnp.asarray(looked_at, jnp.int32))))
    return float(found[0]) if len(found) == 1 else None


@contextlib.contextmanager
def _claimed(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder that holds no run, while it is locked. What a start that was cut short left there is cleared."""
    with locked(folder, "out"):
        if (folder / "run.json").exists():
            remedy = "Choose another folder, or continue this one with `iso.resume` or `isotherm resume`."
            refuse("out", "a folder without a run", f"{folder}, which holds one", remedy)
        for name in ("start", "checkpoints", "records"):
            shutil.rmtree(folder / name, ignore_errors=True)
        yield folder


def _measured_at_the_end(program: Program, seed_key: Any, feeder: Feeder, carry: Carry, iteration: int) -> Carry:
    """The carry after the one measurement of couplings that want no other, for what a run reports."""
    coupling = program.parts.coupling
    if coupling.measure_every is not None or coupling.num_measured == 0 or program.parts.potential.is_exact:
        return carry
    return program.measure(seed_key, feeder.measured(iteration), carry, jnp.asarray(iteration, jnp.int32))


def _periodic_work(program: Program, seed_key: Any, feeder: Feeder, carry: Carry, iteration: int) -> Carry:
    measure_every, refresh_every = program.parts.measure_every, program.parts.estimator.refresh_every
    is_first = iteration == 0 and program.parts.coupling.measure_every is not None
    if is_first or (measure_every is not None and iteration % measure_every == 0):
        carry = program.measure(seed_key, feeder.measured(iteration), carry, jnp.asarray(iteration, jnp.int32))
    if refresh_every is not None and iteration % refresh_every == 0:
        carry = feeder.refreshed(program, carry)
    return carry


def _end_of_block(program: Program, settings: Settings, times: np.ndarray, first: int, num_done: int, pace: int) -> int:
    """Where a block that starts at `first` ends: by the clock, at periodic work, or when its buffer is full."""
    ends = [settings.num_steps, first + pace]
    for every in (program.parts.measure_every, program.parts.estimator.refresh_every):
        if every is not None:
            ends.append((first // every + 1) * every)
    if num_done + program.slots < len(times):
        ends.append(int(times[num_done + program.slots]))
    return min(ends)


def _pad(times: np.ndarray, length: int) -> np.ndarray:
    padded = np.full(length, np.iinfo(np.int32).max, np.int32)
    padded[: len(times)] = times
    return padded
