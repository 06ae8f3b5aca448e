"""`resume`: continue a stopped run, with the same result as without the stop."""

import dataclasses
import pathlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from isotherm.api.sample import ARGUMENTS, ready
from isotherm.driver.checkpoints import Checkpoints
from isotherm.driver.choose import check_run
from isotherm.driver.describe import differences
from isotherm.driver.drive import HostOptions, ResumePoint, drive
from isotherm.driver.layout import Layout
from isotherm.driver.lock import locked
from isotherm.driver.progress import Status
from isotherm.driver.settings import Settings, thread_pool_size
from isotherm.engine.program import identity
from isotherm.foundation.calls import checked_call
from isotherm.foundation.docstrings import documented
from isotherm.foundation.errors import check_folder, refuse
from isotherm.foundation.positions import named_leaves
from isotherm.pilots.resolve import resolve_at
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import on_host
from isotherm.run.run import Run
from isotherm.run.storage.formats import check_format
from isotherm.run.storage.saving import seconds_until
from isotherm.run.storage.store import read_json, read_records, write_json
from isotherm.samplers.sampler import AnySampler, as_potential, check_sampler

Collect = Callable[[Any], Any]


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
        potential: as it was given to `sample`.
        sampler: as it was given to `sample`.
        num_steps: a new, larger number of iterations; None keeps the old one.
        init: only for positions made of nodes other than dicts, lists and tuples: one position, for its structure.
    """
    remedy = 'Give what was passed as `out`: `iso.resume("my-run", potential, sampler)`.'
    folder = check_folder("folder", folder, remedy)
    read_configuration(folder)
    if not (folder / "start").exists():
        remedy = "Only a run that was started with `out=` can be resumed; read a saved run with `iso.load`."
        refuse("folder", "that of a run with checkpoints", f"{folder}, which `Run.save` wrote", remedy)
    if potential is None or sampler is None:
        remedy = "Code is never stored: pass both again. Resume a run of the command line with `isotherm resume`."
        refuse("potential", "given, and `sampler` too", "None", remedy)
    check_sampler(sampler)
    with locked(folder, "folder"):
        host = HostOptions(folder, checkpoint_every, progress, throw, callback, measure_bias)
        return _resume(as_potential(potential), sampler, num_steps, init, collect, host)


def resume_with(
    potential: Potential, sampler: AnySampler, settings: Settings, init: Any, collect: Collect, host: HostOptions
) -> Run:
    """For `sample(resume=True)`: continue the run in the host's folder, whose settings must equal the given ones."""
    assert host.folder is not None
    stored, asked = read_configuration(host.folder)[0]["settings"], settings.as_json()
    # The number of chains of a ladder from a pilot is compared with the ladder.
    for name in ("num_runs", "num_ladders", "seed", "thinning", "burn_in"):
        if stored[name] != asked[name]:
            refuse(name, f"{stored[name]}, as in the run in {host.folder}", asked[name], "Start another run elsewhere.")
    with locked(host.folder, "out"):
        return _resume(potential, sampler, settings.num_steps, init, collect, host)


