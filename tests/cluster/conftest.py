"""Real schedulers. `make test-cluster` runs these tests; other runs of pytest do not collect them."""

import os
import pathlib
import sys

import pytest

import isotherm
from tests.cluster import hosts, slurm

collect_ignore_glob = [] if os.environ.get("ISOTHERM_TEST_CLUSTER") else ["test_*.py"]

# What users of a cluster have in their path and environment.
_COMMAND = """\
#!/bin/sh
exec {python} -c "from isotherm.cli.main import main; main()" "$@"
"""
ENERGY = """
import jax.numpy as jnp

def energy(x):
    return 0.5 * jnp.sum((x - 1.0) ** 2)
"""
PROGRAM = """
import json, os, sys
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
import isotherm as iso

iso.distributed.initialize(timeout=60)
index = iso.distributed.process_index()
mesh = jax.make_mesh((jax.device_count(),), ("all",))
local = np.full(jax.local_device_count(), index + 1.0, np.float32)
given = jax.make_array_from_process_local_data(NamedSharding(mesh, P("all")), local)

def together(x):
    return jax.lax.psum(x, "all"), jax.lax.all_gather(x, "all", tiled=True)

total, each = jax.jit(jax.shard_map(together, mesh=mesh, in_specs=P("all"), out_specs=(P(), P()), check_vma=False))(given)
found = {
    "index": index,
    "count": iso.distributed.process_count(),
    "host": os.uname().nodename,
    "sum": float(total[0]),
    "each": np.asarray(each).tolist(),
    "agreed": iso.distributed.agree(f"from {index}", "a text"),
    "any": iso.distributed.any_true(index == 1),
    "max": iso.distributed.max_of(10.0 * index),
}
iso.distributed.barrier("the end")
sys.stdout.write(json.dumps(found) + chr(10))
"""


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder on the shared disk, with programs."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "bin").mkdir()
    command = folder / "bin" / "isotherm"
    command.write_text(_COMMAND.format(python=sys.executable))
    command.chmod(0o755)
    (folder / "mine.py").write_text(ENERGY)
    (folder / "program.py").write_text(PROGRAM)
    return folder


@pytest.fixture(scope="session", autouse=True)
def environment(shared):
    """PATH and PYTHONPATH of users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{shared / 'bin'}:{os.environ['PATH']}")
        patch.setenv("PYTHONPATH", str(pathlib.Path(isotherm.__file__).parents[1]))
        patch.setenv("JAX_PLATFORMS", "cpu")
        yield


@pytest.fixture(scope="session")
def cluster(tmp_path_factory, environment):
    if reason := slurm.missing():
        pytest.skip(f"Slurm {reason}")
    with slurm.cluster(tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture(scope="module")
def namespaces(environment):
    """Hosts without Slurm."""
    if reason := hosts.missing():
        pytest.skip(f"hosts: {reason}")
    with hosts.hosts():
        yield
