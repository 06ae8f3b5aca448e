"""Folders that are full, read-only or gone, and devices without memory: what is told, and what stays."""

import functools
import json
import os
import pathlib
import resource
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.cli.main import main
from isotherm.driver import checkpoints
from isotherm.engine.program import Program
from isotherm.foundation.errors import DeviceMemoryError, StorageError


def energy(x):
    return 0.5 * jnp.sum(x**2)


SAMPLER = iso.sgld(step_size=0.1)
SETTINGS: dict[str, Any] = {"num_steps": 200, "num_chains": 2, "seed": 4, "init": np.ones(2, np.float32)}
SETTINGS |= {"block_length": 20, "checkpoint_every": 0.0, "measure_bias": False}


def run_in(folder, **changes):
    return iso.sample(energy, SAMPLER, **{"out": folder, **SETTINGS, **changes})


def resumed_equals_whole(folder):
    run = iso.resume(folder, energy, SAMPLER, measure_bias=False)
    np.testing.assert_array_equal(run.draws[:], run_in(None).draws)


def out_of_memory(advance, number):
    """`Program.advance`, which fails at its `number`-th call as XLA does."""
    calls = []

    @functools.wraps(advance)
    def failing(*given):
        calls.append(1)
        if len(calls) == number:
            raise jax.errors.JaxRuntimeError(
                "RESOURCE_EXHAUSTED: Out of memory allocating 17179869184 bytes.\nBuffers: 1"
            )
        return advance(*given)

    return failing


def test_a_device_without_memory_is_told_and_the_run_resumes(tmp_path, monkeypatch):
    run_in(None)
    with monkeypatch.context() as patch:
        patch.setattr(Program, "advance", out_of_memory(Program.advance, 12))
        message = (
            r"ran out of memory after \d+ iterations: Out of memory allocating 17179869184 bytes\. End other programs .*"
            r"iso\.resume\(.*run.*chain_mode=.map"
        )
        with pytest.raises(DeviceMemoryError, match=message):
            run_in(tmp_path / "run")
    reached = iso.load(tmp_path / "run").num_steps
    assert 0 < reached < 200
    resumed_equals_whole(tmp_path / "run")
    assert [line["iteration"] for line in log_of(tmp_path / "run")] == [0, reached, reached, 200]
    assert log_of(tmp_path / "run")[1]["error"] == "DeviceMemoryError"


def test_memory_that_ends_at_a_checkpoint_is_not_told_as_a_full_disk(tmp_path, monkeypatch):
    run_in(None)
    monkeypatch.setattr(Program, "advance", out_of_memory(Program.advance, 3))
    with pytest.raises(DeviceMemoryError, match="The device ran out of memory"):
        run_in(tmp_path / "run")


def test_an_energy_that_does_not_fit_is_refused_with_a_remedy(tmp_path):
    def large(x):
        row = x[0] * jnp.arange(2.0**20)
        return energy(x) + jnp.sum(jnp.tanh(jnp.outer(row, row)) @ row)

    message = (
        r"The device ran out of memory before the first iteration: Out of memory allocating \d+ bytes\. Take fewer"
    )
    with pytest.raises(DeviceMemoryError, match=message):
        iso.sample(large, SAMPLER, **{**SETTINGS, "out": tmp_path / "run"})
    assert not (tmp_path / "run").exists()


def test_the_shell_tells_it_in_one_line(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine.py").write_text("def energy(x):\n    return (x**2).sum()\n")
    monkeypatch.setattr(Program, "advance", out_of_memory(Program.advance, 1))
    options = ["--method", "sgld", "--step-size", "0.1", "--num-steps", "20", "--init", "0", "0"]
    with pytest.raises(SystemExit):
        main(["sample", f"{tmp_path}/mine.py:energy", *options, "--out", str(tmp_path / "run")])
    assert "Error: The device ran out of memory" in capsys.readouterr().err


def test_other_errors_of_the_device_stay_as_they_are(monkeypatch):
    def failing(*_):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    run_in(None)
    monkeypatch.setattr(Program, "advance", failing)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        run_in(None)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are POSIX's")
@pytest.mark.parametrize("limit", [0, 400, 3_000])
def test_checkpoints_stay_whole_when_the_disk_is_full(tmp_path, limit):
    """Every file beyond a size fails from the third block on: draws, then checkpoints, then progress."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def callback(status):
        if status.iteration == 60:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))

    try:
        with pytest.raises(StorageError, match=r"Writing to .*run failed after \d+ iterations: .*iso\.resume\("):
            run_in(tmp_path / "run", callback=callback)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert iso.load(tmp_path / "run").num_steps in (60, 80)
    resumed_equals_whole(tmp_path / "run")


@pytest.fixture
def read_only(tmp_path):
    """Makes a folder read-only, for root by a file system of its own."""
    mounted = []

    def make(folder):
        if os.geteuid() != 0:
            for path in [folder, *folder.rglob("*")]:
                path.chmod(path.stat().st_mode & ~0o222)
            return
        if subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False).returncode:
            pytest.skip("root cannot mount here, and may write to every folder")
        mounted.append(folder)
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)

    yield make
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions are POSIX's")
def test_a_folder_that_cannot_be_written_to_is_read_and_not_resumed(tmp_path, read_only):
    draws = run_in(tmp_path / "run").draws[:]
    read_only(tmp_path / "run")
    np.testing.assert_array_equal(iso.load(tmp_path / "run").draws[:], draws)
    rule = r"`folder` must be a folder that can be written to; got .*run, where that failed \((Read-only|Permission)"
    with pytest.raises(ValueError, match=rule):
        iso.resume(tmp_path / "run", energy, SAMPLER, num_steps=300)
    with pytest.raises(ValueError, match=r"`out` must be a folder that can be written to"):
        run_in(tmp_path / "run" / "new")


def log_of(folder):
    return [json.loads(line) for line in (pathlib.Path(folder) / "log.jsonl").read_text().splitlines()]


def test_a_run_goes_on_where_damaged_checkpoints_were(tmp_path, monkeypatch):
    """Orbax writes no checkpoint before the newest that it finds, even a damaged one."""
    monkeypatch.setattr(checkpoints, "NUM_KEPT", 10)
    folder, changes = tmp_path / "run", {"num_steps": 50_000, "thinning": 100}
    run_in(folder, block_length=10_000, **changes)
    (folder / "finished.json").unlink()
    for step in (30_000, 40_000, 50_000):
        for path in (folder / "checkpoints" / str(step)).rglob("*"):
            if path.is_file():
                path.write_bytes(b"")
    newest = []

    def callback(status):
        newest.append(max(int(path.name) for path in (folder / "checkpoints").iterdir()))

    with pytest.warns(UserWarning, match="at iteration 20000|at iteration 20,000"):
        run_in(folder, resume=True, callback=callback, **changes)
    assert 20_000 < newest[0] < 30_000
