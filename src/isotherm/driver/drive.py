"""The host loop: blocks of iterations, progress, records, checkpoints, and the runs at the end."""

import dataclasses
import pathlib
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from isotherm.diagnostics.bias_probe import BiasProbe
from isotherm.diagnostics.precision import fewest_effective, is_look, next_look
from isotherm.distributed import barrier, largest_of, process_index
from isotherm.driver.checkpoints import Checkpoints
from isotherm.driver.describe import environment
from isotherm.driver.device_memory import device_memory
from isotherm.driver.divergence import refuse_run_without_draws, report_divergence, report_restarts
from isotherm.driver.interrupts import Interrupts
from isotherm.driver.layout import records_to_host, without_diverged
from isotherm.driver.prepare import PreparedRun
from isotherm.driver.progress import Progress, Status
from isotherm.driver.provenance import logged
from isotherm.driver.run_folder import check_exists, writing_to
from isotherm.engine import program_cache
from isotherm.engine.blocks import Carry, Times
from isotherm.engine.program import Program, identity
from isotherm.foundation.checks import CheckedParts
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.potentials.reference import ReferenceChecks
from isotherm.run.run import Run
from isotherm.run.storage.saving import write_end, write_progress
from isotherm.run.storage.store import MemorySink, SharedSink, StoreSink

_SECONDS_PER_BLOCK = 0.5
_SECONDS_TO_FIRST_CHECKPOINT = 3.0
_GROWTH_PER_BLOCK = 16


@dataclasses.dataclass(frozen=True)
class HostOptions:
    """Options of the host loop; see `isotherm.sample`."""

    folder: pathlib.Path | None = None
    checkpoint_every: float = 60.0
    progress: bool | None = None
    throw: bool = False
    callback: Callable[[Status], Any] | None = None
    measure_bias: bool = True
    at_end: Callable[[Carry], Any] | None = None  # Called with the last state.


@dataclasses.dataclass(frozen=True)
class ResumePoint:
    """Where a run resumes; by default at its start."""

    carry: Carry | None = None  # Before `iteration`.
    iteration: int = 0
    num_records: int = 0
    seconds: float = 0.0  # Spent before.


