"""Estimates in the energy against closed forms, and standard errors against what repeats show."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour import Partition
from isotherm.sampling.energies import log_z_ratio_of_bins

DIMENSION = 3


def energy(x):
    return 0.5 * jnp.sum(x**2)


@pytest.fixture(scope="module")
def run():
    """A standard normal in three dimensions, by a contour sampler with exact energies."""
    sampler = iso.csgld(0.02, partition=Partition(0.5, 0.5, 30))
    settings: dict[str, Any] = {"num_steps": 400_000, "num_runs": 8, "thinning": 20, "burn_in": 20_000}
    return iso.sample(energy, sampler, init=jnp.zeros(DIMENSION), **settings)


def test_normalising_constants(run):
    for to in (0.7, 1.5):
        exact = 0.5 * DIMENSION * np.log(to)
        assert abs(run.log_z_ratio(to) - exact) < 0.04
        assert abs(run.log_z_ratio(1.0, temperature=1.0)) < 1e-9
        theta = np.mean(run.stats["theta"], axis=(0, 1))
        assert abs(log_z_ratio_of_bins(theta, Partition(0.5, 0.5, 30).edges, 1.0, to) - exact) < 0.06


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


def test_energy_histogram_honours_weights(run):
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
    each = [one.expectation(lambda x: x[0]) for one in run.per_run()]
    assert found.mean["first"] == pytest.approx(run.expectation(lambda x: x[0]), abs=1e-6)
    repeats = np.std(each, ddof=1) / np.sqrt(len(each))
    assert 0.5 < found.std_error["first"] / repeats < 2.0
    assert np.all(found.effective_draws["square"] > 100)
    single = run.per_run()[0].estimate(lambda x: x[0])
    assert 0.5 < single.std_error / np.std(each, ddof=1) < 2.0
