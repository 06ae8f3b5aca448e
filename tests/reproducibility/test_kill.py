"""A run that is killed at any moment resumes and ends as if it had not been."""

import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np

import isotherm as iso
from tests.reproducibility.child import go

NUM_KILLS = 20
CHILD = pathlib.Path(__file__).parent / "child.py"


def test_killed_at_twenty_random_moments(tmp_path):
    whole = go(tmp_path / "whole")
    moments = random.Random(1)
    kills, kills_while_running, number = 0, 0, 0
    while kills < NUM_KILLS:
        folder = tmp_path / f"killed-{number}"
        began = time.time()
        child = subprocess.Popen([sys.executable, str(CHILD), str(folder)], cwd=CHILD.parents[2])
        # Every other one is killed while it iterates; the others at any moment, such as while they start.
        while kills % 2 and child.poll() is None and not has_saved(folder, began):
            time.sleep(0.05)
        time.sleep(moments.uniform(0.0, 2.0))
        if child.poll() is None:
            kills += 1
            kills_while_running += has_saved(folder, began)
            child.send_signal(signal.SIGKILL)
            child.wait()
        else:
            assert child.returncode == 0
            compare(whole, iso.load(folder))
            number += 1
    compare(whole, go(tmp_path / f"killed-{number}"))
    assert kills_while_running >= NUM_KILLS // 3


def has_saved(folder, began):
    checkpoints = folder / "checkpoints"
    return checkpoints.exists() and checkpoints.stat().st_mtime > began


def compare(whole, other):
    np.testing.assert_array_equal(whole.draws[:], other.draws[:])
    np.testing.assert_array_equal(whole.energies[:], other.energies[:])
    for name, value in whole.stats.items():
        np.testing.assert_array_equal(value, other.stats[name])
