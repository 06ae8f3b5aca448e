"""`sample`: run a sampler on a potential."""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from isotherm.driver.choose import collect_of
from isotherm.driver.describe import environment
from isotherm.driver.drive import HostOptions, ResumePoint, drive
from isotherm.driver.layout import Layout
from isotherm.driver.lock import LOCK, locked
from isotherm.driver.prepare import PreparedRun, prepare
from isotherm.driver.progress import Status
from isotherm.driver.settings import Settings
from isotherm.engine.program import identity
from isotherm.foundation.calls import checked_call
from isotherm.foundation.docstrings import entries
from isotherm.foundation.errors import check_folder, check_real, refuse
from isotherm.foundation.user_functions import check_function
from isotherm.pilots.resolve import Resolved, checked_start, resolve_at
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import choose_init, first_position
from isotherm.run.run import Run
from isotherm.run.storage.formats import FORMAT
from isotherm.run.storage.store import write_arrays, write_json
from isotherm.samplers.sampler import AnySampler, as_potential, check_sampler


@checked_call()
def sample(
    potential: Potential | Callable[[Any], Any],
    sampler: AnySampler,
    *,
    num_steps: int,
    num_chains: int | None = None,
    num_runs: int | None = None,
    num_ladders: int | None = None,
    seed: Any = 0,
    thinning: int = 1,
    burn_in: int = 0,
    init: Any = None,
    out: str | pathlib.Path | None = None,
    resume: bool = False,
    collect: Callable[[Any], Any] = identity,
    target_energy: float = -np.inf,
    track_best: bool | None = None,
    chain_mode: str = "auto",
    block_length: int | None = None,
    checkpoint_every: float = 60.0,
    progress: bool | None = None,
    throw: bool = False,
    callback: Callable[[Status], Any] | None = None,
    measure_bias: bool = True,
    source: dict[str, Any] | None = None,
) -> Run:
    """Run a sampler on a potential.

    The result depends on the arguments alone: not on the block length, on checkpoints, or on stopping and resuming.

    Args:
        potential: what to sample; a plain function is taken as an energy.
        sampler: such as `iso.sgld(step_size=0.01)`.
        num_steps: number of iterations.
        num_chains: chains in a run, which couplings connect; None is the number that the coupling or `iso.per_chain` needs, or 1.
        num_runs: independent repeats of the whole, in one program; None for one without an axis for it.
        num_ladders: independent ladders of an exchange sampler, which are the chains of its run; None is 2, so that they can be
            compared.
        seed: an integer, or a key of `jax.random.key`.
        thinning: iterations between two draws.
        burn_in: iterations before the first draw.
        init: a position, `iso.per_chain(positions)`, or a function of a key, called for every chain. Potentials of networks have
            one of their own.
        out: a folder for draws and checkpoints; None keeps draws in memory.
        resume: whether to continue the run in `out`, if there is one, so that a script can be run again after it was stopped. All
            else must be as it was; only `num_steps` may be larger.
        collect: a function of a position whose result is kept; the identity keeps all of it.
        target_energy: the energy whose first hit is reported.
        track_best: whether the best position is followed at every iteration; None does it for potentials without data.
        chain_mode: "vmap" runs the chains of an iteration at once, "map" one after another, "unroll" side by side in one program;
            "auto" takes the first, or for convolutions, which are slow in batches of chains, the last on a GPU and "map" elsewhere.
        block_length: iterations between two returns to the host; None adapts it to the clock.
        checkpoint_every: seconds between two checkpoints, with a folder.
        progress: whether to show a progress bar; None shows it on a terminal.
        throw: whether a diverged chain raises `DivergenceError`; otherwise it warns, and its draws have weight zero.
        callback: called with a `Status` about twice a second; the run ends early where it returns True.
        measure_bias: whether to measure `Run.bias`, for a few gradients and, with a folder, their compilation at the end.
        source: where the potential came from, stored with the run for the command line.

    Returns:
        A `Run`, whose arrays have axes (chain, draw, ...), or (run, chain, draw, ...) where `num_runs` is given.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> energy = lambda x: 0.5 * (x ** 2).sum()
        >>> run = iso.sample(energy, iso.sgld(step_size=0.1), num_steps=1000, num_chains=4, init=jnp.zeros(2))
        >>> run.draws.shape
        (4, 1000, 2)
    """
    began = time.perf_counter()
    potential, sampler = as_potential(potential), check_sampler(sampler)
    check_function("collect", collect, "lambda x: x")
    if callback is not None:
        check_function("callback", callback, "lambda status: status.iteration > 1000", num_arguments=1)
    out = folder = None if out is None else check_folder("out", out, 'Write `out="my-run"`, say.')
    init = choose_init(init, potential)
    check_real("checkpoint_every", checkpoint_every, "Give seconds.", minimum=0.0)
    if resume and folder is None:
        refuse("resume", "given with `out`", "no folder", "Pass out=..., the folder of the run to go on with.")
    given: dict[str, Any] = {"num_steps": num_steps, "num_chains": num_chains, "num_runs": num_runs}
    given |= {"num_ladders": num_ladders, "seed": seed, "thinning": thinning, "burn_in": burn_in}
    given |= {"target_energy": target_energy, "track_best": track_best}
    given |= {"chain_mode": chain_mode, "block_length": block_length}
    # Refuse wrong input before a pilot runs, which may choose the number of chains.
    settings, position = checked_start(potential, sampler, init, collect, **given)
    host = HostOptions(folder, checkpoint_every, progress, throw, callback, measure_bias)
    if resume and folder is not None and (folder / "run.json").exists():
        from isotherm.api.resume import resume_with

        return resume_with(potential, sampler, settings, first_position(init, seed), collect, host)
    with contextlib.ExitStack() as stack:
        if folder is not None:
            stack.enter_context(_claim(folder))
        resolved = resolve_at(potential, sampler, settings, position, progress)
        if resolved.sampler is not sampler:
            settings, position = checked_start(potential, resolved.sampler, init, collect, **given)
        prepared = ready(potential, resolved, settings, position, collect, source)
        if folder is not None:
            _write_start(prepared, folder)
        return drive(prepared, host, ResumePoint(), began)[0]


