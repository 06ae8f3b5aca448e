"""`mpirun` of a real Open MPI: two processes on a host, and one on each of two."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import isotherm as iso
from tests.cluster import hosts

if shutil.which("mpirun") is None:
    pytest.skip("Open MPI needs mpirun: apt-get install openmpi-bin", allow_module_level=True)

ROOT = ["--allow-run-as-root"] if os.geteuid() == 0 else []


def mpirun(*words, timeout=120):
    return subprocess.run(
        hosts.command("node1", "mpirun", *ROOT, *words), capture_output=True, text=True, timeout=timeout, check=False
    )


@pytest.fixture(scope="module")
def agent(shared, namespaces):
    """What mpirun calls to reach another host, instead of ssh."""
    script = shared / "agent"
    words = " ".join(f"'{word}'" for word in hosts.command("$host", "sh", "-c")).replace("'$host'", '"$host"')
    words = words.replace("isotherm-$host", "isotherm-'\"$host\"'")
    script.write_text(f'#!/bin/sh\nhost=$1\nshift\nexec {words} "$*"\n')
    script.chmod(0o755)
    return script


def check(done, names):
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found.sort(key=lambda one: one["index"])
    assert done.returncode == 0, done.stderr
    assert [one["host"] for one in found] == names
    assert all((one["count"], one["sum"], one["agreed"], one["max"]) == (2, 3.0, "from 0", 10.0) for one in found)


def test_two_processes_on_a_host(namespaces, shared):
    check(mpirun("-n", "2", "--oversubscribe", sys.executable, shared / "program.py"), ["node1", "node1"])


def test_one_process_on_each_of_two_hosts(namespaces, shared, agent):
    where = ["--host", "node1:1,node2:1", "--mca", "plm_rsh_agent", agent]
    environment = ["-x", "PYTHONPATH", "-x", "JAX_PLATFORMS"]
    check(mpirun(*where, *environment, "-n", "2", sys.executable, shared / "program.py"), ["node1", "node2"])


def test_a_single_process_stays_alone(namespaces, shared):
    done = mpirun("-n", "1", sys.executable, shared / "program.py")
    assert json.loads(done.stdout.splitlines()[-1])["count"] == 1


def sample(shared, out):
    words = ["sample", f"{shared / 'mine.py'}:energy", "--method", "sgld", "--step-size", "0.1", "--init", "0", "0"]
    return ["isotherm", *words, "--num-steps", "2000", "--num-chains", "4", "--out", out]


def test_sample_in_one_process(namespaces, shared, tmp_path):
    done = mpirun("-n", "1", *sample(shared, tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert iso.load(tmp_path / "run").draws.shape == (4, 2000, 2)


def test_sample_in_two_processes(namespaces, shared, tmp_path):
    for count, name in ((1, "one"), (2, "two")):
        done = mpirun("-n", count, "--oversubscribe", *sample(shared, tmp_path / name))
        assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(iso.load(tmp_path / "one").draws[:], iso.load(tmp_path / "two").draws[:])
