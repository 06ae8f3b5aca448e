"""Scalars of NumPy in the place of Python's numbers: the same runs, the same programs, and files that JSON can hold."""

import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.engine import program_cache

INPUTS = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
SETTINGS: dict[str, Any] = {"num_steps": 40, "num_chains": 2, "init": np.ones(2, np.float32)}


def energy(x):
    return 0.5 * jnp.sum(x**2)


def log_likelihood(weights, example):
    return -0.5 * (example[1] - example[0] @ weights) ** 2


def batches(**options):
    return iso.from_likelihood(log_likelihood, None, (INPUTS, INPUTS.sum(axis=1)), **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_steps", 60),
        ("thinning", 4),
        ("burn_in", 5),
        ("num_chains", 3),
        ("num_runs", 2),
        ("seed", 7),
        ("block_length", 11),
        ("track_best", True),
        ("target_energy", 0.5),
    ],
)
def test_settings(tmp_path, name, value):
    scalar = (
        np.bool_(value) if isinstance(value, bool) else np.int64(value) if isinstance(value, int) else np.float64(value)
    )
    usual = iso.sample(energy, iso.sgld(0.1), **{**SETTINGS, name: value})
    number = program_cache.num_programs()
    np.testing.assert_array_equal(iso.sample(energy, iso.sgld(0.1), **{**SETTINGS, name: scalar}).draws, usual.draws)
    assert program_cache.num_programs() == number
    run = iso.sample(energy, iso.sgld(0.1), **{**SETTINGS, name: scalar}, out=tmp_path / "run")
    np.testing.assert_array_equal(iso.load(tmp_path / "run").draws[:], usual.draws)
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["config"]["settings"]
    assert stored == usual.config["settings"]
    run.save(tmp_path / "saved")
    assert iso.load(tmp_path / "saved").num_draws == usual.num_draws


def pairs(number, flag, real):
    """Samplers and potentials with counts, switches and reals of some types."""
    temperatures: dict[str, Any] = {"temperatures": (real(1.0), real(2.0))}
    return {
        "sghmc": (iso.sghmc(real(0.01), resample_every=number(10)), energy),
        "psgld": (iso.psgld(real(0.01), curvature_correction=flag(True)), energy),
        "cycsgld": (iso.cycsgld(real(0.01), cycle_length=number(10), sampling_from=real(0.5)), energy),
        "resgld": (iso.resgld(real(0.01), measure_every=number(5), num_measured=number(3), **temperatures), energy),
        "deo": (iso.deo_star_sgd((0.01, 0.1), num_replicas=number(3), window=number(2)), energy),
        "icsgld": (iso.icsgld(real(0.01), partition=(real(0.1), real(9.0), number(40)), warm_up=number(3)), energy),
        "batches": (
            iso.sgld(real(1e-3)),
            batches(batch_size=number(10), num_used=number(40), is_batch_shared=flag(True)),
        ),
        "variates": (iso.vr_resgld(1e-4, refresh_every=number(10), **temperatures), batches(batch_size=number(10))),
    }


@pytest.mark.parametrize("name", list(pairs(int, bool, float)))
def test_samplers_and_potentials(tmp_path, name):
    runs = []
    for place, types in enumerate([(int, bool, float), (np.int64, np.bool_, np.float64)]):
        sampler, potential = pairs(*types)[name]
        settings = {key: value for key, value in SETTINGS.items() if key != "num_chains"}
        runs.append(iso.sample(potential, sampler, out=tmp_path / str(place), **settings))
    np.testing.assert_array_equal(runs[0].draws[:], runs[1].draws[:])
    # What was started with one kind goes on with the other.
    more: Any = np.int64(60)
    assert iso.resume(tmp_path / "1", *reversed(pairs(int, bool, float)[name]), num_steps=more).num_steps == 60


def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(
        ValueError, match=r"`source` must be made of numbers, words, lists and dicts; got Object of type function"
    ):
        iso.sample(energy, iso.sgld(0.1), **SETTINGS, source={"made by": energy}, out=tmp_path / "run")
    assert not (tmp_path / "run" / "start").exists()
    run = iso.sample(energy, iso.sgld(0.1), **SETTINGS)
    run.config["note"] = {1, 2}
    with pytest.raises(ValueError, match=r"`run.config` must be made of numbers, .*; got Object of type set"):
        run.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
