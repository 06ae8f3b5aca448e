"""`sample` runs a sampler on a potential; `resume` continues a stopped run, with the same result as without the stop."""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from isotherm.api.automatic import NAME, Automatic, Wanted, find_run, limits_of
from isotherm.api.resuming import prepare_resolved, read_configuration, resume_from
from isotherm.driver.device_memory import device_memory
from isotherm.driver.drive import HostOptions, ResumePoint, drive
from isotherm.driver.layout import Layout
from isotherm.driver.prepare import PreparedRun, prepare
from isotherm.driver.progress import Status
from isotherm.driver.run_folder import claim, locked, write_start
from isotherm.driver.settings import Settings, check_devices, collect_of
from isotherm.engine.program import identity
from isotherm.foundation.calls import checked_call
from isotherm.foundation.docstrings import documented, entries
from isotherm.foundation.errors import check_folder, check_integer, check_real, refuse
from isotherm.foundation.user_functions import check_function
from isotherm.pilots.resolve import checked_start, resolve_at
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import choose_init, first_position
from isotherm.run.run import Run
from isotherm.samplers.independent import sgld
from isotherm.samplers.sampler import AnySampler, as_potential, check_sampler

Collect = Callable[[Any], Any]


@checked_call()
def sample(
    potential: Potential | Callable[[Any], Any],
    sampler: AnySampler | None = None,
    *,
    budget: int | str | None = None,
    num_effective: int | None = None,
    num_steps: int | None = None,
    num_chains: int | None = None,
    num_runs: int | None = None,
    num_ladders: int | None = None,
    seed: Any = 0,
    thinning: int = 1,
    burn_in: int = 0,
    init: Any = None,
    out: str | pathlib.Path | None = None,
    resume: bool = False,
    collect: Collect = identity,
    target_energy: float = -np.inf,
    track_best: bool | None = None,
    chain_mode: str = "auto",
    devices: Any = None,
    chains_at_once: int | None = None,
    block_length: int | None = None,
    checkpoint_every: float = 60.0,
    progress: bool | None = None,
    throw: bool = False,
    on_divergence: str = "freeze",
    callback: Callable[[Status], Any] | None = None,
    measure_bias: bool = True,
    source: dict[str, Any] | None = None,
) -> Run:
    """Sample a potential: with a sampler of your own, or with one that is found for it.

    Without a sampler, rounds of short runs find scales, step sizes, a reference that is wide enough, and a ladder from it to the
    target; `run.choices` has what they chose. Exact energies get moves with a Metropolis test; on mini-batches the step size is one
    whose measured bias is small, and swaps are corrected. With a sampler it is run as it is.

    The result depends on the arguments alone: not on the block length, on checkpoints, or on stopping and resuming.

    Args:
        potential: what to sample; a plain function is taken as an energy.
        sampler: such as `iso.sgld(step_size=0.01)`; None finds one.
        budget: without a sampler: gradients to spend, or a time such as "60 s"; None is 1,000,000 gradients. Rounds take about a
            quarter of it.
        num_effective: without a sampler: effective draws at which the run ends before its budget is spent, of every coordinate, of
            the energy, and of the masses of wells that were met; None uses the whole budget.
        num_steps: number of iterations; with a sampler it must be given.
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
        devices: a number, or devices of JAX, over which runs, ladders and chains are spread; None takes all, unless the chains of a
            run exchange energies faster than devices do.
        chains_at_once: the chains of a device that are computed together, where more do not fit into its memory; the others follow.
            None computes all at once.
        block_length: iterations between two returns to the host; None adapts it to the clock.
        checkpoint_every: seconds between two checkpoints, with a folder.
        progress: whether to show a progress bar; None shows it on a terminal.
        throw: whether a diverged chain raises `DivergenceError`; otherwise it warns, and its draws have weight zero.
        on_divergence: "freeze" goes on with the other chains; "stop" ends the run at the iteration at which the first chain
            diverges, for a copy of the state to the host in every block; "restart" puts a diverged chain back to its start,
            for the memory of one more position per chain, and `run.stats["num_restarts"]` counts these.
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
        >>> run = iso.sample(energy, init=jnp.zeros(2), budget=100_000)
        >>> run.draws.shape[0], run.draws.shape[2]
        (4, 2)
    """
    began = time.perf_counter()
    potential, limits = as_potential(potential), None
    if sampler is None:
        limits = limits_of(potential, budget, num_chains, num_runs)
        check_integer("burn_in", burn_in, 0, "Give the number of iterations to discard at the start.")
        check_integer("thinning", thinning, 1, "Give the iterations between two draws.")
        if num_ladders is not None:
            check_integer("num_ladders", num_ladders, 2, "Ladders are compared with one another.")
        # In checks of the other arguments it stands for the sampler that is found.
        sampler = sgld(1.0)
    elif budget is not None or num_effective is not None:
        name, value = ("budget", budget) if budget is not None else ("num_effective", num_effective)
        refuse(name, "left out where a sampler is given", value, "Give `num_steps`.")
    elif num_steps is None:
        refuse("num_steps", "given with a sampler", "nothing", "Call `iso.sample(potential, sampler, num_steps=...)`.")
    sampler = check_sampler(sampler)
    check_function("collect", collect, "lambda x: x")
    if callback is not None:
        check_function("callback", callback, "lambda status: status.iteration > 1000", num_arguments=1)
    out = folder = None if out is None else check_folder("out", out, 'Write `out="my-run"`, say.')
    init = choose_init(init, potential)
    check_real("checkpoint_every", checkpoint_every, "Give seconds.", minimum=0.0)
    if resume and folder is None:
        refuse("resume", "given with `out`", "no folder", "Pass `out=`, the folder of the run to resume.")
    length = 1 if num_steps is None else num_steps
    given: dict[str, Any] = {"num_steps": length, "num_chains": num_chains, "num_runs": num_runs}
    given |= {"num_ladders": num_ladders, "seed": seed, "thinning": thinning, "burn_in": burn_in}
    given |= {"target_energy": target_energy, "track_best": track_best, "num_effective": num_effective}
    given |= {"chain_mode": chain_mode, "block_length": block_length, "devices": check_devices(devices)}
    given |= {"chains_at_once": chains_at_once}
    given["on_divergence"] = on_divergence
    host = HostOptions(folder, checkpoint_every, progress, throw, callback, measure_bias)
    stored = resume and folder is not None and (folder / "run.json").exists()
    # Refuse wrong input before a pilot runs, which may choose the number of chains.
    if limits is not None:
        given |= {"num_ladders": None} | ({"burn_in": 0, "thinning": 1} if num_steps is None else {})
    settings, position = checked_start(potential, sampler, init, collect, **given)
    if stored and folder is not None and limits is None:
        return _resume_with(potential, sampler, settings, first_position(init, seed), collect, host)
    if stored and folder is not None:
        stored_settings, asked = read_configuration(folder)[0]["settings"], settings.as_json()
        for name in ("seed", "num_effective"):
            if stored_settings.get(name) != asked[name]:
                rule = f"{stored_settings.get(name)}, as in the run in {folder}"
                refuse(name, rule, asked[name], "Start another run elsewhere.")
        with locked(folder, "out"):
            start = first_position(init, seed)
            return resume_from(potential, None, num_steps, start, collect, host, settings.devices)
    with contextlib.ExitStack() as stack:
        stack.enter_context(device_memory())
        if folder is not None:
            stack.enter_context(claim(folder))
        if limits is not None:
            wanted = Wanted(num_steps, num_ladders, thinning, burn_in)
            found = find_run(potential, init, limits, settings, wanted, progress)
            prepared = _prepare_automatic(found, collect, source, began)
        else:
            resolved = resolve_at(potential, sampler, settings, position, progress)
            if resolved.sampler is not sampler:
                settings, position = checked_start(potential, resolved.sampler, init, collect, **given)
            prepared = prepare_resolved(potential, resolved, settings, position, collect, source)
        if folder is not None:
            write_start(folder, prepared.position, prepared.configs[0])
        return drive(prepared, host, ResumePoint(), began)[0]


