"""Data on the host: the same bytes, for any sampler, and sets larger than memory."""

import dataclasses
import pathlib
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.driver import data_source
from isotherm.engine import program_cache

pytestmark = pytest.mark.as_users

RNG = np.random.default_rng(0)
X = RNG.standard_normal((130, 4)).astype(np.float32)
Y = X @ np.array([1.0, -2.0, 0.5, 0.0], np.float32) + 0.3 * RNG.standard_normal(130).astype(np.float32)
CHILD = pathlib.Path(__file__).parent / "child_memory.py"


def log_likelihood(weights, examples):
    return -0.5 * (examples[1] - examples[0] @ weights) ** 2


def potential_of(data=(X, Y), **options):
    return iso.from_likelihood(log_likelihood, lambda w: -0.5 * jnp.sum(w**2), data, batch_size=20, **options)


SAMPLERS = {
    "sghmc": (iso.sghmc(1e-3), {"num_chains": 2}),
    "measured swaps": (iso.resgld(1e-3, temperatures=(1.0, 3.0), measure_every=30), {}),
    "fresh energies": (iso.resgld(1e-3, temperatures=(1.0, 3.0), energy_batch="fresh"), {}),
}


@pytest.mark.parametrize(
    ("name", "is_shared"), [("sghmc", True), ("sghmc", False), ("measured swaps", False), ("fresh energies", True)]
)
def test_streaming_gives_the_same_run(name, is_shared, monkeypatch):
    # Small blocks, so that several are gathered ahead.
    monkeypatch.setattr(data_source, "_STREAM_BYTES", 20_000)
    sampler, options = SAMPLERS[name]
    runs = [
        iso.sample(
            potential_of(is_batch_shared=is_shared, is_streamed=is_streamed),
            sampler,
            num_steps=200,
            num_runs=2,
            thinning=7,
            init=jnp.zeros(4),
            progress=False,
            **options,
        )
        for is_streamed in (False, True)
    ]
    # The same batches and the same arithmetic; the compiler may fuse it otherwise, to the last bit.
    np.testing.assert_allclose(runs[0].draws, runs[1].draws, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(runs[0].energies, runs[1].energies, rtol=1e-5)


def test_a_stream_is_resumed(tmp_path):
    potential = potential_of(is_streamed=True)
    sampler = iso.sghmc(1e-3)
    options = {"thinning": 5, "init": jnp.zeros(4), "progress": False}
    whole = iso.sample(potential, sampler, num_steps=120, **options)
    iso.sample(potential, sampler, num_steps=50, out=tmp_path / "run", **options)
    resumed = iso.resume(tmp_path / "run", potential, sampler, num_steps=120, progress=False)
    np.testing.assert_array_equal(whole.draws, np.asarray(resumed.draws))


@pytest.mark.parametrize("is_adaptive", [False, True])
def test_control_variates_of_a_stream_are_those_of_data_on_the_device(is_adaptive, tmp_path):
    """Full passes, coefficients and swaps: bit by bit, with a short last piece, and after a stop."""
    sampler = iso.vr_resgld(1e-3, temperatures=(1.0, 3.0), refresh_every=7, is_adaptive=is_adaptive)
    options = {"num_steps": 60, "init": jnp.zeros(4), "progress": False}
    resident = iso.sample(potential_of(), sampler, **options)
    streamed = iso.sample(potential_of(is_streamed=True), sampler, **options)
    np.testing.assert_array_equal(resident.draws, streamed.draws)
    np.testing.assert_allclose(resident.energies, streamed.energies, rtol=1e-6)
    np.testing.assert_allclose(
        resident.stats["variance_of_difference"], streamed.stats["variance_of_difference"], rtol=1e-3
    )
    iso.sample(potential_of(is_streamed=True), sampler, **{**options, "num_steps": 40}, out=tmp_path / "run")
    resumed = iso.resume(tmp_path / "run", potential_of(is_streamed=True), sampler, num_steps=60)
    np.testing.assert_array_equal(np.asarray(resumed.draws), streamed.draws)


def test_other_data_of_the_same_shape_compile_nothing():
    sampler, options = iso.sgld(1e-3), {"num_steps": 50, "init": jnp.zeros(4), "progress": False}
    first = potential_of()
    one = iso.sample(first, sampler, **options)
    before = program_cache.num_programs()
    second = dataclasses.replace(first, data=(X[::-1].copy(), 2 * Y))
    other = iso.sample(second, sampler, **options)
    assert program_cache.num_programs() == before
    # The new data were used, and a potential that differs in more is another program.
    assert not np.allclose(one.draws, other.draws)
    iso.sample(dataclasses.replace(first, batching="independent"), sampler, **options)
    assert program_cache.num_programs() > before


def test_room_to_grow_compiles_nothing_and_counts_what_is_there():
    sampler, options = iso.sgld(1e-3), {"num_steps": 50, "init": jnp.zeros(4), "progress": False}
    few = potential_of(num_used=40)
    iso.sample(few, sampler, **options)
    before = program_cache.num_programs()
    more = dataclasses.replace(few, num_used=100)
    run = iso.sample(more, sampler, **options)
    assert program_cache.num_programs() == before
    cut = iso.sample(potential_of((X[:100], Y[:100])), sampler, **options)
    np.testing.assert_array_equal(run.draws, cut.draws)
    weights = jnp.ones(4)
    assert float(more.full_energy(weights)) == pytest.approx(
        float(potential_of((X[:100], Y[:100])).full_energy(weights)), rel=1e-5
    )


def child(kind, path):
    command = [sys.executable, str(CHILD), kind, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_set_four_times_the_memory_limit_trains(tmp_path):
    found = child("streamed", tmp_path / "data.npy")
    assert found.returncode == 0, found.stderr[-2000:]
    loss_before, loss_after = map(float, found.stdout.split()[-2:])
    assert loss_after < 0.5 * loss_before
    # The control: the same limit does not hold the data.
    assert child("whole", tmp_path / "data.npy").returncode != 0
