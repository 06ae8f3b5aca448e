"""Runs of several processes over loopback: the same bytes as in one, however they are stopped and resumed."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

import isotherm as iso
from tests.reproducibility.child_devices import CASES, run_of

ROOT = pathlib.Path(__file__).parents[2]
QUICK = ("resgld",)


def launch(folder, number, names, stop_after=0, devices=1):
    """Run cases in several processes."""
    command = [
        str(pathlib.Path(sys.executable).with_name("isotherm")),
        "launch",
        "-n",
        str(number),
        "--logs",
        str(folder / "logs"),
    ]
    command += [
        "--devices-per-process",
        str(devices),
        "--",
        sys.executable,
        "-m",
        "tests.reproducibility.child_processes",
    ]
    done = subprocess.run(
        [*command, str(folder), ",".join(names), str(stop_after)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1_800,
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]


def compare(folder, names):
    for name in names:
        run, whole = iso.load(folder / name), run_of(name)
        np.testing.assert_array_equal(run.draws[:], whole.draws, name)
        np.testing.assert_array_equal(run.energies[:], whole.energies, name)
        np.testing.assert_array_equal(run.log_weights[:], whole.log_weights, name)


def test_two_processes_that_stop_and_resume_give_the_bytes_of_one(tmp_path):
    launch(tmp_path, 2, QUICK, stop_after=150)
    assert 0 < iso.load(tmp_path / QUICK[0]).num_steps < 300
    launch(tmp_path, 2, QUICK)
    compare(tmp_path, QUICK)


@pytest.mark.long
@pytest.mark.parametrize(("number", "devices"), [(2, 1), (4, 1), (2, 2)])
def test_any_number_of_processes_gives_the_bytes_of_one(tmp_path, number, devices):
    names = tuple(name for name in CASES if not name.startswith("perceptron"))
    launch(tmp_path, number, names, devices=devices)
    compare(tmp_path, names)


@pytest.mark.long
def test_a_run_of_two_processes_resumes_in_one_and_in_four(tmp_path):
    names = ("resgld", "icsgld", "sgld in runs")
    launch(tmp_path, 2, names, stop_after=90)
    launch(tmp_path, 4, names[:2])
    potential, _, sampler, _ = CASES[names[2]]
    iso.resume(tmp_path / names[2], potential, sampler, measure_bias=False)
    compare(tmp_path, names)