# Descriptions of the arguments that functions like `sample` share with it.
ARGUMENTS = entries((sample.__doc__ or "").partition("Args:\n")[2])


def _prepare_automatic(found: Automatic, collect: Collect, source: Any, began: float) -> PreparedRun:
    layout, kept = Layout(None, None, found.settings.num_ladders), collect_of(collect, found.potential)
    given = (found.potential, (found.sampler,), found.settings, layout, found.position, kept, source)
    pilot_seconds = time.perf_counter() - began
    prepared = prepare(*given, choices=found.choices)
    return dataclasses.replace(prepared, pilot_seconds=pilot_seconds)


@checked_call()
@documented(arguments=ARGUMENTS)
def resume(
    folder: str | pathlib.Path,
    potential: Potential | Callable[[Any], Any] | None = None,
    sampler: AnySampler | None = None,
    *,
    num_steps: int | None = None,
    init: Any = None,
    collect: Collect = identity,
    devices: Any = None,
    checkpoint_every: float = 60.0,
    progress: bool | None = None,
    throw: bool = False,
    callback: Callable[[Status], Any] | None = None,
    measure_bias: bool = True,
) -> Run:
    """Continue the run in `folder` to its end, or to `num_steps` if that is further.

    Code is never stored: give the same potential and sampler again. They are compared with what was stored. The result is that of
    a run that was never stopped.

    Args:
        folder: the `out` of the run.
        potential: as it was given to `sample`. Always needed: code is not stored.
        sampler: likewise; left out for a run of `iso.sample(problem)`.
        num_steps: a new, larger number of iterations; None keeps the old one.
        init: only for positions made of nodes other than dicts, lists and tuples: one position, for its structure.
    """
    remedy = 'Give what was passed as `out`: `iso.resume("my-run", potential, sampler)`.'
    folder = check_folder("folder", folder, remedy)
    config, _ = read_configuration(folder)
    if not (folder / "start").exists():
        remedy = "Only a run that was started with `out=` can be resumed; read a saved run with `iso.load`."
        refuse("folder", "that of a run with checkpoints", f"{folder}, written by `Run.save`", remedy)
    is_automatic = [choice["name"] for choice in config["choices"]] == [NAME]
    if potential is None or (sampler is None and not is_automatic):
        remedy = "Code is never stored: pass both again. Resume a run of the command line with `isotherm resume`."
        refuse("potential", "given, and `sampler` too", "None", remedy)
    if sampler is not None:
        check_sampler(sampler)
    with locked(folder, "folder"):
        host = HostOptions(folder, checkpoint_every, progress, throw, callback, measure_bias)
        return resume_from(as_potential(potential), sampler, num_steps, init, collect, host, check_devices(devices))


def _resume_with(
    potential: Potential, sampler: AnySampler, settings: Settings, init: Any, collect: Collect, host: HostOptions
) -> Run:
    """For `sample(resume=True)`: continue the run in the host's folder, whose settings must equal the given ones."""
    assert host.folder is not None
    stored, asked = read_configuration(host.folder)[0]["settings"], settings.as_json()
    # The number of chains of a ladder from a pilot is compared with the ladder.
    for name in ("num_runs", "num_ladders", "seed", "thinning", "burn_in"):
        if stored[name] != asked[name]:
            refuse(name, f"{stored[name]}, as in the run in {host.folder}", asked[name], "Start another run elsewhere.")
    given, before = settings.on_divergence, stored.get("on_divergence", "freeze")
    if given != before:
        remedy = "Start another run elsewhere."
        refuse("on_divergence", f"{before!r}, as in the run in {host.folder}", repr(given), remedy)
    with locked(host.folder, "out"):
        return resume_from(potential, sampler, settings.num_steps, init, collect, host, settings.devices)
