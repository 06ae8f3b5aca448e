"""A run that is killed at any moment resumes and ends as if it had not been."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import isotherm as iso
from tests.reproducibility.child import ended, go

NUM_KILLS = 20
CHILD = pathlib.Path(__file__).parent / "child.py"


@pytest.fixture
def start():
    """Starts a run in a process of its own, and gives the number of it."""
    command = [sys.executable, str(CHILD)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    nursery: Any
    with subprocess.Popen(command, cwd=CHILD.parents[2], env=environment, text=True, **pipes) as nursery:

        def begin(folder):
            nursery.stdin.write(f"{folder}\n")
            nursery.stdin.flush()
            return int(nursery.stdout.readline())

        yield begin
        nursery.stdin.close()


def test_killed_at_twenty_random_moments(tmp_path, start):
    whole = go(tmp_path / "whole")
    moments = random.Random(1)
    kills, kills_while_running, number = 0, 0, 0
    while kills < NUM_KILLS:
        folder = tmp_path / f"killed-{number}"
        began = time.time()
        process = start(folder)
        # Every other one is killed while it iterates; the others at any moment, such as while they start.
        while kills % 2 and is_alive(process) and not has_saved(folder, began):
            time.sleep(0.05)
        time.sleep(moments.uniform(0.0, 1.0))
        if is_alive(process):
            kills += 1
            kills_while_running += has_saved(folder, began)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            while is_alive(process):
                time.sleep(0.01)
        else:
            assert ended(folder).exists()
            compare(whole, iso.load(folder))
            number += 1
    compare(whole, go(tmp_path / f"killed-{number}"))
    assert kills_while_running >= NUM_KILLS // 3


def is_alive(process):
    return pathlib.Path(f"/proc/{process}").exists()


def has_saved(folder, began):
    checkpoints = folder / "checkpoints"
    return checkpoints.exists() and checkpoints.stat().st_mtime > began


def compare(whole, other):
    np.testing.assert_array_equal(whole.draws[:], other.draws[:])
    np.testing.assert_array_equal(whole.energies[:], other.energies[:])
    for name, value in whole.stats.items():
        np.testing.assert_array_equal(value, other.stats[name])
