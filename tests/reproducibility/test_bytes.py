"""Same seed, same bytes: for any block length, thinning, number of runs and chains."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.engine import program_cache
from isotherm.targets import modes25
from isotherm_thesis.bench.network import init_weights, log_likelihood, log_prior

pytestmark = pytest.mark.as_users

TARGET = modes25()
NOISY = iso.with_noise(TARGET.potential, energy_scale=0.5, gradient_scale=0.3, degrees=5.0)
RNG = np.random.default_rng(0)
DATA = (RNG.standard_normal((300, 64)).astype(np.float32), RNG.integers(10, size=300).astype(np.int32))


def toy(sampler, **options):
    settings: dict[str, Any] = {
        "num_steps": 3_000,
        "num_chains": 3,
        "num_runs": 2,
        "seed": 5,
        "init": TARGET.init,
        **options,
    }
    return iso.sample(NOISY, sampler, **settings)


def network(**options):
    potential = iso.from_likelihood(log_likelihood, log_prior, DATA, batch_size=32)
    settings: dict[str, Any] = {"num_steps": 12, "num_chains": 2, "seed": 5, "init": init_weights, **options}
    return iso.sample(potential, iso.sghmc(step_size=1e-5), **settings)


def same(a, b):
    import jax

    parts = ((run.draws, run.energies, run.log_weights) for run in (a, b))
    pairs = zip(*map(jax.tree.leaves, parts), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


SAMPLERS = {
    "sgld": iso.sgld(step_size=3e-3, box=TARGET.box),
    "sghmc": iso.sghmc(step_size=1e-3),
    "psgld": iso.psgld(step_size=3e-3),
    "cycsgld": iso.cycsgld(step_size=1e-2, cycle_length=100, sampling_from=0.5),
    "resgld": iso.resgld(3e-3, temperatures=(1.0, 2.0, 4.0), measure_every=70),
    "csgld": iso.csgld(3e-3, partition=(-3.0, 8.0, 60), gain=0.02, box=TARGET.box),
    "awsgld": iso.awsgld(3e-3, partition=(-3.0, 8.0, 60), max_displacement=0.1, box=TARGET.box),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_block_length_changes_nothing(name):
    runs = [toy(SAMPLERS[name], block_length=length, num_steps=600) for length in (7, 100, 450, None)]
    assert all(same(runs[0], other) for other in runs[1:])
    np.testing.assert_array_equal(runs[0].stats["best_position"], runs[1].stats["best_position"])
    assert not same(runs[0], toy(SAMPLERS[name], seed=6, num_steps=600))


def test_block_length_changes_nothing_for_a_network():
    runs = [network(block_length=length) for length in (1, 5, 12)]
    assert same(runs[0], runs[1])
    assert same(runs[0], runs[2])


@pytest.mark.parametrize("name", ["sgld", "resgld", "csgld"])
def test_block_length_changes_nothing_for_a_single_run(name):
    runs = [toy(SAMPLERS[name], block_length=length, num_runs=1, num_steps=600) for length in (7, 450, None)]
    assert all(same(runs[0], other) for other in runs[1:])


@pytest.mark.parametrize("name", ["sgld", "sghmc", "resgld", "csgld"])
def test_thinning_keeps_common_draws(name):
    every, tenth = toy(SAMPLERS[name]), toy(SAMPLERS[name], thinning=10)
    np.testing.assert_array_equal(every.draws[:, :, ::10], tenth.draws)
    np.testing.assert_array_equal(every.energies[:, :, ::10], tenth.energies)
    np.testing.assert_array_equal(every.log_weights[:, :, ::10], tenth.log_weights)
    later = toy(SAMPLERS[name], thinning=10, burn_in=500)
    np.testing.assert_array_equal(every.draws[:, :, 500::10], later.draws)


def test_more_runs_steps_or_chains_leave_the_first_ones_alone():
    few = toy(SAMPLERS["sgld"])
    np.testing.assert_allclose(few.draws, toy(SAMPLERS["sgld"], num_runs=4).draws[:2], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(few.draws[:, :, :2_000], toy(SAMPLERS["sgld"], num_steps=2_000).draws)
    np.testing.assert_allclose(few.draws[:, :2, :100], toy(SAMPLERS["sgld"], num_chains=2).draws[:, :, :100], atol=1e-4)


@pytest.mark.parametrize("mode", ["map", "unroll"])
def test_modes_of_chains_agree_to_rounding(mode):
    """Six chains are written out in two groups of three."""
    one, other = (toy(SAMPLERS["sgld"], num_steps=200, num_chains=6, chain_mode=each) for each in ("vmap", mode))
    np.testing.assert_allclose(one.draws, other.draws, atol=1e-4)
    one, other = network(), network(chain_mode=mode)
    np.testing.assert_allclose(one.energies, other.energies, rtol=1e-4)
    assert not jnp.allclose(one.energies[:, 0], one.energies[:, 1], rtol=1e-3)


def test_settings_that_differ_only_in_length_or_seed_share_a_program():
    sampler = iso.sgld(step_size=3e-3)
    iso.sample(NOISY, sampler, num_steps=1_000, seed=0, init=TARGET.init)
    before = program_cache.num_programs()
    for seed, steps in ((1, 900), (2, 1024)):
        iso.sample(NOISY, sampler, num_steps=steps, seed=seed, init=TARGET.init)
    assert program_cache.num_programs() == before
