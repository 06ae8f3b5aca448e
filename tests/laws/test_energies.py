"""Estimates in the energy against closed forms, and standard errors against what repeats show."""

import dataclasses
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour import Partition
from isotherm.run.energies import OverlapWarning

DIMENSION = 3


def energy(x):
    return 0.5 * jnp.sum(x**2)


@pytest.fixture(scope="module")
def run():
    """A standard normal in three dimensions, by a contour sampler with exact energies."""
    sampler = iso.csgld(0.02, partition=Partition(0.5, 0.5, 30))
    settings: dict[str, Any] = {"num_steps": 400_000, "num_runs": 8, "thinning": 20, "burn_in": 20_000}
    return iso.sample(energy, sampler, init=jnp.zeros(DIMENSION), **settings)


def test_normalizing_constants(run):
    for to in (0.7, 1.5):
        exact = 0.5 * DIMENSION * np.log(to)
        found = run.log_z_ratio(to)
        assert 0 < found.std_error < 0.01
        assert abs(found.mean - exact) < 4 * found.std_error + 0.02
        each = [one.log_z_ratio(to).mean for one in run.split_runs()]
        assert 0.4 < found.std_error / (np.std(each, ddof=1) / np.sqrt(len(each))) < 2.5
    assert abs(run.log_z_ratio(1.0).mean) < 1e-6


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_run_knows_its_temperature(temperature):
    """The energy is quadratic: log Z(to) - log Z(T) = d / 2 log(to / T), E x^2 = to, and the density of states is the same."""
    sampler = iso.csgld(0.02, temperature=temperature, partition=Partition(0.5 * temperature, 0.5 * temperature, 30))
    settings: dict[str, Any] = {"num_steps": 200_000, "num_runs": 8, "thinning": 20, "burn_in": 20_000}
    run = iso.sample(energy, sampler, init=jnp.zeros(DIMENSION), **settings)
    assert run.temperature == temperature
    to = 1.2 * temperature
    assert abs(run.log_z_ratio(to).mean - 0.5 * DIMENSION * np.log(1.2)) < 0.02
    warmer = run.reweighted(to)
    assert warmer.temperature == pytest.approx(to)
    assert abs(warmer.expectation(lambda x: jnp.mean(x**2)) / to - 1) < 0.05
    edges, logs = run.log_density_of_states(num_cells=40)
    middle = 0.5 * (edges[1:] + edges[:-1])
    used = (middle > 0.5 * temperature) & (middle < 5 * temperature)
    assert np.std(logs[used] - 0.5 * np.log(middle[used])) < 0.15


def test_a_temperature_that_changes_between_draws_is_refused():
    annealed = iso.sgld(0.05, temperature=iso.schedules.Annealed(2.0, 1.001, stop_at=500))
    settings: dict[str, Any] = {"num_steps": 2_000, "init": jnp.zeros(DIMENSION)}
    with pytest.raises(ValueError, match="`temperature` must be one and the same for all draws"):
        iso.sample(energy, annealed, **settings).reweighted(2.0)
    later = iso.sample(energy, annealed, burn_in=600, **settings)
    assert later.temperature == pytest.approx(2.0 / 1.001**500, rel=1e-5)
    cyclical = iso.cycsgld(0.1, cycle_length=100, temperature=0.7, sampling_from=0.5, hold_from=0.5)
    assert iso.sample(energy, cyclical, **settings).temperature == pytest.approx(0.7)
    with pytest.raises(ValueError, match="`temperature` must be a finite real number above 0"):
        iso.sample(energy, iso.sgd(0.1), **settings).reweighted(2.0)


def test_ratios_of_what_was_not_flattened_are_refused_and_small_overlaps_told(run):
    plain = iso.sample(energy, iso.sgld(0.05), num_steps=500, init=jnp.zeros(DIMENSION))
    with pytest.raises(ValueError, match="`run` must be one that flattened the energy; got sgld"):
        plain.log_z_ratio(1.5)
    with pytest.warns(OverlapWarning, match=r"Few draws represent the temperature 0\.005"):
        far = run.log_z_ratio(0.005)
    assert any("Few draws" in note for note in far.notes)


