"""What runs and pilots measure and correct for: biases at another temperature, noise under a tilt, tours, round trips, units."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour import Partition
from isotherm.contour.energy_noise import WeightFunction
from isotherm.driver.layout import without_diverged
from isotherm.exchange.diagnosis import _share_of_replicas
from tests.laws.exact import PRECISION, tilts
from tests.statistics import PASS, z_score
from tests.targets import langevin_variance


def normal(x):
    return 0.5 * jnp.sum(x**2)


def test_the_bias_at_another_temperature_is_that_of_its_weights():
    """At a step eps draws follow exp(-(1 - eps / 2) U / T); weights of another temperature `to` leave 1 / (1 / to - eps / 2)."""
    step, to = 0.12, 1.6
    settings: dict[str, Any] = {"num_steps": 40_000, "num_chains": 16, "thinning": 20, "burn_in": 500}
    runs = [iso.sample(normal, iso.sgld(step), init=jnp.zeros(2), seed=seed, **settings) for seed in range(6)]
    exact = 1.0 / (1.0 / to - 0.5 * step) - to
    found = [run.reweighted(to).estimate(lambda x: jnp.mean(x**2)) for run in runs]
    means, biases, errors = (np.array([getattr(one, name) for one in found]) for name in ("mean", "bias", "bias_error"))
    mean, bias, of_bias = means.mean(), biases.mean(), np.sqrt(np.sum(errors**2)) / len(runs)
    of_mean = means.std(ddof=1) / np.sqrt(len(runs))
    error = PASS * of_bias
    assert error < 0.25 * exact
    assert abs(bias - exact) < error + 0.1 * exact
    assert abs(mean - bias - to) < PASS * np.hypot(of_mean, of_bias) + 0.1 * exact
    # The bias of the run's own temperature would be seen.
    assert abs(1.0 / (1.0 - 0.5 * step) - 1.0 - exact) > error + 0.1 * exact


@pytest.mark.parametrize("tilt", [0.0, 0.6, -0.6])
def test_corrected_weights_have_the_mean_of_weights_without_noise(tilt):
    """E exp(W(u + e) + a (u + e) - D(u + e)) = exp(E W(u + e) + a u) for normal noise e."""
    noise, function = 0.7, WeightFunction(0.0, 1.0, np.array([0.0, -0.6, 0.2, -0.5, -0.1, 0.0]))
    rng = np.random.default_rng(0)
    seen = rng.uniform(-1.0, 5.0, 400)
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    weights = weights / weights.sum()
    excess = []
    for energy in (0.5, 1.7, 3.1):
        # Energies that the run has met, so that the table of the correction reaches as far.
        around = energy + noise * nodes
        taken, left = function.correction(np.concatenate([around, seen]), noise, tilt)
        exponents = function.at(around) + tilt * around - taken[: len(around)]
        wanted = weights @ function.at(around) + tilt * energy
        assert np.log(weights @ np.exp(exponents)) == pytest.approx(wanted, abs=0.005 + left)
        excess.append(np.log(weights @ np.exp(function.at(around) + tilt * around)) - wanted)
        assert left < 0.03
    # Without the correction.
    assert np.max(np.abs(excess)) > 0.02


def test_errors_of_weights_do_not_depend_on_the_unit_of_energy():
    """The same run in units of a quarter: positions are the same, and so is what noise leaves wrong with their weights."""
    data = np.random.default_rng(0).normal(size=200).astype(np.float32)

    def bias(unit):
        def log_likelihood(x, y):
            return -0.5 * unit * (0.1 * (y - x[0]) ** 2 + 0.1 * (y - x[1] ** 2) ** 2)

        potential = iso.from_likelihood(log_likelihood, None, data, batch_size=20)
        low, width = 18.0 * unit, 0.8 * unit
        options: dict[str, Any] = {"partition": Partition(low, width, 20), "temperature": unit}
        settings: dict[str, Any] = {"num_steps": 4_000, "num_chains": 8, "burn_in": 1_000, "thinning": 5}
        run = iso.sample(potential, iso.icsgld(0.01 / unit, **options), init=jnp.full(2, 0.5), **settings)
        assert run.bias is not None
        return run, run.bias.weight_errors

    (one, errors), (other, others) = bias(1.0), bias(4.0)
    np.testing.assert_allclose(one.draws, other.draws, rtol=1e-3, atol=1e-3)
    assert np.abs(errors).max() > 0.01
    np.testing.assert_allclose(others, errors, rtol=0.02, atol=1e-3)


def test_the_noise_of_a_difference_is_that_which_replicas_do_not_share():
    """Tilts of the examples: the noise of U_1 - U_2 is that of x_1 - x_2, however far from zero both are."""
    center, batch_size, found, steps, temperatures = 3.0, 10, tilts(), (0.05, 0.1), (2.0, 4.0)

    def log_likelihood(x, tilt):
        return -0.5 * PRECISION * (x[0] - center) ** 2 / len(found) - tilt * x[0]

    options: dict[str, Any] = {"batch_size": batch_size, "batching": "independent"}
    potential = iso.from_likelihood(log_likelihood, None, found, **options)
    sampler = iso.resgld(steps, temperatures=temperatures, energy_batch="fresh")
    run = iso.sample(potential, sampler, num_steps=6_000, num_ladders=32, init=jnp.full(1, center))
    noise = len(found) ** 2 * (1.0 / batch_size - 1.0 / len(found)) * float(np.var(found, ddof=1))
    apart = sum(langevin_variance(step, PRECISION, t, noise) for step, t in zip(steps, temperatures, strict=True))
    assert np.mean(run.stats["variance_of_difference"]) == pytest.approx(noise * apart, rel=0.06)


@pytest.mark.parametrize("num_ladders", [None, 1])
def test_draws_of_a_replica_that_diverged_count_for_nothing_from_then_on(num_ladders):
    drawn_at = np.arange(0, 60, 10)
    if num_ladders is None:
        kept = {"log_weights": np.zeros((2, 6))}
        found = without_diverged(kept, drawn_at, np.array([30, -1]), None)
        expected = [[True, True, True, False, False, False], [True] * 6]
    else:
        # The replica on the target: 0, 1, 1, 0, 1, 1. The second one diverged at iteration 20.
        rung = np.array([[[0, 1], [1, 0], [1, 0], [0, 1], [1, 0], [1, 0]]])
        kept = {"log_weights": np.zeros((1, 6)), "observed": {"rung": rung}}
        found = without_diverged(kept, drawn_at, np.array([[-1, 20]]), num_ladders)
        expected = [[True, True, False, True, False, False]]
    np.testing.assert_array_equal(np.isfinite(found), expected)


def tours(values_of, num_tours: int, seed: int = 0, length: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Rungs of two replicas that take turns on the target, and a number that is watched there."""
    rng, rung, values = np.random.default_rng(seed), [], []
    for number in range(num_tours):
        replica = number % 2
        rung += [[0, 1] if replica == 0 else [1, 0]] * length
        values += list(values_of(rng, replica) + 0.01 * rng.standard_normal(length))
    return np.array(rung), np.array(values)[:, None]


