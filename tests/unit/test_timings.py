"""Where the time of a run went: sampling, compiling, pilots, and parts before it was resumed."""

import json
import time

import jax.numpy as jnp
import pytest

import isotherm as iso
from isotherm.diagnostics.summary import time_of
from isotherm.run.storage.saving import TIMINGS


def energy(x):
    return 0.5 * jnp.sum(x**2)


def run_of(sampler, **options):
    return iso.sample(energy, sampler, **{"num_steps": 200, "init": jnp.zeros(2), "num_chains": 2, **options})


def total(run):
    return sum(getattr(run, name) for name in TIMINGS)


@pytest.mark.parametrize("kind", ["none", "partition", "ladder"])
def test_pilots_are_counted_apart_from_compiling(kind):
    samplers = {"none": iso.sgld(0.1), "partition": iso.csgld(0.1), "ladder": iso.resgld(0.1, ladder="auto")}
    options = {"num_chains": None} if kind == "ladder" else {}
    tick = time.perf_counter()
    run = run_of(samplers[kind], measure_bias=False, **options)
    wall = time.perf_counter() - tick
    assert (run.pilot_seconds > 0) == (kind != "none")
    assert (run.seconds > 0, run.compile_seconds > 0, run.earlier_seconds) == (True, True, 0.0)
    # Nothing is counted twice.
    assert total(run) <= wall
    assert ("of pilots" in str(run.summary())) == (kind != "none")
    assert ("of pilots" in repr(run)) == (kind != "none")


def test_a_sweep_counts_its_pilots():
    samplers = {step: iso.csgld(step) for step in (0.05, 0.1)}
    tick = time.perf_counter()
    runs = iso.sweep(energy, samplers, num_steps=200, init=jnp.zeros(2))
    wall = time.perf_counter() - tick
    assert all(0 < run.pilot_seconds < total(run) <= wall for run in runs.values())


def test_parts_before_a_resume_are_counted(tmp_path):
    first = run_of(iso.csgld(0.1), out=tmp_path / "run")
    assert (
        json.loads((tmp_path / "run" / "progress.json").read_text()).items()
        >= {name: getattr(first, name) for name in TIMINGS}.items()
    )
    second = iso.resume(tmp_path / "run", energy, iso.csgld(0.1), num_steps=400)
    third = run_of(iso.csgld(0.1), out=tmp_path / "run", num_steps=600, resume=True)
    assert second.earlier_seconds == pytest.approx(total(first))
    assert third.earlier_seconds == pytest.approx(total(second))
    for found in (third, iso.load(tmp_path / "run")):
        assert time_of(found) == time_of(third)
        assert "before it was resumed" in repr(found)
        assert "before it was resumed" in str(found.summary())


def test_a_run_that_was_killed_tells_its_time(tmp_path):
    whole = run_of(iso.csgld(0.1), out=tmp_path / "run")
    (tmp_path / "run" / "finished.json").unlink()
    found = iso.load(tmp_path / "run")
    assert [getattr(found, name) for name in TIMINGS] == [getattr(whole, name) for name in TIMINGS]
    assert found.compile_seconds > 0
