"""Where a run came from: versions, devices, compiler options and git state, and a log of its starts and ends."""

import contextlib
import datetime
import functools
import json
import os
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

from isotherm.distributed import process_index
from isotherm.driver.describe import environment
from isotherm.run.storage.saving import TIMINGS, iterations_until

LOG = "log.jsonl"
_GIT_SECONDS = 5.0
# Neither a lock nor a program of the user's.
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false")


def provenance() -> dict[str, Any]:
    """`environment()` and the state of the git checkout in which this process works."""
    return environment() | {"git": git_state()}


def git_state() -> dict[str, Any] | None:
    """Commit of the working directory, and whether tracked files differ from it; None where git does not know."""
    try:
        commit = _asked("rev-parse", "HEAD")
        return {"commit": commit.strip(), "is_dirty": bool(_asked("status", "--porcelain", "--untracked-files=no"))}
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _asked(*arguments: str) -> str:
    command = [*_GIT, *arguments]
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(command, check=True, timeout=_GIT_SECONDS, **given).stdout


def logged(drive: Callable[..., Any]) -> Callable[..., Any]:
    """Log the start and the end of `drive(prepared, host, reached, since)` in the folder of the run."""

    @functools.wraps(drive)
    def driven(prepared: Any, host: Any, reached: Any, since: float) -> Any:
        if host.folder is None or process_index() != 0:
            return drive(prepared, host, reached, since)
        event = "start" if reached.carry is None else "resume"
        append(host.folder, event, reached.iteration, environment=provenance())
        try:
            runs = drive(prepared, host, reached, since)
        except BaseException as error:
            append(host.folder, "end", iterations_until(host.folder), error=type(error).__name__)
            raise
        append(host.folder, "end", runs[0].num_steps, **{name: getattr(runs[0], name) for name in TIMINGS})
        return runs

    return driven


def append(folder: pathlib.Path, event: str, iteration: int, **others: Any) -> None:
    """Append a line to the log of a run. The log is for readers only: a line that cannot be written is left out."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"event": event, "time": now, "iteration": iteration, "process": os.getpid(), **others})
    with contextlib.suppress(OSError):
        if not folder.is_dir():
            return
        with (folder / LOG).open("ab+") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - 1, 0))
            # A crash may have cut the last line.
            is_cut = file.read(1) not in (b"", b"\n")
            file.write(b"\n" * is_cut + line.encode() + b"\n")