@logged
@transfers_on_purpose
def drive(prepared: PreparedRun, host: HostOptions, reached: ResumePoint, since: float) -> list[Run]:
    """Run all iterations from `reached` on: one run for each sampler. `since` is the `time.perf_counter` before pilots."""
    program, settings, times, layout = prepared.program, prepared.settings, prepared.times, prepared.layout
    axis = layout.draw_axis
    sink: MemorySink | StoreSink | SharedSink = MemorySink(len(times), axis)
    checkpoints: Checkpoints | None = None
    is_writer = process_index() == 0
    if host.folder is not None:
        records_folder = host.folder / "records"
        given = (records_folder, len(times), axis, reached.num_records)
        sink = StoreSink(*given) if is_writer else SharedSink(records_folder)
        checkpoints = Checkpoints(host.folder)
    carry, records = program.init(prepared.position)
    carry = carry if reached.carry is None else program.on_devices(reached.carry)
    iteration, num_done = reached.iteration, reached.num_records
    pace = settings.block_length or program.chunk
    began = time.perf_counter()
    timings = {"seconds": 0.0, "compile_seconds": began - since - prepared.pilot_seconds}
    timings |= {"pilot_seconds": prepared.pilot_seconds, "earlier_seconds": reached.seconds}
    saved = began - max(host.checkpoint_every - _SECONDS_TO_FIRST_CHECKPOINT, 0.0)
    lanes = int(np.prod(program.lanes))
    name = prepared.configs[0]["sampler"]["name"]

    def save(checkpoints: Checkpoints) -> None:
        with writing_to(host.folder, iteration):
            sink.flush()
            checkpoints.save(iteration, program.to_host(carry), num_done, prepared.recognized_by(carry))
            seconds = timings["seconds"] or time.perf_counter() - began
            if is_writer:
                write_progress(checkpoints.folder, iteration, times, timings | {"seconds": seconds})

    def judged() -> float | None:
        """The fewest effective draws so far, at counts of draws that do not depend on blocks; None elsewhere."""
        if settings.num_effective is None or not is_look(num_done):
            return None
        with writing_to(host.folder, iteration):
            sink.flush()
        barrier("records")
        records = jax.tree.map(lambda leaf: np.asarray(leaf[:, :num_done]), sink.read())
        given = (records["draws"], records["energies"], records["log_weights"])
        return fewest_effective(*given, settings.num_effective)

    def is_precise() -> bool:
        return fewest is not None and settings.num_effective is not None and fewest >= settings.num_effective

    shows = host.progress if is_writer else False
    with Interrupts() as interrupts, Progress(name, iteration, settings.num_steps, lanes, shows) as bar:
        fewest = judged()
        # A run that stopped at a divergence stays there when it is resumed.
        is_stopped = settings.on_divergence == "stop" and settings.is_over(
            program.whole(carry.milestones.diverged_at, "lanes")
        )
        while iteration < settings.num_steps and not is_precise() and not is_stopped:
            carry = prepared.source.work(program, prepared.keys, carry, iteration)
            last = _end_of_block(prepared, iteration, num_done, pace)
            stream = prepared.source.block(iteration, last)
            upcoming = Times(*times.rule, num_done, min(num_done + program.max_records, len(times)))
            block = program.block(upcoming, settings.target_energy, iteration, last)
            tick = time.perf_counter()
            with device_memory(host.folder, iteration):
                # The end of a run that stops at a divergence must not depend on that of its block.
                before = _copied(program, carry) if settings.on_divergence == "stop" else None
                carry, records, count = program.advance(prepared.keys, stream, carry, records, block)
                if before is not None and (end := _first_divergence(program, carry)) is not None:
                    last, carry = end + 1, program.on_devices(before)
                    block = program.block(upcoming, settings.target_energy, iteration, last)
                    carry, records, count = program.advance(prepared.keys, stream, carry, records, block)
                count = int(count)
            seconds = time.perf_counter() - tick
            milestones = program.whole(carry.milestones._replace(best_position=()), "lanes")
            energy = float(np.min(np.asarray(milestones.best_energy)))
            check_exists(host.folder, iteration)
            if count:
                kept = records_to_host(program, records, count, layout)
                diverged_at = layout.state(settings.lost_at(milestones.diverged_at))
                drawn_at = np.asarray(times[num_done : num_done + count])
                kept["log_weights"] = without_diverged(kept, drawn_at, diverged_at, layout.num_ladders)
                with writing_to(host.folder, iteration):
                    sink.write(num_done, kept)
                energy = float(np.mean(np.take(kept["energies"], -1, axis)))
            length, iteration, num_done = last - iteration, last, num_done + count
            fewest = judged()
            bar.update(iteration, energy)
            is_due = checkpoints is not None and time.perf_counter() - saved > host.checkpoint_every
            # No process decides alone.
            decided = (seconds, is_due, interrupts.received or 0)
            seconds, is_due, signal_number = largest_of(decided, "end of block")
            if signal_number:
                interrupts.received = signal.Signals(int(signal_number))
            if settings.block_length is None:
                wanted = length * _SECONDS_PER_BLOCK / max(seconds, 1e-6)
                pace = int(np.clip(wanted, 1, min(_GROWTH_PER_BLOCK * pace, settings.num_steps)))
            if checkpoints is not None and is_due:
                save(checkpoints)
                saved = time.perf_counter()
            if interrupts.received is not None:
                break
            if settings.is_over(milestones.diverged_at):
                break
            if host.callback is not None:
                status = Status.of(iteration, program.whole(carry.milestones, "lanes"))
                if largest_of((host.callback(status) is True,), "callback")[0]:
                    break
    with writing_to(host.folder, iteration):
        sink.flush()
    timings["seconds"] = time.perf_counter() - began
    if host.at_end is not None:
        host.at_end(program.to_host(carry))
    diverged_at = layout.state(settings.lost_at(program.whole(carry.milestones.diverged_at, "lanes")))
    is_lost = bool(np.all(diverged_at >= 0))
    is_without_draws = num_done == 0 or bool(np.all((diverged_at >= 0) & (diverged_at <= times[0])))
    if checkpoints is not None:
        # A run stopped before its first draw can be resumed; one that diverged there cannot.
        if not (is_without_draws and is_lost):
            save(checkpoints)
        checkpoints.close()
    if interrupts.received is not None:
        is_ending = interrupts.received is signal.SIGTERM
        if is_writer:
            _report_interrupt(prepared, host.folder, iteration, is_lost=is_without_draws or is_ending)
        if is_without_draws:
            interrupts.finish()
            raise KeyboardInterrupt
    if is_without_draws:
        refuse_run_without_draws(diverged_at, settings.is_over(diverged_at), prepared.potential)
    stats = {name: value for name, value in program.statistics(carry).items() if jax.tree.leaves(value)}
    stats = layout.state(stats) | {"diverged_at": diverged_at}
    if is_precise():
        stats["fewest_effective"] = np.asarray(fewest)
    if prepared.potential.space is not None and "best_position" in stats:
        stats["best_position"] = jax.tree.map(np.asarray, prepared.potential.space(stats["best_position"]))
    probes: list[BiasProbe | None] = [None] * len(prepared.samplers)
    if host.measure_bias and interrupts.received is None and not is_lost:
        probes = _bias_probes(prepared, carry)
    reference = ReferenceChecks(prepared.potential)
    parts = [
        CheckedParts(
            (sampler.coupling, sampler.kernel, prepared.potential, *(reference,) * sampler.coupling.traits.is_path)
        )
        for sampler in prepared.samplers
    ]
    # The result must not depend on where the block ended.
    num_steps = min(iteration, int(diverged_at.max()) + 1) if is_lost else iteration
    known = {"stats": stats, "config": prepared.configs[0], "environment": environment(), "num_steps": num_steps}
    barrier("records")
    run = Run.assemble(sink.read(), times, **known, **timings)
    if layout.num_samplers is None:
        run = dataclasses.replace(run, bias_probe=probes[0], parts=parts[0]).without_noise()
    if host.folder is not None and is_writer:
        with writing_to(host.folder, iteration):
            write_end(run, host.folder)
    barrier("end of run")
    has_ladder, stops = layout.num_ladders is not None, settings.on_divergence == "stop"
    report_divergence(diverged_at, host.throw, has_ladder, stops, prepared.potential)
    report_restarts(stats.get("num_restarts", np.zeros(1)), host.throw, prepared.potential)
    interrupts.finish()
    if layout.num_samplers is None:
        return [run]
    each = enumerate(zip(prepared.configs, probes, parts, strict=True))
    return [run.of_sampler(number, *own).without_noise() for number, own in each]


