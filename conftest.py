"""What every test module shares."""

import gc
import os
import shutil
import tempfile

import jax
import pytest

from isotherm.engine import program_cache

_CACHE = "JAX_COMPILATION_CACHE_DIR"


def pytest_configure(config):
    """Lets all processes of this run of the tests, and those that they start, share what they compile."""
    if _CACHE not in os.environ:
        config.cache_of_programs = os.environ[_CACHE] = tempfile.mkdtemp(prefix="programs-")
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


def pytest_collection_finish():
    """Looks for cyclic garbage less often. Tracing makes many objects that live long, and modules are collected after they ran."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_unconfigure(config):
    """Removes it."""
    if hasattr(config, "cache_of_programs"):
        shutil.rmtree(config.cache_of_programs, ignore_errors=True)


# Folders whose tests run short loops: there most of the time is the compiler's, and programs that are not optimized will do.
_SHORT = {
    "bandits",
    "cli",
    "contract",
    "data",
    "experiments",
    "models",
    "networks",
    "predictive",
    "properties",
    "reproducibility",
    "unit",
}
_UNOPTIMIZED = "jax_disable_most_optimizations"


@pytest.fixture(autouse=True, scope="module")
def compiles(request):
    """How a module compiles. Programs are dropped after it: a process may hold only so many pieces of machine code."""
    is_optimized = getattr(request.module, "IS_OPTIMIZED", request.path.parent.name not in _SHORT)
    jax.config.update(_UNOPTIMIZED, not is_optimized)
    os.environ[_UNOPTIMIZED.upper()] = str(not is_optimized)
    yield
    program_cache.forget()
    jax.clear_caches()
    gc.collect()