def _resume(
    potential: Potential, sampler: AnySampler, num_steps: int | None, init: Any, collect: Collect, host: HostOptions
) -> Run:
    began, folder = time.perf_counter(), host.folder
    assert folder is not None
    config, stored = read_configuration(folder)
    old_steps = config["settings"]["num_steps"]
    settings = Settings(**{**config["settings"], "num_steps": num_steps or old_steps})
    if settings.num_steps < old_steps:
        refuse("num_steps", f"at least {old_steps}", settings.num_steps, "A run can be made longer, not shorter.")
    position = _read_start(folder, init)
    if Layout(None, settings.num_runs, settings.num_ladders).total is None:
        position = jax.tree.map(lambda leaf: leaf[None], position)
    resolved = resolve_at(potential, sampler, settings, position, stored=config["choices"])
    check_run(potential, resolved.sampler, settings, position, collect)
    prepared = ready(potential, resolved, settings, position, collect, config["source"])
    asked = prepared.configs[0]
    _compare(config, asked)
    checkpoints = Checkpoints(folder)
    found = checkpoints.restore(jax.eval_shape(lambda: prepared.program._init(prepared.position))[0])
    checkpoints.close()
    reached = ResumePoint()
    if found is not None:
        _compare_energies(found.energies, prepared.recognized_by(found.carry))
        reached = ResumePoint(found.carry, found.iteration, found.num_records, seconds_until(folder))
    complete = _complete_run(folder, settings.num_steps, host.measure_bias)
    if complete is not None:
        return complete
    if settings.num_steps != old_steps:
        (folder / "finished.json").unlink(missing_ok=True)
        config["settings"]["num_steps"] = settings.num_steps
        config["temperature"] = asked["temperature"]
        write_json(folder / "run.json", {**stored, "config": config})
    return drive(dataclasses.replace(prepared, configs=(config,)), host, reached, began)[0]


def _complete_run(folder: pathlib.Path, num_steps: int, wants_bias: bool) -> Run | None:
    """The run in a folder, if it is complete."""
    if not (folder / "finished.json").exists():
        return None
    try:
        run = Run.load(folder)
    except (ValueError, LookupError, TypeError):  # A broken end is written again from a checkpoint.
        return None
    is_measured = run.bias is not None or not (wants_bias and run.claims_distribution)
    return run if run.num_steps == num_steps and is_measured else None


def read_configuration(folder: pathlib.Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration of a run, and all of its `run.json`."""
    if not (folder / "run.json").exists():
        remedy = "Give the folder that was passed as `out`. A start interrupted before this file cannot be resumed."
        refuse("folder", "a folder of a run, with a run.json", str(folder), remedy)
    stored = read_json(folder / "run.json")
    check_format(stored, folder, is_resumed=True)
    return stored["config"], stored


def _read_start(folder: pathlib.Path, init: Any) -> Any:
    position = jax.tree.map(on_host, read_records(folder / "start"))
    if init is None:
        return position
    by_name = named_leaves(position)
    missing = sorted(set(named_leaves(init)) ^ set(by_name))
    if missing:
        refuse("init", "a position like those of the run", f"other leaves {missing}", "Pass one start of the old run.")
    return jax.tree.unflatten(jax.tree.structure(init), [by_name[name] for name in named_leaves(init)])


def _compare(stored: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse a resume with other settings; warn where only rounding may differ."""
    if stored["thread_pool_size"] != thread_pool_size():
        warnings.warn(
            f"The run was started with a thread pool of {stored['thread_pool_size']} and is resumed with {thread_pool_size()}: "
            "matrix products may round differently. Set the environment variable NPROC to the old number before Python starts.",
            stacklevel=5,
        )
    for part in ("sampler", "potential", "settings", "position", "collect"):
        for name, old, new in differences(part, stored[part], asked[part]):
            if name != "settings.num_steps":
                remedy = "This folder belongs to another configuration: pass the old one, or start a new run elsewhere."
                refuse(name, f"{old}, as when the run was started", new, remedy)
    _compare_energies(np.asarray(stored["start_energy"]), np.asarray(asked["start_energy"]))


def _compare_energies(old: np.ndarray, new: np.ndarray) -> None:
    """Refuse a potential whose energies at positions of the run differ by more than the rounding of another device."""
    is_off = ~np.isnan(old) & ~np.isclose(old, new, rtol=1e-4, atol=1e-6)
    if np.any(is_off):
        place = np.unravel_index(np.argmax(is_off), old.shape)
        rule = f"the one of this run, whose energy is {old[place]:.6g} at a position that was stored"
        refuse("potential", rule, f"{new[place]:.6g}", "Pass the same energy, or start a new run elsewhere.")