def test_replicas_that_bring_their_own_values_are_told_from_tours_that_do():
    assert _share_of_replicas(*tours(lambda rng, replica: replica + 0.3 * rng.standard_normal(), 60)) > 0.5
    # Draws of a tour are alike, whichever replica made it: of few tours chance alone explains much.
    shares = [_share_of_replicas(*tours(lambda rng, replica: rng.standard_normal(), 6, seed)) for seed in range(40)]
    assert max(shares) == 0.0


def test_advice_on_two_rungs_is_what_a_run_then_does():
    """Rates at the temperatures that factors make of the ladder, and iterations of a round trip."""
    sampler = iso.resgld(0.02, temperatures=(1.0, 4.0), temperature_factor=3.0, step_factor=2.0)
    start = jnp.zeros(6)
    stiff = lambda x: 3.0 * normal(x)  # noqa: E731
    advice = iso.advise(stiff, sampler, num_steps=40_000, init=start, factors=(1.0,), search=False)
    run = iso.sample(stiff, sampler, num_steps=40_000, num_ladders=16, init=start)
    rates = np.asarray(run.stats["swap_rate"])[:, 0]
    assert float(advice.rates[0, 0]) == pytest.approx(rates.mean(), rel=0.05)
    trips = run.num_steps / np.asarray(run.stats["round_trips"]).mean(axis=-1)
    assert advice.round_trips[0] == pytest.approx(trips.mean(), rel=0.08)


def test_a_search_starts_from_the_temperature_of_the_target():
    sampler = iso.resgld(0.02, temperatures=(1.0, 4.0), temperature_factor=3.0, ladder=iso.exchange.LadderSearch(500))
    advice = iso.advise(normal, sampler, num_steps=1_000, init=jnp.zeros(2), factors=(1.0,))
    assert advice.found is not None
    assert advice.found.ladder.temperatures[0] == pytest.approx(3.0)
    assert advice.found.ladder.step_sizes[0] == pytest.approx(0.02)
    run = iso.sample(normal, sampler, num_steps=4_000, num_ladders=64, burn_in=400, init=jnp.zeros(2))
    assert abs(z_score(np.mean(np.asarray(run.draws, np.float64) ** 2, axis=(1, 2)), 3.0 / 0.99)) < PASS