# Descriptions of the arguments that functions like `sample` share with it.
ARGUMENTS = entries((sample.__doc__ or "").partition("Args:\n")[2])


def ready(
    potential: Potential,
    resolved: Resolved,
    settings: Settings,
    position: Any,
    collect: Callable[[Any], Any],
    source: dict[str, Any] | None,
) -> PreparedRun:
    """A prepared run of one sampler, after `check_run`."""
    layout, kept = Layout(None, settings.num_runs, settings.num_ladders), collect_of(collect, potential)
    samplers, choices = (resolved.sampler,), resolved.choices
    prepared = prepare(potential, samplers, settings, layout, position, kept, source, choices=choices)
    return dataclasses.replace(prepared, pilot_seconds=resolved.seconds)


def _write_start(prepared: PreparedRun, folder: pathlib.Path) -> None:
    write_arrays(folder / "start", prepared.position)
    # Written last: a folder with this file can be resumed.
    write_json(folder / "run.json", {"format": FORMAT, "config": prepared.configs[0], "environment": environment()})


@contextlib.contextmanager
def _claim(folder: pathlib.Path) -> Iterator[None]:
    """Lock a folder for a new run. Existing files are kept, and a refused run leaves no trace."""
    is_new = not folder.exists()
    if folder.is_dir() and not (folder / LOCK).exists():
        # No lock in a folder with other files.
        _refuse_contents(folder)
    with locked(folder, "out") as lock:
        _refuse_contents(folder)
        try:
            yield
        finally:
            if folder.exists() and list(folder.iterdir()) == [lock]:
                lock.unlink()
                if is_new:
                    folder.rmdir()


def _refuse_contents(folder: pathlib.Path) -> None:
    """Refuse a folder that holds a run, or files other than those of an interrupted start."""
    names = {path.name for path in folder.iterdir()}
    if "run.json" in names:
        remedy = "Pass resume=True to go on with it (`isotherm resume` in a shell), or choose another folder."
        refuse("out", "a folder without a run", f"{folder}, which holds one", remedy)
    ours = {LOCK, *(["start"] if (folder / "start" / "structure.json").exists() and LOCK in names else [])}
    if names - ours:
        got = f"{folder}, which holds {', '.join(sorted(names - ours)[:3])}" + ", ..." * (len(names - ours) > 3)
        refuse("out", "a new or empty folder", got, "Choose another name: runs do not share a folder with other files.")
