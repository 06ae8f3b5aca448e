"""Continue a run from its folder, with the result of a run that was never stopped."""

import dataclasses
import pathlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from isotherm.api.automatic import NAME, rebuilt
from isotherm.distributed import barrier, process_index
from isotherm.driver.checkpoints import Checkpoints
from isotherm.driver.describe import differences
from isotherm.driver.device_memory import device_memory
from isotherm.driver.drive import HostOptions, ResumePoint, drive
from isotherm.driver.layout import Layout
from isotherm.driver.prepare import PreparedRun, prepare
from isotherm.driver.settings import Settings, check_run, collect_of, thread_pool_size
from isotherm.foundation.errors import refuse
from isotherm.foundation.positions import named_leaves
from isotherm.pilots.resolve import Resolved, resolve_at
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import on_host
from isotherm.run.run import Run
from isotherm.run.storage.formats import read_run_file
from isotherm.run.storage.json_files import write_checked
from isotherm.run.storage.saving import seconds_until
from isotherm.run.storage.store import read_records
from isotherm.samplers.sampler import AnySampler

Collect = Callable[[Any], Any]


def prepare_resolved(
    potential: Potential, resolved: Resolved, settings: Settings, position: Any, collect: Collect, source: Any
) -> PreparedRun:
    """A prepared run of one sampler, after `check_run`."""
    layout, kept = Layout(None, settings.num_runs, settings.num_ladders), collect_of(collect, potential)
    samplers, choices = (resolved.sampler,), resolved.choices
    prepared = prepare(potential, samplers, settings, layout, position, kept, source, choices=choices)
    return dataclasses.replace(prepared, pilot_seconds=resolved.seconds)


def resume_from(
    potential: Potential,
    sampler: AnySampler | None,
    num_steps: int | None,
    init: Any,
    collect: Collect,
    host: HostOptions,
    devices: tuple[Any, ...] | None,
) -> Run:
    """Continue the run in the host's folder, to `num_steps` iterations if that is further."""
    began, folder = time.perf_counter(), host.folder
    assert folder is not None
    config, stored = read_configuration(folder)
    old_steps = config["settings"]["num_steps"]
    settings = Settings(**{**config["settings"], "num_steps": num_steps or old_steps, "devices": devices})
    if settings.num_steps < old_steps:
        refuse("num_steps", f"at least {old_steps}", settings.num_steps, "A run can be made longer, not shorter.")
    position = _read_start(folder, init)
    if Layout(None, settings.num_runs, settings.num_ladders).total is None:
        position = jax.tree.map(lambda leaf: leaf[None], position)
    if sampler is None:
        if [choice["name"] for choice in config["choices"]] != [NAME]:
            refuse("sampler", "given, as when the run was started", "None", "Pass it again: code is never stored.")
        own = jax.tree.map(lambda leaf: leaf[0, 0], position)
        potential, sampler = rebuilt(potential, config["choices"][0]["value"], own)
    with device_memory():
        resolved = resolve_at(potential, sampler, settings, position, stored=config["choices"])
        check_run(potential, resolved.sampler, settings, position, collect)
        prepared = prepare_resolved(potential, resolved, settings, position, collect, config["source"])
    asked = prepared.configs[0]
    _compare(config, asked)
    checkpoints = Checkpoints(folder)
    found = checkpoints.restore(prepared.program.carry_like(prepared.position))
    checkpoints.close()
    reached = ResumePoint()
    if found is not None:
        _compare_energies(found.energies, prepared.recognized_by(found.carry))
        reached = ResumePoint(found.carry, found.iteration, found.num_records, seconds_until(folder))
    complete = _complete_run(folder, settings.num_steps, host.measure_bias)
    if complete is not None:
        return complete
    if settings.num_steps != old_steps:
        config["settings"]["num_steps"] = settings.num_steps
        config["temperature"] = asked["temperature"]
        barrier("longer run")
        if process_index() == 0:
            (folder / "finished.json").unlink(missing_ok=True)
            write_checked(folder / "run.json", {**stored, "config": config})
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
    stored = read_run_file(folder, is_resumed=True)
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
