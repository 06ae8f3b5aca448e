"""One process for one folder: a lock that the operating system drops when its holder ends, however it ends."""

import contextlib
import errno
import pathlib
from collections.abc import Iterator
from typing import Any

from isotherm.foundation.errors import check_written_path, refuse

LOCK = "lock"


@contextlib.contextmanager
def locked(folder: pathlib.Path, name: str) -> Iterator[pathlib.Path]:
    """The lock of `folder`, made if need be, while nobody else writes a run to it; `name` is the argument that a refusal names."""
    check_written_path(name, folder)
    if folder.exists() and not folder.is_dir():
        refuse(name, "a folder", f"the file {folder}", "Choose another name.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / LOCK).open("a+")
    except OSError as error:
        got = f"{folder}, where that failed ({error.strerror})"
        refuse(name, "a folder that can be written to", got, "Choose another folder, or mend its permissions.")
    with handle:
        if not _try_lock(handle):
            remedy = "Wait for it to end, or choose another folder."
            refuse(name, "a folder that no other run is writing to", f"{folder}, which is in use", remedy)
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
        # Others say that this file system has no locks, and then nobody holds one.
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True
