"""Contour samplers under normal noise on the energies: weights, other temperatures, and normalizing constants."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

import isotherm as iso
from isotherm.contour.energy_noise import WeightFunction, local_noise
from tests.statistics import FAIL, PASS


def energy(x):
    return 0.5 * jnp.sum(x**2)


def run_of(noise, dimensions=8, num_steps=240_000):
    problem = iso.potentials.with_noise(iso.from_energy(energy), energy_scale=noise)
    settings: dict[str, Any] = {"num_steps": num_steps, "num_chains": 8, "thinning": 20, "burn_in": num_steps // 5}
    start = lambda key: 2.0 * jax.random.normal(key, (dimensions,))  # noqa: E731
    return iso.sample(problem, iso.icsgld(0.02), init=start, **settings)


@pytest.fixture(scope="module")
def noisy():
    return run_of(1.0)


def off(found, truth):
    error = np.hypot(found.std_error, np.nan_to_num(found.bias_error))
    return (found.mean - np.nan_to_num(found.bias) - truth) / error


def test_means_masses_and_constants_are_right_under_noise(noisy):
    square = lambda x: jnp.sum(x**2) / 8.0  # noqa: E731
    assert abs(off(noisy.estimate(square), 1.0)) < PASS
    assert abs(off(noisy.reweighted(1.5).estimate(square), 1.5)) < PASS
    assert abs(off(noisy.log_z_ratio(1.5), 4.0 * np.log(1.5))) < PASS


def test_without_the_correction_they_are_wrong(noisy, monkeypatch):
    monkeypatch.setattr(WeightFunction, "correction", lambda self, energies, *_: (np.zeros_like(energies), 0.0))
    raw = run_of(1.0)
    square = lambda x: jnp.sum(x**2) / 8.0  # noqa: E731
    assert off(raw.estimate(square)._replace(bias=0.0), 1.0) < -FAIL
    assert off(raw.reweighted(1.5).estimate(square)._replace(bias=0.0), 1.5) < -FAIL


def test_the_bias_of_another_temperature_is_that_of_the_draws():
    """Langevin steps of .05 make the variance of a unit well 1 / .975; at temperature 1.5 draws have 1 / (.975 - 1 / 3)."""
    start = lambda key: 2.0 * jax.random.normal(key, (2,))  # noqa: E731
    run = iso.sample(energy, iso.sgld(0.05), num_steps=60_000, num_chains=32, thinning=20, burn_in=1_000, init=start)
    there = run.reweighted(1.5).estimate(lambda x: jnp.sum(x**2) / 2.0)
    widened = 1.0 / (0.975 - 1.0 / 3.0)
    assert abs(there.mean - widened) < PASS * there.std_error
    # That of temperature 1 is less than half of it.
    assert there.bias == pytest.approx(widened - 1.5, rel=0.15)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_normalizing_constants_have_a_bias(temperature):
    """On x^4 / 4 the steps move Z(to) / Z(T), whose logarithm is log(to / T) / 4."""
    start = lambda key: temperature**0.25 * jax.random.normal(key, (1,))  # noqa: E731
    quartic = lambda x: 0.25 * jnp.sum(x**4)  # noqa: E731
    settings: dict[str, Any] = {"num_steps": 400_000, "num_chains": 8, "thinning": 10, "burn_in": 20_000, "init": start}
    # Positions in units of T^(1/4) make energies in units of T, and steps in units of T^(-1/2).
    run = iso.sample(quartic, iso.icsgld(0.05 / temperature**0.5, temperature=temperature), **settings)
    found = run.log_z_ratio(0.75 * temperature)
    assert np.isfinite(found.bias)
    assert abs(off(found, 0.25 * np.log(0.75))) < PASS
    # About four of the errors of both.
    assert abs(found.bias) > 3.0 * np.hypot(found.std_error, found.bias_error)


@pytest.mark.parametrize("noise", [2.0, 6.0])
def test_what_is_left_of_large_noise_is_said(noise):
    run = run_of(noise, dimensions=1, num_steps=50_000)
    wanted = "Energy noise makes weights wrong by a factor"
    for notes in (run.summary().notes, run.estimate(lambda x: x).notes, run.log_z_ratio(1.5).notes):
        assert any(note.startswith(wanted) for note in notes)


def test_the_correction_is_exact_where_weights_are_exponential():
    """Under a constant slope a, E exp(a (u + e)) is exp(a u + a^2 s^2 / 2)."""
    function = WeightFunction(-50.0, 1.0, np.full(101, 0.3))
    found, left = function.correction(np.linspace(-5.0, 5.0, 11), 1.5, tilt=0.2)
    np.testing.assert_allclose(found, 0.5 * 0.5**2 * 1.5**2, atol=1e-6)
    assert left < 1e-6


def test_the_correction_gives_the_mean_that_chains_follow():
    """E exp(W(u + e) - D(u + e)) against exp(E W(u + e)), by an integral over normal noise."""
    slopes = np.concatenate([[0.0], np.linspace(0.8, -0.8, 40), [0.0]])
    function = WeightFunction(0.0, 0.5, slopes)
    noise = 0.7
    for u in (3.0, 8.0, 14.0):
        grid = np.linspace(u - 8.0 * noise, u + 8.0 * noise, 20_001)
        density = scipy.stats.norm.pdf(grid, u, noise)
        taken, left = function.correction(grid, noise)
        mean = scipy.integrate.trapezoid(density * np.exp(function.at(grid) - taken), grid)
        wanted = np.exp(scipy.integrate.trapezoid(density * function.at(grid), grid))
        assert mean == pytest.approx(wanted, rel=5e-3)
        assert left < 0.01


def test_noise_is_found_where_it_is():
    rng = np.random.default_rng(0)
    true = rng.uniform(0.0, 10.0, (4, 5_000))
    pair = true + rng.standard_normal((2, 4, 5_000)) * (0.1 + 0.1 * true)
    found = local_noise(*pair)
    for low in (1.0, 5.0, 8.0):
        near = (true > low) & (true < low + 1.0)
        assert np.mean(found[near]) == pytest.approx(0.15 + 0.1 * low, rel=0.1)


def test_saved_weights_are_corrected_once(noisy, tmp_path):
    noisy.save(tmp_path / "run")
    np.testing.assert_array_equal(iso.load(tmp_path / "run").log_weights[:], noisy.log_weights)


def test_a_run_in_a_folder_is_corrected_once(tmp_path):
    problem = iso.potentials.with_noise(iso.from_energy(energy), energy_scale=0.5)
    settings: dict[str, Any] = {"num_steps": 20_000, "num_chains": 4, "thinning": 20, "init": jnp.ones(2)}
    kept = iso.sample(problem, iso.icsgld(0.02), **settings)
    stored = iso.sample(problem, iso.icsgld(0.02), out=tmp_path / "run", **settings)
    np.testing.assert_array_equal(stored.log_weights, kept.log_weights)
    np.testing.assert_array_equal(iso.load(tmp_path / "run").log_weights, kept.log_weights)
    longer = {**settings, "num_steps": 30_000}
    whole = iso.sample(problem, iso.icsgld(0.02), **longer)
    np.testing.assert_array_equal(
        iso.resume(tmp_path / "run", problem, iso.icsgld(0.02), num_steps=30_000).log_weights, whole.log_weights
    )
