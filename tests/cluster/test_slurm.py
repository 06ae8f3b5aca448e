"""srun, sbatch and requeued jobs on two nodes of a real Slurm."""

import json
import re
import sys
import time

import numpy as np
import pytest

import isotherm as iso

PYTHON = sys.executable


def lines_of(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def sample(shared, out, num_steps, seed=0):
    words = ["sample", f"{shared / 'mine.py'}:energy", "--method", "sgld", "--step-size", "0.1", "--init", "0", "0"]
    size = ["--num-steps", str(num_steps), "--thinning", str(max(num_steps // 2000, 1)), "--num-chains", "4"]
    return ["isotherm", *words, *size, "--seed", str(seed), "--out", str(out)]


@pytest.fixture(scope="session")
def steps_per_second(shared, tmp_path_factory):
    """Iterations of `sample` in a second, here and now."""
    run = iso.sample(
        lambda x: 0.5 * ((x - 1.0) ** 2).sum(),
        iso.sgld(step_size=0.1),
        num_steps=2_000_000,
        num_chains=4,
        thinning=1000,
        init=np.zeros(2, np.float32),
        progress=False,
        measure_bias=False,
    )
    return 2_000_000 / run.seconds


def test_two_nodes_compute_together(cluster, shared):
    done = cluster.run("srun", "-N2", "-n2", PYTHON, shared / "program.py")
    found = sorted(lines_of(done.stdout), key=lambda one: one["index"])
    assert done.returncode == 0, done.stderr
    assert [one["host"] for one in found] == ["node1", "node2"]
    for one in found:
        assert {**one, "index": 0, "host": ""} == {
            "index": 0,
            "host": "",
            "count": 2,
            "sum": 3.0,
            "each": [1.0, 2.0],
            "agreed": "from 0",
            "any": True,
            "max": 10.0,
        }


def test_steps_of_one_job_do_not_meet(cluster, shared):
    step = f"srun -N2 -n2 --exact {PYTHON} {shared / 'program.py'}"
    done = cluster.run("salloc", "-N2", "-n4", "sh", "-c", f"{step} & {step} & wait")
    found = lines_of(done.stdout)
    assert [one["count"] for one in found] == [2] * 4, done.stderr
    assert sorted(one["index"] for one in found) == [0, 0, 1, 1]


@pytest.mark.parametrize("words", [("srun", "-n1"), ("salloc", "-n4"), ("salloc", "-n4", "srun", "-n1")], ids=" ".join)
def test_single_processes_of_an_allocation_stay_alone(cluster, shared, words):
    done = cluster.run(*words, PYTHON, shared / "program.py")
    (found,) = lines_of(done.stdout)
    assert (found["count"], found["index"], found["each"]) == (1, 0, [1.0])


def test_a_task_that_fails_ends_the_others(cluster, shared):
    code = "import isotherm.distributed as d; d.initialize(); 1 / d.process_index(); d.barrier('the end')"
    began = time.monotonic()
    done = cluster.run("srun", "-N2", "-n2", PYTHON, "-c", code)
    assert done.returncode == 1
    assert "Process 0 of 2 failed: ZeroDivisionError: division by zero" in done.stderr
    assert time.monotonic() - began < 30


def test_a_missing_task_is_named(cluster, shared):
    code = "import os, isotherm.distributed as d; os.environ['SLURM_PROCID'] == '0' or os._exit(0); d.initialize(timeout=5)"
    done = cluster.run("srun", "-N2", "-n2", PYTHON, "-c", code)
    assert "Waited 5 s at node1:" in done.stderr
    assert "for 2 processes (according to Slurm): not all came" in done.stderr


def test_sample_in_one_task(cluster, shared, tmp_path):
    done = cluster.run("srun", "-n1", *sample(shared, tmp_path / "run", 20_000))
    assert done.returncode == 0, done.stderr
    assert iso.load(tmp_path / "run").draws.shape == (4, 2000, 2)


def test_sample_in_two_tasks(cluster, shared, tmp_path):
    one = cluster.run("srun", "-n1", *sample(shared, tmp_path / "one", 20_000))
    two = cluster.run("srun", "-N2", "-n2", *sample(shared, tmp_path / "two", 20_000))
    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    np.testing.assert_array_equal(iso.load(tmp_path / "one").draws[:], iso.load(tmp_path / "two").draws[:])


def submitted(cluster, folder, command, *options):
    """Submit a script of `isotherm slurm`; returns its number and log."""
    log = folder / "job.log"
    given = ["--output", log, "--submit", *options, "--", *command]
    done = cluster.run("isotherm", "slurm", *given)
    found = re.search(r"Submitted job (\d+)\.", done.stdout)
    assert found, done.stderr
    return found[1], log


def wait_for(path, timeout=60):
    deadline = time.monotonic() + timeout
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.2)


def requeued(cluster, shared, folder, steps_per_second, *options):
    """A job that Slurm starts again in the middle of its run, and the same run in one piece."""
    num_steps = int(12 * steps_per_second)
    job, log = submitted(cluster, folder, sample(shared, folder / "run", num_steps), *options)
    # The first checkpoint is saved after three seconds.
    wait_for(folder / "run" / "progress.json")
    time.sleep(1)
    assert cluster.run("scontrol", "requeue", job).returncode == 0
    took = cluster.wait(job, "COMPLETED", "FAILED", timeout=150)
    assert cluster.state(job) == "COMPLETED", log.read_text()
    assert "Restarts=1" in cluster.run("scontrol", "show", "job", job).stdout
    whole = cluster.run("srun", "-n1", *sample(shared, folder / "whole", num_steps))
    assert whole.returncode == 0, whole.stderr
    run, same = iso.load(folder / "run"), iso.load(folder / "whole")
    assert run.earlier_seconds > 0
    np.testing.assert_array_equal(run.draws[:], same.draws[:])
    return took


def test_a_requeued_job_resumes(cluster, shared, tmp_path, steps_per_second):
    requeued(cluster, shared, tmp_path, steps_per_second)


def test_a_requeued_job_of_two_tasks_resumes(cluster, shared, tmp_path, steps_per_second):
    requeued(cluster, shared, tmp_path, steps_per_second, "--nodes", "2")


def at_the_time_limit(cluster, shared, folder, steps_per_second, *options):
    """A job with a time limit of a minute, whose run needs more."""
    num_steps = int(75 * steps_per_second)
    command = sample(shared, folder / "run", num_steps)
    job, log = submitted(cluster, folder, command, "--time", "1", "--grace", "20", *options)
    cluster.wait(job, "COMPLETED", "FAILED", "TIMEOUT", timeout=400)
    text = log.read_text()
    assert cluster.state(job) == "COMPLETED", text
    assert "Time limit: queueing again to continue (restart 1 of at most 100)." in text
    run = iso.load(folder / "run")
    assert run.num_steps == num_steps
    assert run.earlier_seconds > 0


def test_a_job_continues_over_its_time_limit(cluster, shared, tmp_path, steps_per_second):
    at_the_time_limit(cluster, shared, tmp_path, steps_per_second)


def test_a_job_of_two_tasks_continues_over_its_time_limit(cluster, shared, tmp_path, steps_per_second):
    at_the_time_limit(cluster, shared, tmp_path, steps_per_second, "--nodes", "2")


def test_a_cancelled_job_saves_and_stays_ended(cluster, shared, tmp_path, steps_per_second):
    job, log = submitted(cluster, tmp_path, sample(shared, tmp_path / "run", int(120 * steps_per_second)))
    wait_for(tmp_path / "run" / "progress.json")
    cluster.run("scancel", job)
    cluster.wait(job, "CANCELLED")
    # The state is that of the job; its task may still be saving.
    time.sleep(5)
    assert "Everything is on disk. Resume with: isotherm resume" in log.read_text()
    assert "queueing again" not in log.read_text()
    assert cluster.state(job) == "CANCELLED"
