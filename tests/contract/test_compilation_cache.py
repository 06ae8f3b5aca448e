"""Programs kept on disk: found again, never over a user's own cache, and of no influence on results."""

import os
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest

import isotherm as iso
from isotherm.engine import program_cache
from isotherm.foundation.compilation_cache import use_compilation_cache

DIRECTORY = "jax_compilation_cache_dir"
WHERE = "import isotherm as iso; print(iso.use_compilation_cache(), 'none', 0)"
CHILD = """
import hashlib, sys
import jax, jax.numpy as jnp, numpy as np
import isotherm as iso
from jax._src import monitoring
compiled = []
monitoring.register_event_listener(lambda event, **_: compiled.append(event) if event.endswith("cache_misses") else None)
print(iso.use_compilation_cache())
potential = lambda x: jnp.sum(x**2) / 2 + jnp.sum(jnp.cos(3 * x))
run = iso.sample(potential, iso.icsgld(0.01, partition=(0.0, 8.0, 50)), num_steps=300, num_chains=2, init=jnp.zeros(2),
                 progress=False)
print(hashlib.sha256(np.asarray(run.draws).tobytes() + np.asarray(run.log_weights).tobytes()).hexdigest())
print(len(compiled))
"""

WITH_OPTIONS = """
import threading
import jax, jax.numpy as jnp, numpy as np
import isotherm as iso
from isotherm.engine import program_cache
from jax._src import monitoring
compiled = []
path = iso.use_compilation_cache()
x = jnp.arange(3.0)
monitoring.register_event_listener(lambda event, **_: compiled.append(event) if event.endswith("cache_misses") else None)
function = lambda x: jnp.sin(x) + 1
options = (("xla_gpu_enable_command_buffer", "FUSION"),)
found = [np.asarray(program_cache.call(function, x, options=options)).tolist() for _ in range(3)]
for thread in threading.enumerate():
    if thread.name.startswith("compile"):
        thread.join()
print(path, found[0] == found[1] == found[2] == (np.sin(np.arange(3.0, dtype=np.float32)) + 1).tolist(), len(compiled))
"""


def child(home, script=CHILD, **changes):
    environment = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    environment |= {"XDG_CACHE_HOME": str(home), **changes}
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert "cache" not in found.stderr.lower()
    where, digest, compiled = found.stdout.split()
    return where, digest, int(compiled)


def test_a_second_process_finds_the_programs_and_the_same_bytes(tmp_path):
    where, empty, compiled = child(tmp_path)
    assert where.startswith(str(tmp_path / "isotherm" / "jaxlib-"))
    entries = sorted((tmp_path / "isotherm").rglob("*-cache"))
    assert len(entries) == compiled > 0
    assert child(tmp_path) == (where, empty, 0)
    # Entries that are damaged are compiled anew, without a word.
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[: entry.stat().st_size // 2])
    _, damaged, _ = child(tmp_path)
    assert damaged == empty
    # A cache that the user has configured stays the one in use, and so does the wish for none.
    own = tmp_path / "own"
    assert child(tmp_path / "other", WHERE, JAX_COMPILATION_CACHE_DIR=str(own))[0] == str(own)
    assert child(tmp_path / "other", WHERE, JAX_ENABLE_COMPILATION_CACHE="false")[0] == "None"
    assert not (tmp_path / "other").exists()


def test_programs_with_options_are_kept_in_both_forms(tmp_path):
    assert child(tmp_path, WITH_OPTIONS)[1:] == ("True", 2)
    assert child(tmp_path, WITH_OPTIONS)[1:] == ("True", 0)


class Lowered:
    """Stands for a program on a GPU, which there is none of here: what it is compiled with is what it returns."""

    def __init__(self, is_on_disk, fails_without_graphs=False):
        self.is_on_disk, self.fails_without_graphs, self.compiled = is_on_disk, fails_without_graphs, []

    def compile(self, compiler_options=None):
        graphs = (compiler_options or {GRAPHS: "no options"})[GRAPHS]
        if self.fails_without_graphs and not graphs:
            raise RuntimeError("not compiled")
        self.compiled.append(graphs)
        if self.is_on_disk:
            jax.monitoring.record_event("/jax/compilation_cache/cache_hits")
        return lambda: graphs


GRAPHS = "xla_gpu_enable_command_buffer"


@pytest.mark.parametrize(
    ("folder", "is_on_disk", "first", "compiled"),
    [
        (None, False, "FUSION", ["FUSION"]),
        # Compiled here, its kernels are loaded; the other form is for processes to come.
        ("folder", False, "FUSION", ["FUSION", ""]),
        # Those of convolutions would be captured with kernels that are not loaded.
        ("folder", True, "", ["FUSION", ""]),
    ],
)
def test_from_the_disk_the_first_call_is_without_graphs(folder, is_on_disk, first, compiled):
    lowered = Lowered(is_on_disk)
    program = compiled_with_graphs(lowered, folder)
    assert lowered.compiled == compiled
    assert [program() for _ in range(3)] == [first, "FUSION", "FUSION"]


def compiled_with_graphs(lowered, folder):
    before = getattr(jax.config, DIRECTORY)
    jax.config.update(DIRECTORY, folder)
    try:
        program = program_cache._with_options(lowered, {GRAPHS: "FUSION"})
    finally:
        jax.config.update(DIRECTORY, before)
    for thread in threading.enumerate():
        if thread.name.startswith("compile"):
            thread.join()
    return program


@pytest.mark.parametrize("name", ["monitoring.register_event_listener", "monitoring.unregister_event_listener"])
def test_programs_compile_without_graphs_if_jax_has_changed(monkeypatch, name):
    monkeypatch.delattr(f"jax.{name}")
    assert compiled_with_graphs(Lowered(is_on_disk=False), "folder")() == "no options"


def test_a_second_form_that_does_not_compile_is_left_out():
    program = compiled_with_graphs(Lowered(is_on_disk=False, fails_without_graphs=True), "folder")
    assert program() == "FUSION"


def test_options_that_xla_does_not_know_are_left_out():
    found = program_cache.call(lambda x: x + 1, np.arange(3.0), options=(("xla_of_another_version", "true"),))
    np.testing.assert_array_equal(found, [1.0, 2.0, 3.0])


@pytest.fixture
def no_cache():
    before = getattr(jax.config, DIRECTORY)
    jax.config.update(DIRECTORY, None)
    yield
    jax.config.update(DIRECTORY, before)


def test_the_entries_used_longest_ago_go_first(tmp_path, no_cache):
    path = use_compilation_cache(tmp_path)
    assert path is not None
    for age, name in enumerate(("new", "middle", "old")):
        (path / name).write_bytes(b"x" * 100)
        os.utime(path / name, (1e9 - age, 1e9 - age))
    jax.config.update(DIRECTORY, None)
    assert use_compilation_cache(tmp_path, max_bytes=250) == path
    assert sorted(entry.name for entry in path.iterdir()) == ["middle", "new"]


def test_where_nothing_can_be_written_there_is_no_cache(tmp_path, no_cache):
    (tmp_path / "file").write_text("")
    assert use_compilation_cache(tmp_path / "file") is None
    assert getattr(jax.config, DIRECTORY) is None
    with pytest.raises(ValueError, match="max_bytes"):
        iso.use_compilation_cache(tmp_path, max_bytes=-1)
