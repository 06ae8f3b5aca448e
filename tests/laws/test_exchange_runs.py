"""Replica exchange in whole runs, against swap rates, masses and round trips that independent simulations gave."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.estimators import ControlVariate
from isotherm.estimators.estimator import Refreshed
from isotherm.exchange import (
    AllPairs,
    Corrected,
    DeterministicEvenOdd,
    EquiAcceptance,
    Exchange,
    Ladder,
)
from isotherm.foundation.gains import PolynomialGain
from isotherm.kernels import SGLD
from isotherm.targets import modes25
from isotherm_thesis.targets import mixture_posterior, resgld_mixtures


@pytest.mark.parametrize(("factor", "rate", "mass"), [(1.0, 0.113, 0.407), (np.inf, 0.419, 0.489)])
def test_swap_rate_and_mass_of_a_mixture(factor, rate, mass):
    target = resgld_mixtures()[0]
    potential = iso.with_noise(target.potential, energy_scale=2.0, gradient_scale=0.1)
    sampler = iso.naive_resgld(0.03) if factor == np.inf else iso.resgld(0.03, correction_factor=factor)
    run = iso.sample(potential, sampler, num_steps=50_000, num_runs=16, thinning=50, init=target.init)
    assert run.stats["swap_rate"].mean() == pytest.approx(rate, rel=0.1)
    assert (run.draws < 0).mean() == pytest.approx(mass, abs=0.03)


def test_the_summary_says_when_a_ladder_does_not_work():
    stuck = iso.sample(
        lambda x: 50.0 * jnp.sum(x**2),
        iso.resgld(1e-3, temperatures=(1.0, 2.0, 4_000.0)),
        num_steps=300,
        init=jnp.ones(20),
    )
    text = str(stuck.summary())
    assert "Pairs [1] (counted from the target) never swapped" in text
    assert "No replica completed a round trip" in text
    fine = iso.sample(lambda x: jnp.sum(x**2), iso.resgld(0.1), num_steps=2_000, init=jnp.ones(1))
    assert "swapped" not in str(fine.summary())
    assert "round trip" not in str(fine.summary())


def test_fresh_energies_per_pair_are_measured_in_the_driver():
    target = resgld_mixtures()[0]
    potential = iso.with_noise(target.potential, energy_scale=2.0, gradient_scale=0.1)
    ladder = Ladder((0.03,) * 3, (1.0, 3.0, 10.0))
    coupling = Exchange(ladder, AllPairs(), Corrected(1.0), fresh_energies=True)
    sampler = iso.Sampler(SGLD(), 0.03, coupling=coupling)
    run = iso.sample(potential, sampler, num_steps=30_000, num_runs=16, thinning=50, burn_in=1_000, init=target.init)
    # Fresh Gaussian noise of standard deviation 2 in both energies of a pair.
    np.testing.assert_allclose(run.stats["variance_of_difference"].mean(axis=(0, 1)), 8.0, rtol=0.05)
    assert (run.draws < 0).mean() == pytest.approx(0.4, abs=0.04)


def test_windows_double_the_round_trips_and_find_the_modes():
    target = modes25()
    potential = iso.with_noise(target.potential, energy_scale=2.0, gradient_scale=2.0)
    found = {}
    for window in (1, 8):
        sampler = iso.deo_sgd((0.003, 0.6), buffer=4.0, window=window)
        settings: dict[str, Any] = {
            "num_steps": 20_001,
            "num_runs": 4,
            "num_ladders": 1,
            "burn_in": 100,
            "thinning": 10,
        }
        run = iso.sample(potential, sampler, init=target.init, **settings)
        trips = run.stats["round_trips_thesis"].sum(axis=(1, 2)).mean() / 20.001
        variation = np.mean([target.total_variation(one.mode_masses(target.modes)) for one in run.split_runs()])
        acceptance = run.stats["acceptance"].mean(axis=(0, 1))
        assert acceptance.mean() == pytest.approx(0.4, abs=0.03)
        assert np.abs(acceptance - 0.4).max() < 0.02
        assert np.all(np.diff(run.stats["step_size_ratios"], axis=-1) > 0)
        found[window] = trips, variation
    # Without windows the theorem gives 2 P (1 + (P - 1) r / (1 - r)) iterations for equal rejections of r = 0.6.
    assert found[1][0] == pytest.approx(16_000 / (2 * 16 * (1 + 15 * 0.6 / 0.4)), abs=1.0)
    assert found[8][0] == pytest.approx(44.0, abs=4.0)
    assert found[8][1] < 0.10
    assert found[1][1] > 3 * found[8][1]


DATA = np.random.default_rng(0).normal(1.0, 2.0, 500).astype(np.float32)


def curved(position, examples):
    return -jnp.log1p((examples - position) ** 2)


def refresh(estimator, potential, state, position):
    key, (work,) = jnp.zeros(2, jnp.uint32), estimator.periodic()
    full = potential.full_energy(position)
    return work.apply(potential, state, Refreshed(position, (), full, lambda number: potential.batch(key, number)))


@pytest.mark.parametrize("is_adaptive", [False, True])
def test_control_variates_are_unbiased_and_exact_at_their_anchor(is_adaptive):
    potential = iso.from_likelihood(curved, lambda x: -0.5 * x**2, DATA, batch_size=50)
    estimator = ControlVariate(10, is_adaptive)
    here, there = jnp.array(0.7), jnp.array(1.1)
    state = refresh(estimator, potential, estimator.init(potential, here, ()), here)
    key, num_batches, num_data = jnp.array([5, 6], jnp.uint32), 2_000, len(DATA)

    def energies(position):
        def of_batch(number):
            return estimator.measure(potential, state, position, (), potential.batch(key, number), ())[0]

        return np.asarray(jax.jit(jax.vmap(of_batch))(jnp.arange(num_batches)), np.float64)

    np.testing.assert_allclose(energies(here), float(potential.full_energy(here)), rtol=1e-5)
    # Whole epochs of equal batches: the mean of the corrected energies is the full energy.
    assert energies(there).mean() == pytest.approx(float(potential.full_energy(there)), rel=1e-5)
    # Batches of n out of N without replacement, of what examples differ by between the two positions.
    moved = np.asarray(curved(there, DATA) - curved(here, DATA), np.float64)
    exact = num_data**2 / 50 * (1 - 50 / num_data) * moved.var(ddof=1)
    assert energies(there).var() == pytest.approx(exact, rel=4 * math.sqrt(2 / num_batches))
    plain = np.asarray(curved(there, DATA), np.float64)
    assert exact < 0.2 * num_data**2 / 50 * (1 - 50 / num_data) * plain.var(ddof=1)
    # The gradient stays that of the batch.
    batch = potential.batch(key, jnp.asarray(0))
    _, found = estimator.evaluate(potential, state, there, (), (batch,), ((),))
    expected = jax.grad(lambda x: potential.evaluate(x, batch, (), ()).energy)(there)
    assert float(found.gradient) == pytest.approx(float(expected), rel=1e-5)
    assert float(found.energy) == pytest.approx(energies(there)[0], rel=1e-5)


def test_control_variates_swap_on_exact_energies_too():
    potential = iso.from_likelihood(curved, lambda x: -0.5 * x**2, DATA[:20])
    run = iso.sample(potential, iso.vr_resgld(0.01, temperatures=(1.0, 2.0)), num_steps=500, init=jnp.array(0.5))
    assert run.stats["num_swaps"].sum() > 50


def test_an_adaptive_coefficient_is_the_regression():
    # Energies at two distant positions that are proportional batch by batch: the coefficient must be minus the factor.
    potential = iso.from_likelihood(lambda x, e: x * e, None, DATA, batch_size=50)
    estimator = ControlVariate(10, is_adaptive=True, smoothing=1.0)
    state = refresh(estimator, potential, estimator.init(potential, jnp.array(1.0), ()), jnp.array(1.0))
    state = refresh(estimator, potential, state, jnp.array(3.0))
    assert float(state.coefficient) == pytest.approx(-3.0, rel=1e-4)
    assert float(state.position) == 3.0


def test_variance_reduction_lets_replicas_swap_between_basins():
    target = mixture_posterior(num_data=20_000, batch_size=500)
    starts = iso.per_chain(jnp.array([[-5.0], [25.0]]))
    settings: dict[str, Any] = {"num_steps": 4_000, "num_runs": 4, "num_ladders": 1, "thinning": 10, "init": starts}
    temperatures = (10.0, 1_000.0)
    plain = iso.sample(target.potential, iso.resgld(5e-7, temperatures=temperatures, measure_every=40), **settings)
    reduced = iso.sample(target.potential, iso.vr_resgld(5e-7, temperatures=temperatures), **settings)
    full = jax.jit(jax.vmap(target.energy))
    noise = [np.var(run.energies[0] - np.asarray(full(run.draws[0]))) for run in (plain, reduced)]
    assert noise[0] > 300 * noise[1]
    assert reduced.stats["num_swaps"].min() > 5
    assert (reduced.draws < 10).any(axis=(1, 2, 3)).all()
    assert (reduced.draws > 10).any(axis=(1, 2, 3)).all()


def test_temperatures_adapt_until_every_pair_accepts_equally_often():
    # From a ladder whose first gap is far too wide.
    ladder = Ladder((0.02,) * 5, (1.0, 8.0, 10.0, 13.0, 16.0))
    acceptance = {}
    for is_adaptive in (False, True):
        adaptation = EquiAcceptance(PolynomialGain(), of="temperature") if is_adaptive else None
        coupling = Exchange(ladder, DeterministicEvenOdd(1), Corrected(np.inf), adaptation)
        sampler = iso.Sampler(SGLD(), 0.02, coupling=coupling)
        run = iso.sample(
            lambda x: jnp.sum(x**2), sampler, num_steps=40_000, num_runs=8, thinning=20_000, init=jnp.zeros(6)
        )
        late = np.asarray(run.stats["temperature_ratios"])
        acceptance[is_adaptive] = run.stats["acceptance"].mean(axis=(0, 1))
        np.testing.assert_allclose(late[:, 0][:, [0, -1]], [[1.0, 16.0]] * 8, rtol=1e-5)
    assert np.ptp(acceptance[False]) > 0.4
    assert np.ptp(acceptance[True]) < 0.1
    assert np.all(np.diff(np.log(late), axis=-1).std(axis=-1) < 0.15)  # A Gaussian wants a geometric ladder.
