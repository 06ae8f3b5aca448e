"""Compiled programs kept on disk between processes."""

import hashlib
import importlib.metadata
import os
import pathlib
import platform
import warnings
from typing import Any

import jax

from isotherm.foundation.errors import check_folder, check_integer

_CONFIG: Any = jax.config
_MAX_BYTES = 1 << 30


def use_compilation_cache(
    directory: str | os.PathLike[str] | None = None, *, max_bytes: int = _MAX_BYTES
) -> pathlib.Path | None:
    """Keep compiled programs on disk, so that the next process loads them. Results do not depend on it.

    Uses JAX's persistent compilation cache, in a directory for this version of jaxlib and this processor. On by default on the
    command line. A cache configured in `jax.config` or the environment stays as it is. Programs whose convolutions a GPU runs
    concurrently are compiled twice, since programs loaded from disk cannot start with the faster form: the second form is compiled
    while the first runs, and the process waits for it before it exits.

    Args:
        directory: the parent directory; by default `isotherm` under $XDG_CACHE_HOME or ~/.cache.
        max_bytes: the least recently used entries are removed now until the rest is smaller.

    Returns:
        The directory; None if JAX's cache is switched off or the directory cannot be written to.

    Example:
        >>> import isotherm as iso, tempfile
        >>> path = iso.use_compilation_cache(tempfile.mkdtemp())
    """
    check_integer("max_bytes", max_bytes, 0, "Give a number of bytes.")
    if directory is not None:
        directory = check_folder("directory", directory, "Leave it out for the usual place.")
    if not _CONFIG.jax_enable_compilation_cache:
        return None
    if _CONFIG.jax_compilation_cache_dir is not None:
        return pathlib.Path(_CONFIG.jax_compilation_cache_dir)
    try:
        if directory is None:
            directory = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "isotherm"
        path = directory / f"jaxlib-{importlib.metadata.version('jaxlib')}-{_processor()}"
        path.mkdir(parents=True, exist_ok=True)
        _prune(path, max_bytes)
    except (OSError, RuntimeError):  # The directory cannot be written to, or the user has no home.
        return None
    if not os.access(path, os.W_OK):
        return None
    # Entries that another process has not finished are compiled again.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return path


def are_programs_kept() -> bool:
    """Whether a compilation cache is in use."""
    return bool(_CONFIG.jax_enable_compilation_cache and _CONFIG.jax_compilation_cache_dir)


def _processor() -> str:
    """A name for the processor and its instruction set: programs for one may not run on another."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    features = [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    text = "\n".join([platform.machine(), platform.processor(), *features])
    return f"{platform.machine()}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _prune(path: pathlib.Path, max_bytes: int) -> None:
    entries = [(entry.stat(), entry) for entry in path.iterdir() if entry.is_file()]
    entries.sort(key=lambda each: max(each[0].st_atime, each[0].st_mtime))
    size = sum(stat.st_size for stat, _ in entries)
    for stat, entry in entries:
        if size < max_bytes:
            break
        entry.unlink(missing_ok=True)
        size -= stat.st_size
