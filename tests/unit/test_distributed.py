"""Processes find each other, agree, wait and end together. Pairs of processes are real, over loopback."""

import json
import math
import os
import signal
import socket
import subprocess
import sys
import time

import jax
import pytest

from isotherm import distributed
from isotherm.distributed.environment import Place, find_place
from isotherm.foundation import launch_variables

HEAD = """
import json, math, os, signal, sys, time
import isotherm.distributed as d
found = {}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pair(script, numbers=(0, 1), timeout=60):
    """Run a script as two processes; returns their status, output and errors."""
    own = {launch_variables.COORDINATOR: f"127.0.0.1:{free_port()}", launch_variables.NUM_PROCESSES: "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", HEAD + script],
            env=os.environ | {"JAX_PLATFORMS": "cpu"} | own | {launch_variables.PROCESS_ID: str(number)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in numbers
    ]
    try:
        texts = [process.communicate(timeout=timeout) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, *text) for process, text in zip(processes, texts, strict=True)]


TOGETHER = """
d.initialize(timeout=30)
d.initialize()
index = d.process_index()
import jax, numpy as np
found["count"] = [d.process_count(), jax.process_count(), index == jax.process_index()]
found["agree"] = [d.agree(f"from {index}", "seed"), d.agree(bytes([255, index]), "bytes").hex(), d.agree("", "nothing")]
found["any"] = [d.any_true(index == 1), d.any_true(False), d.any_true(True)]
found["max"] = [d.max_of(index * 2.5), d.max_of(-index), math.isnan(d.max_of(math.nan if index else 3.0))]
found["rounds"] = [d.max_of(index + step) for step in range(50)]
found["largest"] = d.largest_of((index, 1.0 - index, 7.0), "numbers")
d.check_equal(b"same", "text", "Nothing.")
try:
    d.check_equal(bytes([index]), "seed", "Give one.")
except ValueError as error:
    found["unequal"] = str(error)
d.barrier("computing")
mesh = jax.make_mesh((2,), ("all",))
total = jax.jit(jax.shard_map(lambda: jax.lax.psum(1, "all"), mesh=mesh, in_specs=(), out_specs=jax.P(), check_vma=False))
found["sum"] = int(total())
try:
    d.initialize(num_processes=3)
except ValueError as error:
    found["refused"] = str(error)
for step in range(1000):
    if step == 5 and index == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    if d.reached_preemption(step):
        found["preempted"] = step
        break
    time.sleep(0.01)
if index == 0:
    try:
        d.barrier("the checkpoint", timeout=0.5)
    except d.ProcessError as error:
        found["waited"] = str(error)
d.agree("", "the end", timeout=30) if index == 0 else time.sleep(1) or d.agree("", "the end")
print(json.dumps(found), flush=True)
if index == 0:
    raise ValueError("no such file")
d.barrier("nothing")
"""


def test_two_processes_agree_wait_and_fail_together():
    (zero, one) = pair(TOGETHER)
    assert (zero[0], one[0]) == (1, 1), zero[2] + one[2]
    assert "ValueError: no such file" in zero[2]
    assert "Process 0 of 2 failed: ValueError: no such file\nProcess 1 ends too." in one[2]
    found, other = json.loads(zero[1].splitlines()[-1]), json.loads(one[1].splitlines()[-1])
    assert found.pop("waited").startswith("Waited 0.5 s at 'the checkpoint' for process 1 of 2.")
    assert found == other
    assert 5 <= found.pop("preempted") < 1000
    assert found.pop("refused").startswith("`num_processes` must be 2, as in the first call of initialize; got 3.")
    assert found == {
        "count": [2, 2, True],
        "agree": ["from 0", "ff00", ""],
        "any": [True, False, True],
        "max": [2.5, 0.0, True],
        "rounds": [1.0 + step for step in range(50)],
        "sum": 2,
        "largest": [1.0, 1.0, 7.0],
        "unequal": "`seed` must be equal in all processes; got others in process 1 than in process 0. Give one.",
    }


def test_a_failure_without_an_exception_gets_its_status():
    script = (
        "d.initialize(timeout=30)\nd.fail('a wrong option', 7) if d.process_index() else d.barrier('x')\nsys.exit(9)"
    )
    zero, one = pair(script)
    assert (zero[0], one[0]) == (1, 7)
    assert "Process 1 of 2 failed: a wrong option" in zero[2]


def test_processes_that_wait_in_vain_say_for_whom():
    # Each at a port of its own: neither finds the other.
    script = "port = str(int(os.environ['ISOTHERM_COORDINATOR'][10:]) + int(os.environ['ISOTHERM_PROCESS_ID']))\n"
    zero, one = pair(script + "d.initialize('127.0.0.1:' + port, timeout=1)")
    assert (zero[0], one[0]) == (1, 1)
    assert "Error: Waited 1 s at 127.0.0.1:" in zero[2]
    assert "for 2 processes (according to isotherm launch): not all came." in zero[2]
    assert "Error: Waited 1 s for process 0 at 127.0.0.1:" in one[2]
    assert "nothing listens there" in one[2]
    assert "stack trace" not in zero[2] + one[2]


def test_a_lost_process_is_noticed():
    script = """
