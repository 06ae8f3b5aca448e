"""Runs over several devices: the same bytes as on one, and what travels between them."""

import json
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

import isotherm as iso
from isotherm.engine.sharding import choose_sharding
from isotherm.foundation.errors import InputError
from tests.reproducibility.child_devices import CASES, QUICK, run_of

ROOT = pathlib.Path(__file__).parents[2]


def run_child(tmp_path, counts, names):
    """Draws, energies and weights by case and number of devices."""
    path = tmp_path / "found.npz"
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags, "NPROC": "8"}
    command = [sys.executable, "-m", "tests.reproducibility.child_devices", str(path)]
    command += [",".join(map(str, counts)), ",".join(names)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=1_800)
    return dict(np.load(path))


def compare(found, counts, names):
    for name in names:
        own = sorted(key.split("/")[-1] for key in found if key.startswith(f"{name}/{counts[0]}/"))
        assert own
        for place in own:
            first = found[f"{name}/{counts[0]}/{place}"]
            assert np.ptp(first[np.isfinite(first)]) > 0 or place == own[-1]
            for count in counts[1:]:
                np.testing.assert_array_equal(found[f"{name}/{count}/{place}"], first, f"{name} on {count} devices")


def test_one_and_three_devices_give_the_same_bytes(tmp_path):
    compare(run_child(tmp_path, [1, 3], QUICK), [1, 3], QUICK)


@pytest.mark.long
def test_any_number_of_devices_gives_the_same_bytes(tmp_path):
    compare(run_child(tmp_path, [1, 2, 4, 8], CASES), [1, 2, 4, 8], CASES)


def test_a_changed_seed_differs():
    first, second = (run_of("resgld", seed=seed, num_steps=30) for seed in (5, 6))
    assert not np.array_equal(first.draws, second.draws)


def exchanges(sizes):
    """Bytes of every exchange between four devices, by sampler and size of the position."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    command = [sys.executable, "-m", "tests.reproducibility.child_traffic", ",".join(map(str, sizes))]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "XLA_FLAGS": flags}, check=True, capture_output=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "sizes", [(10, 100_000), pytest.param((10, 10_000_000), marks=pytest.mark.long)], ids=["quick", "long"]
)
def test_devices_exchange_a_few_numbers_per_chain(sizes):
    found = exchanges(sizes)
    for name, by_size in found.items():
        small, large = (by_size[str(size)] for size in sizes)
        # In an iteration the energies of four chains and those of the prior; now and then a few measurements of them.
        assert small == large, name
        assert small[0] == 4 * 2 * 4
        assert sum(small) <= 4 * 2 * 4 * 11


@pytest.mark.parametrize(
    ("number", "runs", "chains", "splits", "grid"),
    [
        (1, 5, 5, True, None),
        (4, None, 1, True, None),
        (4, None, 16, False, None),
        (4, None, 16, True, (1, 4)),
        (4, 2, 8, True, (2, 2)),
        (4, 3, 8, False, (3, 1)),
        (4, 3, 8, True, (1, 4)),
        (8, 3, 1, True, (3, 1)),
        (8, 100, 4, True, (8, 1)),
        (8, None, 5, True, (1, 5)),
        (8, None, 9, True, (1, 5)),
        (8, 3, 4, True, (3, 2)),
    ],
)
def test_runs_are_shared_out_before_chains(number, runs, chains, splits, grid):
    found = choose_sharding(tuple(range(number)), runs, chains, splits)
    assert (found and (found.over_runs, found.over_chains)) == grid


def test_wrong_devices_are_refused():
    sampler, given = iso.sgld(0.1), {"num_steps": 10, "init": np.zeros(2, np.float32)}
    for wrong in (0, 99, True, [], ["cpu"], [jax.devices()[0]] * 2):
        with pytest.raises(InputError, match="`devices` must be"):
            iso.sample(lambda x: x @ x, sampler, devices=wrong, **given)
    assert iso.sample(lambda x: x @ x, sampler, devices=jax.devices()[:1], **given).num_draws == 10
