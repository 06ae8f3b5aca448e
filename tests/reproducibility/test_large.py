"""Draws larger than memory."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

import isotherm as iso

SCRIPT = """
import re, sys
import jax.numpy as jnp
import isotherm as iso

run = iso.sample(lambda x: 0.5 * jnp.sum(x**2), iso.sgld(step_size=0.1), num_steps=50_000, init=jnp.zeros(10_000), out=sys.argv[1])
mean = run.expectation(lambda x: x[:3])
assert abs(mean).max() < 0.2, mean
# Not `ru_maxrss`, which a child takes over from the process that started it.
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.long
def test_two_gigabytes_of_draws_in_less_than_one_of_memory(tmp_path):
    out = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    megabytes = int(out.stdout.split()[-1])
    on_disk = sum(path.stat().st_size for path in pathlib.Path(tmp_path).rglob("*") if path.is_file())
    assert on_disk > 2e9
    assert megabytes < 1_000
    run = iso.load(tmp_path / "run")
    assert run.draws.shape == (1, 50_000, 10_000)
    late = run.draws[0, 49_000:]
    assert late.var() == pytest.approx(1 / 0.95, rel=0.01)
    np.testing.assert_allclose((late[::100] ** 2).sum(axis=1) / 2, run.energies[0, 49_000::100], rtol=1e-4)