def _copied(program: Program, carry: Carry) -> Carry:
    """A copy of a carry on the host: programs overwrite the one that they are given."""
    return jax.tree.map(np.array, program.to_host(carry))


def _first_divergence(program: Program, carry: Carry) -> int | None:
    """The first iteration at which a chain diverged."""
    diverged_at = np.asarray(program.whole(carry.milestones.diverged_at, "lanes"))
    return int(diverged_at[diverged_at >= 0].min()) if np.any(diverged_at >= 0) else None


def _bias_probes(prepared: PreparedRun, carry: Carry) -> list[BiasProbe | None]:
    """A probe for each sampler of a program; None if records do not hold positions that follow exp(-U / T)."""
    program, layout = prepared.program, prepared.layout
    if program.collect is not identity and program.collect is not prepared.potential.space:
        return [None] * len(prepared.samplers)
    if any(sampler.kernel.moves_copies for sampler in prepared.samplers):
        return [None] * len(prepared.samplers)
    coupling = layout.state(program.whole(carry.state.coupling, "coupled")) if program.is_weighted else ()
    preconditioner = layout.state(program.preconditioner(carry))
    if layout.num_ladders is not None:
        # Replicas alternate on the target rung.
        preconditioner = jax.tree.map(lambda leaf: np.mean(leaf, axis=len(layout.axes)), preconditioner)
    one = jax.tree.map(lambda leaf: np.zeros(leaf.shape[len(program.lanes) :], leaf.dtype), prepared.position)
    read = program_cache.read_by(prepared.potential)
    given = (prepared.settings.seed_words(), coupling, preconditioner, one, read)
    probes = [BiasProbe(prepared.potential, sampler, *given) for sampler in prepared.samplers]
    return [probe if layout.num_samplers is None else probe.at(number) for number, probe in enumerate(probes)]


def _report_interrupt(prepared: PreparedRun, folder: pathlib.Path | None, iteration: int, is_lost: bool) -> None:
    """Print how far a run came and how to resume it; without a folder its draws may be lost."""
    total = prepared.settings.num_steps
    if folder is None and is_lost:
        remedy = "Its draws are lost. Pass out=... to be able to resume."
    elif folder is None:
        remedy = "The run that is returned has the draws so far. Pass out=... to be able to resume."
    elif prepared.configs[0]["source"] is not None:
        remedy = f"Everything is on disk. Resume with: isotherm resume {folder}"
    else:
        remedy = f'Everything is on disk. Resume with: iso.resume("{folder}", potential, sampler)'
    print(f"Interrupted after {iteration:,} of {total:,} iterations. {remedy}", file=sys.stderr, flush=True)


def _end_of_block(prepared: PreparedRun, first: int, num_done: int, pace: int) -> int:
    """The end of a block that starts at `first`: after half a second, at work of the host, or when its buffer is full."""
    times, size = prepared.times, prepared.program.max_records
    ends = [prepared.settings.num_steps, first + min(pace, prepared.source.longest)]
    ends += [(first // every + 1) * every for every in prepared.source.periods]
    if num_done + size < len(times):
        ends.append(int(times[num_done + size]))
    if prepared.settings.num_effective is not None and next_look(num_done) <= len(times):
        ends.append(int(times[next_look(num_done) - 1]) + 1)
    return min(ends)
