"""The folder of a run: one process at a time writes to it, and errors say how the run can be resumed."""

import contextlib
import errno
import pathlib
from collections.abc import Iterator
from typing import Any

import jax

from isotherm.distributed import barrier, process_index
from isotherm.driver.provenance import provenance
from isotherm.foundation.errors import StorageError, check_written_path, refuse
from isotherm.run.storage.formats import FORMAT
from isotherm.run.storage.json_files import write_checked
from isotherm.run.storage.store import write_arrays

LOCK = "lock"
_MAX_REASON = 600


@contextlib.contextmanager
def locked(folder: pathlib.Path, name: str) -> Iterator[pathlib.Path]:
    """Lock `folder`, made if need be; refusals call it `name`. The system drops the lock however the process ends."""
    check_written_path(name, folder)
    if process_index() != 0:
        # Process 0 has the lock, and writes.
        barrier("run folder")
        yield folder / LOCK
        return
    if folder.exists() and not folder.is_dir():
        refuse(name, "a folder", f"the file {folder}", "Choose another name.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / LOCK).open("a+")
    except OSError as error:
        got = f"{folder}, where that failed ({error.strerror})"
        refuse(name, "a folder that can be written to", got, "Choose another folder, or change its permissions.")
    with handle:
        if not _try_lock(handle):
            remedy = "Wait for it to end, or choose another folder."
            refuse(name, "a folder that no other run is writing to", f"{folder}, which is in use", remedy)
        barrier("run folder")
        yield folder / LOCK


def _try_lock(handle: Any) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows.
        import msvcrt

        lock: Any = lambda: msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore  # noqa: E731
    else:
        lock = lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # noqa: E731
    try:
        lock()
    except OSError as error:
        # Other errors mean that the file system has no locks.
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True


@contextlib.contextmanager
def claim(folder: pathlib.Path) -> Iterator[None]:
    """Lock a folder for a new run. Existing files are kept, and a refused run leaves no trace."""
    if process_index() != 0:
        with locked(folder, "out"):
            yield
        return
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
        remedy = "Pass `resume=True` to continue it (`isotherm resume` in a shell), or choose another folder."
        refuse("out", "a folder without a run", f"{folder}, which holds one", remedy)
    ours = {LOCK, "run.partial"} if LOCK in names else {LOCK}
    start = folder / "start"
    if LOCK in names and start.is_dir():
        # A kill may come before the first file of this folder, or while that is written.
        is_ours = (start / "structure.json").exists() or all(
            path.name == "structure.partial" for path in start.iterdir()
        )
        ours |= {"start"} if is_ours else set()
    if names - ours:
        got = f"{folder}, which holds {', '.join(sorted(names - ours)[:3])}" + ", ..." * (len(names - ours) > 3)
        refuse("out", "a new or empty folder", got, "Choose another name: runs do not share a folder with other files.")


def write_start(folder: pathlib.Path, position: Any, config: dict[str, Any]) -> None:
    """Write what a run needs to be resumed."""
    if process_index() == 0:
        write_arrays(folder / "start", position)
        # Written last: a folder with this file can be resumed.
        write_checked(folder / "run.json", {"format": FORMAT, "config": config, "environment": provenance()})
    barrier("start of run")


@contextlib.contextmanager
def writing_to(folder: pathlib.Path | None, iteration: int) -> Iterator[None]:
    """Turn failures to write files into a `StorageError` with a remedy."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:  # Of files, TensorStore and Orbax.
        # JAX's errors are of the device; see `device_memory`.
        if folder is None or isinstance(error, jax.errors.JaxRuntimeError):
            raise
        check_exists(folder, iteration)
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:_MAX_REASON]
        raise StorageError(
            f"Writing to {folder} failed after {iteration:,} iterations: {reason}. Free some space or change its permissions, then "
            f'resume from the last checkpoint: `iso.resume("{folder}", potential, sampler)` or `isotherm resume {folder}`.'
        ) from error


def check_exists(folder: pathlib.Path | None, iteration: int) -> None:
    """Raise unless the folder still holds its run. Files written to a new folder of that name could not be resumed."""
    if folder is not None and not (folder / "run.json").exists():
        raise StorageError(
            f"{folder} was deleted, moved or renamed while a run wrote to it, after {iteration:,} iterations. If it was moved, "
            'resume from its last checkpoint: `iso.resume("new-place", potential, sampler)`. Otherwise start the run again.'
        )
