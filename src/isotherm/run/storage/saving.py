"""Runs in folders, finished or not."""

import dataclasses
import pathlib
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from isotherm.foundation.checks import Check, StoredChecks
from isotherm.foundation.errors import refuse
from isotherm.run.bias import bias_from
from isotherm.run.record_times import RecordTimes
from isotherm.run.storage.formats import FORMAT, current_config, is_old, read_run_file, unknown_checks
from isotherm.run.storage.json_files import check_json, read_checked, read_json, write_checked
from isotherm.run.storage.store import read_records, write_arrays
from isotherm.run.storage.zarr_arrays import write_groups

if TYPE_CHECKING:
    from isotherm.run.run import Run

# Where the time of a run went, in words.
TIMINGS = {
    "seconds": "of sampling",
    "compile_seconds": "of compiling",
    "pilot_seconds": "of pilots",
    "earlier_seconds": "before it was resumed",
}
DRAWN = ("draws", "log_weights", "energies", "observed", "model_state")
_TOTALS = ("num_steps", *TIMINGS)


def save(run: "Run", folder: pathlib.Path) -> None:
    """Write a run to a new folder, in the form that `sample(out=...)` writes."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        refuse("folder", "a new or empty folder", f"{folder}, which is not", "Choose another name.")
    config = check_json("run.config", run.config)
    records = {name: getattr(run, name) for name in DRAWN}
    write_arrays(folder / "records", records, run.log_weights.ndim - 1)
    write_end(run, folder)
    write_groups(folder, "records")
    write_checked(folder / "run.json", {"format": FORMAT, "config": config, "environment": run.environment})


def write_end(run: "Run", folder: pathlib.Path) -> None:
    """What is known at the end: statistics, and `finished.json`, whose presence says that the run is complete."""
    is_regular = isinstance(run.times, RecordTimes)
    end = {"stats": run.stats} if is_regular else {"stats": run.stats, "iterations": run.iterations}
    if run.bias is not None:
        end["bias"] = run.bias._asdict()
    write_arrays(folder / "end", end)
    times = dataclasses.asdict(run.times) if is_regular else None
    found = {"times": times, "checks": [check.as_json() for check in run.part_checks]}
    write_checked(folder / "finished.json", found | {name: getattr(run, name) for name in _TOTALS})


def write_progress(folder: pathlib.Path, iteration: int, times: RecordTimes, timings: dict[str, float]) -> None:
    """What is known at a checkpoint, from which a run that was killed can be read."""
    write_checked(folder / "progress.json", {"num_steps": iteration, "times": dataclasses.asdict(times), **timings})


def seconds_until(folder: pathlib.Path) -> float:
    """All seconds that the run in `folder` took up to its last checkpoint; 0 where it has none."""
    try:
        progress = _read_progress(folder)
        return sum(progress.get(name, 0.0) for name in TIMINGS)
    except (ValueError, LookupError, TypeError):
        # Times are only printed. A run with complete checkpoints can be resumed without them.
        return 0.0


def iterations_until(folder: pathlib.Path) -> int:
    """Iterations of the run in `folder` up to its last checkpoint; 0 where it has none."""
    try:
        return _read_progress(folder)["num_steps"]
    except ValueError:
        return 0


def load(folder: pathlib.Path) -> dict[str, Any]:
    """The arguments of `Run.assemble` from the folder of a run. One that was killed ends at its last checkpoint."""
    stored = read_run_file(folder)
    if not (folder / "finished.json").exists():
        return _load_unfinished(folder, stored)
    old = is_old(stored)
    finished = _read_json(folder / "finished.json", is_old=old)
    end = jax.tree.map(np.asarray, read_records(folder / "end", is_old=old))
    return {
        "arrays": read_records(folder / "records", is_old=old),
        "times": end["iterations"] if finished["times"] is None else RecordTimes.from_json(finished["times"]),
        "stats": end["stats"],
        "config": current_config(stored),
        "environment": stored["environment"],
        "bias_probe": bias_from(end["bias"]) if "bias" in end else None,
        "parts": _stored_checks(stored, finished),
        **{name: finished[name] for name in _TOTALS if name in finished},
    }


def _stored_checks(stored: dict[str, Any], finished: dict[str, Any]) -> StoredChecks:
    if "checks" not in finished:
        return unknown_checks(stored)
    return StoredChecks(tuple(map(Check.from_json, finished["checks"])))


def _read_json(path: pathlib.Path, *, is_old: bool) -> Any:
    return read_json(path) if is_old else read_checked(path)


def _read_progress(folder: pathlib.Path, *, is_old: bool = False) -> dict[str, Any]:
    """What is known at the last checkpoint, or the reason why not."""
    try:
        progress = _read_json(folder / "progress.json", is_old=is_old)
        return {**progress, "num_steps": int(progress["num_steps"]), "times": RecordTimes.from_json(progress["times"])}
    except (LookupError, TypeError, ValueError):
        got = f"{folder / 'progress.json'}, which is damaged"
        refuse(
            "folder",
            "a run with a readable progress.json",
            got,
            "Resume it with `iso.resume`, which writes the file again.",
        )


def _load_unfinished(folder: pathlib.Path, stored: dict[str, Any]) -> dict[str, Any]:
    """Draws up to the last checkpoint. Statistics are written at the end of a run."""
    if not (folder / "progress.json").exists():
        remedy = "It was stopped before the first one: resume it with `iso.resume` or `isotherm resume`."
        refuse("folder", "a run with a checkpoint", str(folder), remedy)
    progress = _read_progress(folder, is_old=is_old(stored))
    times = progress["times"]
    if times.before(progress["num_steps"]) == 0:
        refuse("folder", "a run with draws", f"{folder}, still in its burn-in", "Resume it with `iso.resume`.")
    return {
        "arrays": read_records(folder / "records", is_old=is_old(stored)),
        "times": times,
        "stats": {},
        "config": current_config(stored),
        "environment": stored["environment"],
        **{name: progress[name] for name in _TOTALS if name in progress},
    }
