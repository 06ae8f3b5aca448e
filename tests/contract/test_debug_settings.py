"""Samplers under the settings of JAX with which people look for errors in their own code."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import isotherm as iso
from isotherm.engine import program_cache

WELLS: dict[str, Any] = {"partition": (0.1, 5.0, 20)}
PAIR: dict[str, Any] = {"temperatures": (1.0, 2.0)}
SAMPLERS = {
    "sgld": iso.sgld(0.01),
    "sghmc": iso.sghmc(0.01),
    "psgld": iso.psgld(0.01),
    "resgld": iso.resgld(0.01, **PAIR),
    "vr_resgld": iso.vr_resgld(1e-4, refresh_every=20, is_adaptive=True, **PAIR),
    "icsgld": iso.icsgld(0.01, **WELLS),
    "awsgld": iso.awsgld(0.01, **WELLS),
    "svgd": iso.svgd(0.01),
    "deo_star_msgd": iso.deo_star_msgd((0.001, 0.01), num_replicas=3),
}
SETTINGS = {
    "debug_nans": lambda: jax.debug_nans(True),
    "debug_infs": lambda: jax.debug_infs(True),
    "strict types": lambda: jax.numpy_dtype_promotion("strict"),
    "strict ranks": lambda: jax.numpy_rank_promotion("raise"),
    "transfer_guard": lambda: jax.transfer_guard("disallow"),
}
STARTS = np.random.default_rng(1).normal(size=(3, 2)).astype(np.float32)
INPUTS = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)


def energy(x):
    return 0.5 * jnp.sum(x * x)


def log_likelihood(weights, example):
    inputs, target = example
    return -0.5 * (target - inputs @ weights) ** 2


def run_of(name, num_steps):
    sampler = SAMPLERS[name]
    potential, number = iso.from_energy(energy), sampler.coupling.traits.num_chains
    if name == "vr_resgld":
        data = (INPUTS, INPUTS.sum(axis=1))
        potential = iso.from_likelihood(log_likelihood, lambda w: -0.5 * jnp.sum(w * w), data, batch_size=15)
    init = iso.per_chain(STARTS) if number is None else STARTS[0]
    return iso.sample(potential, sampler, num_steps=num_steps, init=init, seed=3)


@pytest.fixture(scope="module")
def usual():
    """Runs under no such setting."""
    return {name: run_of(name, 60) for name in SAMPLERS}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", SAMPLERS)
def test_settings_for_debugging_leave_draws_as_they_are(name, setting, usual):
    program_cache.forget()  # A program that is there already would not be traced under the setting.
    with SETTINGS[setting]():
        run = run_of(name, 60)
        text = str(run.summary())
    assert "coordinate" in text
    np.testing.assert_array_equal(run.draws, usual[name].draws)
    np.testing.assert_array_equal(run.log_weights, usual[name].log_weights)


@pytest.mark.parametrize("name", SAMPLERS)
def test_without_compilation_a_run_is_the_same_up_to_rounding(name):
    program_cache.forget()
    compiled = run_of(name, 3)
    with jax.disable_jit():
        run = run_of(name, 3)
    np.testing.assert_allclose(run.draws, compiled.draws, rtol=1e-4, atol=1e-5)


def test_without_compilation_energies_see_numbers():
    seen = []

    def noting(x):
        seen.append(repr(x))
        return energy(x)

    with jax.disable_jit():
        iso.sample(noting, iso.sgld(0.01), num_steps=2, init=np.array([0.125, 0.75], np.float32))
    assert any("0.125" in text and "0.75" in text for text in seen)


def test_a_chain_that_diverges_under_debug_nans_is_named():
    def falls_off(x):
        return jnp.where(jnp.sum(x * x) > 25.0, jnp.nan, -3.0 * jnp.sum(x * x))

    def run():
        return iso.sample(falls_off, iso.sgld(0.01), num_steps=400, init=STARTS[0])

    with pytest.warns(iso.DivergenceWarning, match=r"1 of 1 chains diverged") as warned:
        run()
    assert warned[0].filename == __file__
    with (
        jax.debug_nans(True),
        pytest.raises(iso.DivergenceError, match=r"1 of 1 chains diverged .* chain 0 at iteration"),
    ):
        run()


@pytest.mark.parametrize("setting", ["strict types", "strict ranks", "transfer_guard"])
@pytest.mark.parametrize("case", ["pilot", "many bins", "pairs in turn", "schedule", "streamed"])
def test_further_parts_under_settings_for_debugging(case, setting):
    data = (INPUTS, INPUTS.sum(axis=1))
    streamed = iso.from_likelihood(log_likelihood, None, data, batch_size=15, is_streamed=True)
    schedule = optax.linear_schedule(0.01, 0.001, 100)
    sampler, potential = {
        "pilot": lambda: (iso.icsgld(0.01), energy),
        "many bins": lambda: (iso.picsgld(0.01, partition=(0.1, 5.0, 400)), energy),
        "pairs in turn": lambda: (
            iso.resgld(0.01, temperatures=(1.0, 2.0, 4.0), scheme=iso.exchange.AllPairs()),
            energy,
        ),
        "schedule": lambda: (iso.sgld(schedule, box=(-3.0, 3.0)), energy),
        "streamed": lambda: (iso.vr_resgld(1e-4, refresh_every=5, **PAIR), streamed),
    }[case]()
    program_cache.forget()
    number = None if isinstance(sampler, iso.Specification) else sampler.coupling.traits.num_chains
    init = iso.per_chain(STARTS) if number is None else STARTS[0]
    with SETTINGS[setting](), warnings.catch_warnings():
        warnings.simplefilter("ignore", iso.DivergenceWarning)
        run = iso.sample(potential, sampler, num_steps=40, init=init)
    assert np.isfinite(run.draws).all()
