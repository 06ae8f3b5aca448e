"""The folder of a run while it is written to: what is said when a file cannot be written, or when the folder has gone."""

import contextlib
import pathlib
from collections.abc import Iterator

from isotherm.foundation.errors import StorageError

MAX_REASON = 600


@contextlib.contextmanager
def writing_to(folder: pathlib.Path | None, iteration: int) -> Iterator[None]:
    """Turns whatever fails while files are written into a `StorageError` that says how the run can go on."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:  # Those of files, of TensorStore, and of Orbax.
        if folder is None:
            raise
        check_there(folder, iteration)
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:MAX_REASON]
        raise StorageError(
            f"Writing to {folder} failed after {iteration:,} iterations: {reason}. Make room there, or mend its permissions; then "
            f'go on from the last checkpoint with `iso.resume("{folder}", potential, sampler)` or `isotherm resume {folder}`.'
        ) from error


def check_there(folder: pathlib.Path | None, iteration: int) -> None:
    """Raise unless the folder still holds its run: files written to another one of that name would be no run."""
    if folder is not None and not (folder / "run.json").exists():
        raise StorageError(
            f"{folder} was deleted, moved or renamed while a run wrote to it, after {iteration:,} iterations. If it was moved, go "
            'on from its last checkpoint with `iso.resume("new-place", potential, sampler)`; otherwise start the run again.'
        )