@pytest.mark.parametrize("highest", [250.0, 500.0, 5_000.0])
def test_ratios_over_a_wide_range_of_energies(highest, run):
    """Flattened draws of a quadratic energy in 50 dimensions: log Z(2) - log Z(1) = 25 log 2, whatever the range."""
    energies = np.random.default_rng(0).uniform(0.0, highest, (1, 8, 4_000))
    log_weights = 24 * np.log(energies) - energies
    wide = dataclasses.replace(run, energies=energies, log_weights=log_weights, bias_probe=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        found = wide.log_z_ratio(2.0)
    if highest < 5_000:
        assert abs(found.mean - 25 * np.log(2)) < 4 * found.std_error + 0.01
        assert found.std_error < 0.1
    else:
        assert np.isfinite(found.mean)


def test_a_diverged_chain_counts_for_nothing_at_another_temperature(run):
    energies, log_weights = np.array(run.energies), np.array(run.log_weights)
    energies[0], log_weights[0] = np.nan, -np.inf
    broken = dataclasses.replace(run, energies=energies, log_weights=log_weights)
    assert abs(broken.reweighted(1.5).expectation(lambda x: jnp.mean(x**2)) / 1.5 - 1) < 0.06
    assert np.isfinite(broken.log_z_ratio(1.5).mean)


def test_known_noise_is_taken_off_a_ratio():
    """Noise of standard deviation s adds (1 / T - 1 / to)^2 s^2 / 2."""
    noisy = iso.with_noise(iso.from_energy(energy), energy_scale=1.5)
    sampler = iso.csgld(0.02, partition=Partition(1.0, 4.0, 6), zeta=0.3)
    settings: dict[str, Any] = {"num_steps": 100_000, "num_runs": 16, "thinning": 20, "burn_in": 10_000}
    run = iso.sample(noisy, sampler, init=jnp.zeros(DIMENSION), **settings)
    to = 1.6
    slope = 1 - 1 / to
    exact = 0.5 * DIMENSION * np.log(to)
    shift = 0.5 * (1.5 * slope) ** 2
    found = run.log_z_ratio(to).mean
    assert abs(found - exact) < abs(found + shift - exact)
    unknown = dataclasses.replace(run, stats={**run.stats, "energy_noise": np.full(16, np.nan)}).log_z_ratio(to)
    # Weights were corrected when the noise was known; only the tilt is not.
    assert unknown.mean - found > 0.5 * shift
    assert any("Noise s of the energies is not corrected" in note for note in unknown.notes)


def test_reweighting_to_another_temperature(run):
    for to in (0.7, 1.5):
        square = run.reweighted(to).expectation(lambda x: jnp.mean(x**2))
        assert abs(square / to - 1) < 0.05
    assert abs(run.expectation(lambda x: jnp.mean(x**2)) - 1) < 0.04


def test_density_of_states(run):
    """The volume per energy of a quadratic energy grows like u^(d / 2 - 1)."""
    edges, logs = run.log_density_of_states(num_cells=40)
    middle = 0.5 * (edges[1:] + edges[:-1])
    used = (middle > 0.5) & (middle < 6)
    expected = (0.5 * DIMENSION - 1) * np.log(middle[used])
    difference = logs[used] - expected
    assert np.std(difference) < 0.12
    wrong = logs[used] - 1.2 * middle[used] + middle[used] - expected
    assert np.std(wrong) > 0.2  # A temperature that is 20 % off would be seen.


def test_energy_histogram_honors_weights(run):
    edges, values = run.energy_histogram(30)
    assert values.sum() == pytest.approx(1.0)
    flat = np.histogram(run.energies, edges)[0] / run.energies.size
    below = edges[1:] <= 2.0
    # P(U <= 2) for a gamma law of shape 3/2.
    exact = 0.73854
    assert abs(np.interp(2.0, edges[1:], np.cumsum(values)) - exact) < 0.02
    assert flat[below].sum() < exact - 0.1


def test_standard_errors_are_those_of_repeats(run):
    found = run.estimate(lambda x: {"first": x[0], "square": x**2})
    assert found.mean["square"].shape == (DIMENSION,)
    first = lambda x: x[0]  # noqa: E731
    each = [one.expectation(first) for one in run.split_runs()]
    assert found.mean["first"] == pytest.approx(run.expectation(first), abs=1e-6)
    repeats = np.std(each, ddof=1) / np.sqrt(len(each))
    assert 0.5 < found.std_error["first"] / repeats < 2.0
    assert np.all(found.effective_draws["square"] > 100)
    single = run.split_runs()[0].estimate(lambda x: x[0])
    assert 0.5 < single.std_error / np.std(each, ddof=1) < 2.0
