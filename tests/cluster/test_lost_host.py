"""A host that is cut off from the network in the middle of a run."""

import subprocess
import sys
import time

import pytest

from tests.cluster import hosts

PROGRAM = """
import pathlib, sys, time
import jax
import isotherm.distributed as d

d.initialize("node1:29500", 2, int(sys.argv[1]), timeout=60)
ready = pathlib.Path(sys.argv[2])
mesh = jax.make_mesh((2,), ("all",))
total = jax.jit(jax.shard_map(lambda: jax.lax.psum(1, "all"), mesh=mesh, in_specs=(), out_specs=jax.P(), check_vma=False))
for step in range(600):
    if sys.argv[3] == "collectives":
        total().block_until_ready()
    else:
        d.any_true(False, "end of block")
    ready.touch()
    time.sleep(0.2)
"""
SECONDS = 30


def start(folder, command_of):
    """A process on each node; returns them and their logs."""
    logs = [folder / f"log-{number}" for number in range(2)]
    processes = []
    for number, (node, log) in enumerate(zip(hosts.NODES, logs, strict=True)):
        with log.open("wb") as file:
            words = hosts.command(node, *command_of(number))
            processes.append(subprocess.Popen(words, stdout=file, stderr=file, stdin=subprocess.DEVNULL))
    return processes, logs


def seconds_to_end(processes, limit=90):
    """Seconds until each of the processes has ended."""
    began, ended = time.monotonic(), {}
    while len(ended) < len(processes) and time.monotonic() - began < limit:
        for number, process in enumerate(processes):
            if process.poll() is not None:
                ended.setdefault(number, time.monotonic() - began)
        time.sleep(0.1)
    for process in processes:
        process.kill()
        process.wait()
    return ended


@pytest.mark.parametrize(("lost", "within"), [("node1", "messages"), ("node2", "messages"), ("node2", "collectives")])
def test_all_processes_end_with_a_message(namespaces, tmp_path, lost, within):
    program, ready = tmp_path / "program.py", tmp_path / "ready"
    program.write_text(PROGRAM)
    processes, logs = start(tmp_path, lambda number: (sys.executable, program, number, ready, within))
    try:
        deadline = time.monotonic() + 60
        while not ready.exists():
            assert time.monotonic() < deadline, [log.read_text() for log in logs]
            time.sleep(0.2)
        time.sleep(1)
        hosts.cut_off(lost)
        ended = seconds_to_end(processes)
    finally:
        hosts.reconnect(lost)
    texts = [log.read_text() for log in logs]
    print(f"{lost} cut off: processes ended after {ended} s", *texts, sep="\n", file=sys.stderr)
    assert sorted(ended) == [0, 1]
    assert max(ended.values()) < SECONDS
    assert all(process.returncode != 0 for process in processes)
    assert "Lost contact with process 1 of 2 12 s ago." in texts[0]
    assert "Lost contact with process 0 of 2 at node1:29500 12 s ago." in texts[1]


def test_sample_ends_with_a_message(namespaces, shared, tmp_path):
    options = ["--method", "sgld", "--step-size", "0.1", "--init", "0", "0", "--num-steps", "1000000000"]
    options += ["--thinning", "100000", "--num-chains", "4", "--out", tmp_path / "run"]

    def command(number):
        own = ["--coordinator", "node1:29501", "--num-processes", "2", "--process-id", str(number)]
        return ["isotherm", "sample", f"{shared / 'mine.py'}:energy", *options, *own]

    processes, logs = start(tmp_path, command)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "run" / "progress.json").exists():
            assert time.monotonic() < deadline, [log.read_text() for log in logs]
            time.sleep(0.5)
        hosts.cut_off("node2")
        ended = seconds_to_end(processes)
    finally:
        hosts.reconnect("node2")
    assert sorted(ended) == [0, 1]
    assert max(ended.values()) < SECONDS
    assert all(log.read_text().strip() for log in logs)
