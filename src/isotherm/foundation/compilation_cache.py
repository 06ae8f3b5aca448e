"""Compiled programs kept from one process to the next."""

import hashlib
import importlib.metadata
import os
import pathlib
import platform
import warnings
from typing import Any

import jax

from isotherm.foundation.errors import check_folder, check_integer

_DIRECTORY = "jax_compilation_cache_dir"
_MAX_BYTES = 1 << 30


def use_compilation_cache(
    directory: str | os.PathLike[str] | None = None, *, max_bytes: int = _MAX_BYTES
) -> pathlib.Path | None:
    """Keep compiled programs on disk, so that the next process need not compile them again. Results do not depend on it.

    This is JAX's persistent compilation cache, in a directory for this version of jaxlib and this processor. The command line has
    it on. A cache that you have configured, by `jax.config` or the environment, stays as it is. Programs whose convolutions a GPU
    runs side by side are compiled in two forms, since from the disk they cannot start with the faster one: the second is compiled
    while the first one runs, and a process waits for it before it ends.

    Args:
        directory: where; by default in `isotherm` under $XDG_CACHE_HOME, or under ~/.cache.
        max_bytes: entries used longest ago are removed first, now, until what is left is smaller.

    Returns:
        Where programs are kept; None where JAX's cache is switched off, or where nothing can be written.

    Example:
        >>> import isotherm as iso, tempfile
        >>> path = iso.use_compilation_cache(tempfile.mkdtemp())
    """
    check_integer("max_bytes", max_bytes, 0, "Give a number of bytes.")
    if directory is not None:
        directory = check_folder("directory", directory, "Leave it out for the usual place.")
    if not _configured("jax_enable_compilation_cache"):
        return None
    configured = _configured(_DIRECTORY)
    if configured is not None:
        return pathlib.Path(configured)
    version = importlib.metadata.version("jaxlib")
    try:
        path = (directory or _usual_directory()) / f"jaxlib-{version}-{_processor()}"
        path.mkdir(parents=True, exist_ok=True)
        _prune(path, max_bytes)
    except (OSError, RuntimeError):  # Nothing can be written there, or the user has no home.
        return None
    if not os.access(path, os.W_OK):
        return None
    # An entry that another process is still writing, or was stopped in writing, is compiled anew.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    jax.config.update(_DIRECTORY, str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return path


def are_programs_kept() -> bool:
    """Whether programs go to the disk, or come from there."""
    return bool(_configured("jax_enable_compilation_cache") and _configured(_DIRECTORY))


def _usual_directory() -> pathlib.Path:
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "isotherm"


def _configured(name: str) -> Any:
    return getattr(jax.config, name)


def _processor() -> str:
    """A name for the processor and its instructions: programs for one may not run on another."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    told = [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    known = "\n".join([platform.machine(), platform.processor(), *told])
    return f"{platform.machine()}-{hashlib.sha256(known.encode()).hexdigest()[:12]}"


def _prune(path: pathlib.Path, max_bytes: int) -> None:
    entries = [(entry.stat(), entry) for entry in path.iterdir() if entry.is_file()]
    entries.sort(key=lambda each: max(each[0].st_atime, each[0].st_mtime))
    left = sum(stat.st_size for stat, _ in entries)
    for stat, entry in entries:
        if left < max_bytes:
            break
        entry.unlink(missing_ok=True)
        left -= stat.st_size