d.initialize(timeout=30, heartbeat_timeout=2)
d.barrier("start")
os.kill(os.getpid(), signal.SIGKILL) if d.process_index() else time.sleep(20)
"""
    began = time.monotonic()
    zero, one = pair(script)
    assert one[0] == -signal.SIGKILL
    assert zero[0] not in (0, None)
    assert "Lost contact with process 1 of 2 1 s ago." in zero[2]
    assert time.monotonic() - began < 18


def test_a_port_in_use_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        script = f"d.initialize({address!r}, 2, 0, timeout=5)"
        done = subprocess.run([sys.executable, "-c", HEAD + script], capture_output=True, text=True, check=False)
    assert f"`coordinator_address` must be an address of this host with a free port; got {address}." in done.stderr


def test_a_place_that_jax_does_not_find_is_refused():
    # Says that there are TPUs, where there are none.
    script = "os.environ.update(JAX_PLATFORMS='tpu', TPU_ML_PLATFORM='JAX')\nd.initialize(timeout=5)"
    done = subprocess.run([sys.executable, "-c", HEAD + script], capture_output=True, text=True, check=False)
    assert "`coordinator_address` must be given; got nothing, and JAX finds none on Cloud TPU." in done.stderr


def test_a_call_after_the_first_computation_is_refused():
    jax.devices()
    with pytest.raises(ValueError, match="`initialize` must be called before anything that uses a device"):
        distributed.initialize("127.0.0.1:61440", 2, 0, timeout=1)


def test_one_process_needs_no_service(monkeypatch):
    for name in (*os.environ,):
        if name.startswith(("SLURM_", "OMPI_", "PMIX_", "ISOTHERM_")):
            monkeypatch.delenv(name)
    distributed.initialize()
    distributed.initialize()
    distributed.initialize("127.0.0.1:61440", 1, 0)
    for name, value in TASK.items():
        monkeypatch.setenv(name, value)
    distributed.initialize(num_processes=1)
    assert (distributed.process_count(), distributed.process_index()) == (1, 0)
    assert distributed.agree("text", "name") == "text"
    assert distributed.agree(b"\xff", "name") == b"\xff"
    distributed.barrier("name")
    assert distributed.any_true(True) is True
    assert distributed.any_true(False) is False
    assert distributed.max_of(2) == 2.0
    assert math.isnan(distributed.max_of(math.nan))
    assert distributed.largest_of((1, 2.5)) == (1.0, 2.5)
    distributed.check_equal(b"any", "name", "Nothing.")
    assert distributed.reached_preemption(3) is False
    distributed.fail("nothing")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"num_processes": 2}, "`coordinator_address` must be given; got nothing, and no scheduler was found"),
        ({"coordinator_address": "a:1", "num_processes": 2}, "`process_id` must be given"),
        ({"coordinator_address": "here"}, "`coordinator_address` must be of the form HOST:PORT; got 'here'"),
        ({"coordinator_address": "a:70000"}, "of the form HOST:PORT; got 'a:70000'"),
        ({"num_processes": 0}, "`num_processes` must be an integer of at least 1; got 0"),
        ({"process_id": -1}, "`process_id` must be an integer of at least 0; got -1"),
        (
            {"coordinator_address": "a:1", "num_processes": 2, "process_id": 2},
            "`process_id` must be below the number of",
        ),
        ({"local_device_ids": [-1]}, "`local_device_ids` must be an integer of at least 0; got -1"),
        ({"timeout": 0.5}, "`timeout` must be a finite real number at least 1; got 0.5"),
        ({"heartbeat_timeout": math.inf}, "`heartbeat_timeout` must be a finite real number at least 1"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        distributed.initialize(**call)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distributed.agree(3, "x"), "`value` must be text or bytes; got 3"),  # pyright: ignore[reportArgumentType]
        (lambda: distributed.agree("x" * (1 << 22), "x"), "`value` must be at most 2,097,152 bytes; got 4,194,304"),
        (lambda: distributed.barrier(""), "`name` must be text without a slash; got ''"),
        (lambda: distributed.barrier("a/b"), "`name` must be text without a slash; got 'a/b'"),
        (lambda: distributed.barrier("a", timeout=0), "`timeout` must be a finite real number above 0; got 0"),
    ],
)
def test_wrong_messages_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# A task of `srun -N2 -n4`, as Slurm 22.05 sets it.
TASK = {
    "SLURM_JOB_ID": "812",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "node[1-2]",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
}
MPI = {
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
}


def place(**variables):
    found = find_place(variables)
    assert found is not None
    return found


def test_a_task_of_slurm_is_found():
    found = place(**TASK)
    assert (found.launcher, found.num_processes, found.process_id) == ("Slurm", 4, 3)
    assert found.coordinator is not None
    host, port = found.coordinator.split(":")
    assert host == "node1"
    assert 61440 <= int(port) < 65536
    # Steps of a job, and its turns, have ports of their own.
    others = [place(**TASK, SLURM_RESTART_COUNT="1"), place(**{**TASK, "SLURM_STEP_ID": "1"})]
    assert len({found.coordinator, *(other.coordinator for other in others)}) == 3
    assert place(**TASK, JAX_COORDINATOR_PORT="7000").coordinator == "node1:7000"
    assert place(**TASK, JAX_COORDINATOR_ADDRESS="ib1:7000").coordinator == "ib1:7000"


@pytest.mark.parametrize(
    "missing", ["SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"]
)
def test_shells_in_an_allocation_are_single_processes(missing):
    # ssh and batch scripts have some of the variables (jax#30073).
    assert find_place({name: value for name, value in TASK.items() if name != missing}) is None


@pytest.mark.parametrize(
    ("variables", "devices"),
    [
        ({}, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, (2, 3)),
        ({"ROCR_VISIBLE_DEVICES": "4,5"}, (1,)),
        # Slurm binds GPUs to tasks: each sees its own, from 0 on (jax#28194).
        ({"CUDA_VISIBLE_DEVICES": "0", "SLURM_GPUS_PER_TASK": "1"}, None),
        ({"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_GPUS_PER_TASK": "2"}, None),
        ({"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_GPUS_ON_NODE": "4"}, None),
        ({"CUDA_VISIBLE_DEVICES": ""}, None),
        # A node with one task: it gets all.
        ({"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_STEP_TASKS_PER_NODE": "3,1"}, None),
        ({"CUDA_VISIBLE_DEVICES": "0,1", "JAX_LOCAL_DEVICE_IDS": "0,1"}, (0, 1)),
    ],
)
def test_gpus_are_shared_out(variables, devices):
    assert place(**{**TASK, **variables}).local_device_ids == devices


def test_gpus_that_cannot_be_shared_out_are_refused():
    with pytest.raises(
        ValueError, match="`CUDA_VISIBLE_DEVICES` must be a multiple of the 2 tasks on this host; got 3 G"
    ):
        find_place({**TASK, "CUDA_VISIBLE_DEVICES": "0,1,2"})


def test_open_mpi_is_found_before_slurm():
    found = place(**TASK, **MPI)
    assert found[0] == "Open MPI"
    assert found[2:] == (2, 1, None)
    assert found.coordinator is not None
    assert found.coordinator.startswith("10.96.0.1:6")
    local = {"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    assert str(place(**{**MPI, **local}).coordinator).startswith("127.0.0.1:6")
    uri = "1314521088.0;tcp6://[fe80::b9b,2620::2]:43370"
    assert str(place(**{**MPI, "OMPI_MCA_orte_hnp_uri": uri}).coordinator).startswith("[fe80::b9b]:6")
    # Open MPI 5.
    newer = {name: value for name, value in MPI.items() if "orte" not in name}
    with pytest.raises(ValueError, match="`JAX_COORDINATOR_ADDRESS` must be set for Open MPI 5 on several hosts"):
        find_place(newer)
    assert place(**newer, JAX_COORDINATOR_ADDRESS="a:1").coordinator == "a:1"


def test_other_places():
    launched = {
        launch_variables.COORDINATOR: "127.0.0.1:7000",
        launch_variables.NUM_PROCESSES: "2",
        launch_variables.PROCESS_ID: "1",
    }
    assert place(**launched, **TASK) == Place("isotherm launch", "127.0.0.1:7000", 2, 1)
    with pytest.raises(ValueError, match="`ISOTHERM_PROCESS_ID` must be set, as other variables of the launcher are"):
        find_place({name: value for name, value in launched.items() if name != launch_variables.PROCESS_ID})
    with pytest.raises(ValueError, match="`ISOTHERM_NUM_PROCESSES` must be a number; got 'two'"):
        find_place({**launched, launch_variables.NUM_PROCESSES: "two"})
    # A pod that is not part of an indexed job.
    assert find_place({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) is None
    with pytest.raises(ValueError, match="`ISOTHERM_COORDINATOR` must be set in an indexed Kubernetes job"):
        find_place({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "1"})
    assert place(TPU_ML_PLATFORM="JAX") == Place("Cloud TPU")
    assert find_place({"TPU_ML_PLATFORM": "JAX", "JAX_PLATFORMS": "cpu"}) is None
    assert find_place({}) is None
