"""What every test module shares."""

import jax
import pytest

from isotherm.sampling import settings


@pytest.fixture(autouse=True, scope="module")
def forgets_programs():
    """Drops compiled programs after each module: a process may hold only so many pieces of machine code."""
    yield
    settings._program.cache_clear()
    settings._start_energies.cache_clear()
    settings._interned.cache_clear()
    jax.clear_caches()
