"""`iso.sample(problem)`: known answers without a setting, independence of units, mini-batches, and refusals."""

import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import isotherm as iso
from isotherm.foundation.errors import InputError
from isotherm.pilots.rounds import Rounds, fitted_factor, fitted_steps, fitted_temperatures, interpolated
from isotherm.samplers.sampler import as_potential

# Two wells: masses .3 and .7, spreads .3 and 1 along the first coordinate.
MASSES, CENTERS, WIDTHS = np.array([0.3, 0.7]), np.array([-4.0, 4.0]), np.array([0.3, 1.0])
# The integral of exp(-energy), of the first coordinate alone.
LOG_Z = 0.5 * np.log(2.0 * np.pi)


def along(x):
    return -jax.scipy.special.logsumexp(jnp.log(MASSES / WIDTHS) - 0.5 * ((x - CENTERS) / WIDTHS) ** 2)


def two_wells(x):
    """The wells, and a coordinate on a scale of 1e-3."""
    return along(x[0]) + 0.5 * (1e3 * x[1]) ** 2


def z_scores(found, truth):
    return np.abs(np.asarray(found.mean) - truth) / np.asarray(found.std_error)


@functools.cache
def run_of_wells():
    return iso.sample(two_wells, init=jnp.array([4.0, 0.0]), budget=300_000)


def test_two_wells_of_other_scales_have_their_masses_and_their_evidence():
    run = run_of_wells()
    found = run.estimate(lambda x: jnp.array([x[0] < 0, (1e3 * x[1]) ** 2]))
    assert np.all(z_scores(found, np.array([0.3, 1.0])) < 4.5)
    assert np.all(np.asarray(found.std_error) < (0.06, 0.15))
    evidence = run.log_evidence()
    assert z_scores(evidence, 2.0 * LOG_Z - np.log(1e3)) < 4.5
    assert evidence.std_error < 0.1
    assert not [check for check in run.checks if check.severity == "fault"]


def test_the_control_one_start_without_a_ladder_stays_in_its_well():
    run = iso.sample(two_wells, iso.mala(5e-7), num_steps=5_000, num_chains=4, init=jnp.array([4.0, 0.0]))
    assert float(run.expectation(lambda x: x[0] < 0)) == 0.0


def test_choices_say_what_was_found_and_repeat_it():
    run = run_of_wells()
    (choice,) = run.choices
    found = json.loads(json.dumps(choice["value"], allow_nan=False))
    assert "reference" in choice["reason"].lower()
    assert found["evaluations"] < 0.35 * 300_000
    problem, start = two_wells, jnp.array([4.0, 0.0])
    names = {"iso": iso, "jax": jax, "jnp": jnp, "run": run, "problem": problem, "start": start}
    *before, last = found["code"].splitlines()
    exec("\n".join([*before, f"again = {last}"]), names)
    repeated = names["again"]
    assert z_scores(repeated.estimate(lambda x: x[0] < 0), 0.3) < 4.5
    assert np.allclose(repeated.stats["temperature_ratios"], run.stats["temperature_ratios"])


def test_a_run_ends_at_the_effective_draws_wanted(tmp_path):
    given: dict[str, Any] = {"init": jnp.array([4.0, 0.0]), "budget": 300_000, "num_effective": 400}
    run = iso.sample(two_wells, **given)
    assert run.num_steps < 0.9 * run_of_wells().num_steps
    found = run.estimate(lambda x: jnp.array([x[0] < 0, x[0], x[1]]))
    assert np.all(np.asarray(found.effective_draws) >= 400)
    assert "imprecise" not in [check.name for check in run.checks]
    assert "stopped" not in [check.name for check in run.checks]
    # A count of draws ends it, and neither a block nor a stop.
    stop = lambda status: status.iteration > 2_000  # noqa: E731
    iso.sample(two_wells, out=tmp_path / "run", callback=stop, block_length=777, **given)
    resumed = iso.sample(two_wells, out=tmp_path / "run", resume=True, **given)
    np.testing.assert_array_equal(resumed.draws[:], run.draws)
    again = iso.resume(tmp_path / "run", two_wells)
    np.testing.assert_array_equal(again.draws[:], run.draws)
    given["num_effective"] = 500
    with pytest.raises(InputError, match="`num_effective` must be 400, as in the run"):
        iso.sample(two_wells, out=tmp_path / "run", resume=True, **given)


def test_a_budget_that_is_too_small_for_the_precision_is_told():
    run = iso.sample(two_wells, init=jnp.array([4.0, 0.0]), budget=60_000, num_effective=100_000)
    (check,) = [check for check in run.checks if check.name == "imprecise"]
    assert check.numbers["wanted"] == 100_000
    with pytest.raises(InputError, match="`num_effective` must be left out where a sampler is given; got 5"):
        iso.sample(two_wells, iso.sgld(1e-6), num_steps=10, init=jnp.zeros(2), num_effective=5)
    with pytest.raises(InputError, match="`num_effective` must be an integer of at least 1"):
        iso.sample(two_wells, init=jnp.zeros(2), num_effective=0)


@pytest.mark.parametrize("unit", [1e-6, 1e5])
def test_units_of_positions_do_not_matter(unit):
    run = iso.sample(lambda x: along(x[0] / unit), init=jnp.array([4.0 * unit]), budget=60_000)
    found = run.estimate(lambda x: jnp.array([x[0] < 0, x[0] / unit]))
    assert np.all(z_scores(found, np.array([0.3, 1.6])) < 4.5)
    assert z_scores(run.log_evidence(), LOG_Z + np.log(unit)) < 4.5


def test_a_given_prior_is_the_start_of_the_path():
    prior = lambda x: -0.5 * jnp.sum((x / 5.0) ** 2) - 2.0 * jnp.log(5.0) - jnp.log(2.0 * jnp.pi)  # noqa: E731
    energy = lambda x: 0.5 * jnp.sum((x - 1.0) ** 2) / 0.01 - prior(x)  # noqa: E731
    problem = iso.with_reference(energy, lambda key: 5.0 * jax.random.normal(key, (2,)), prior)
    run = iso.sample(problem, init=jnp.zeros(2), budget=150_000)
    precision = 100.0 + 0.04
    found = run.estimate(lambda x: jnp.array([x[0], (x[0] - 100.0 / precision) ** 2]))
    assert np.all(z_scores(found, np.array([100.0, 1.0]) / precision) < 4.5)
    # A product of normal densities: without the factor of the likelihood's normalization.
    truth = 2.0 * (-0.5 * np.log(25.0 * precision) - 0.5 * 100.0 * 0.04 / precision)
    assert z_scores(run.log_evidence(), truth) < 4.5
    assert run.choices[0]["value"]["reference"] is None


def test_draws_of_the_prior_without_a_likelihood_are_never_taken():
    """The energy is NaN below zero and infinite above three."""

    def energy(x):
        return jnp.where(x[0] > 3.0, jnp.inf, 0.5 * jnp.sum(x**2) + 0.0 * jnp.log(x[0]))

    prior = lambda x: -0.5 * (x[0] / 4.0) ** 2 - jnp.log(4.0) - 0.5 * jnp.log(2.0 * jnp.pi)  # noqa: E731
    problem = iso.with_reference(energy, lambda key: 4.0 * jax.random.normal(key, (1,)), prior)
    run = iso.sample(problem, init=jnp.ones(1), budget=60_000)
    draws = np.asarray(run.draws)
    assert draws.min() > 0.0
    assert draws.max() < 3.0
    mass = scipy.stats.norm.cdf([0.0, 3.0])
    assert z_scores(run.log_evidence(), np.log(np.diff(mass)[0]) + LOG_Z) < 4.5


def regression(batch_size, num_data=400):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(num_data, 3)).astype(np.float32) * np.array([1.0, 10.0, 0.1], np.float32)
    outputs = (inputs @ np.array([1.0, 0.1, 5.0]) + rng.normal(size=num_data)).astype(np.float32)
    precision = inputs.T @ inputs + 1e-2 * np.eye(3)
    mean = np.linalg.solve(precision, inputs.T @ outputs)
    potential = iso.from_likelihood(
        lambda w, row: -0.5 * (row[1] - row[0] @ w) ** 2,
        lambda w: -0.5e-2 * w @ w,
        (inputs, outputs),
        batch_size=batch_size,
    )
    return potential, mean, np.linalg.inv(precision)


def test_mini_batches_are_joined_where_the_budget_has_room():
    potential, mean, covariance = regression(40)
    run = iso.sample(potential, init=jnp.zeros(3), budget=400_000)
    assert run.choices[0]["value"]["has_all_data"]
    assert run.is_adjusted
    found = run.estimate(lambda w: jnp.concatenate([w, (w - mean) ** 2]))
    assert np.all(z_scores(found, np.concatenate([mean, np.diag(covariance)])) < 4.5)


@pytest.mark.long
def test_mini_batches_of_large_data_get_steps_of_small_bias():
    potential, mean, covariance = regression(100, 20_000)
    run = iso.sample(potential, init=jnp.zeros(3), budget=2_500_000)
    assert not run.choices[0]["value"]["has_all_data"]
    spreads = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(np.asarray(run.mean()) - mean) < 0.8 * spreads)
    spread = np.asarray(run.std()) / spreads
    assert np.all((spread > 0.8) & (spread < 1.25))


def test_a_stopped_run_goes_on_as_if_it_had_not(tmp_path):
    given = {"init": jnp.array([4.0]), "budget": 30_000}
    energy = lambda x: along(x[0])  # noqa: E731
    whole = iso.sample(energy, **given)
    stops = iter([False, True])
    part = iso.sample(energy, **given, out=tmp_path / "run", callback=lambda status: next(stops), block_length=50)
    assert part.num_steps < whole.num_steps
    again = iso.resume(tmp_path / "run", energy)
    assert np.array_equal(np.asarray(again.draws), np.asarray(whole.draws))
    assert np.array_equal(
        np.asarray(iso.sample(energy, **given, out=tmp_path / "run", resume=True).draws), np.asarray(whole.draws)
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": "3 x"}, '`budget` must be a number of gradients, or a time such as "60 s"'),
        ({"budget": 10}, "`budget` must be at least 10,000 gradients; got 10"),
        ({"num_chains": 3}, "`num_chains` must be left out without a sampler"),
        ({"num_runs": 3}, "`num_runs` must be left out without a sampler"),
        ({"num_ladders": 1}, "`num_ladders` must be an integer of at least 2"),
        ({"burn_in": -1}, "`burn_in` must be an integer of at least 0"),
        ({"init": None}, "`init` must be a position"),
    ],
)
def test_wrong_calls_are_refused_before_any_work(given, message):
    with pytest.raises(InputError, match=message):
        iso.sample(lambda x: x @ x, **({"init": jnp.zeros(2)} | given))


def test_a_start_without_a_finite_energy_is_refused():
    reference = iso.potentials.Normal(jnp.zeros(1), jnp.eye(1))
    for problem in (lambda x: -jnp.log(x[0]) + x[0], iso.with_reference(lambda x: -jnp.log(x[0]) + x[0], reference)):
        with pytest.raises(InputError, match="`init` must be where the energy is finite"):
            iso.sample(problem, init=jnp.zeros(1))


def test_the_target_goes_on_where_its_reference_ends():
    log_density = lambda x: jnp.where((x[0] > 0.0) & (x[0] < 4.0), -jnp.log(4.0), -jnp.inf)  # noqa: E731
    problem = iso.with_reference(lambda x: x @ x / 2, lambda key: 4.0 * jax.random.uniform(key, (1,)), log_density)
    sampler = iso.reghmc(0.3, temperatures=(1.0, 3.0, jnp.inf), path="reference")
    run = iso.sample(problem, sampler, num_steps=20_000, num_ladders=8, init=jnp.ones(1))
    assert z_scores(run.estimate(lambda x: x[0]), 0.0) < 4.5


def test_a_reference_comes_before_constraints():
    problem = iso.transforms.constrain(lambda x: -x, iso.transforms.positive())
    with pytest.raises(InputError, match="`potential` must be one without constraints"):
        iso.with_reference(problem, jax.random.exponential, lambda x: -x)


@pytest.mark.parametrize("start", [{"w": jnp.zeros(64), "b": jnp.zeros(())}, jnp.zeros((9, 9)), jnp.zeros((2, 2))])
def test_positions_of_any_shape(start):
    energy = lambda x: 0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(x))  # noqa: E731
    run = iso.sample(energy, init=start, budget=30_000)
    assert jax.tree.map(lambda leaf: leaf.shape[2:], run.draws) == jax.tree.map(jnp.shape, start)
    json.dumps(run.choices[0]["value"], allow_nan=False)


def test_starts_of_ladders_may_be_given_and_another_seed_is_another_run(tmp_path):
    energy = lambda x: x @ x / 2  # noqa: E731
    given = {"init": iso.per_chain(jnp.array([[0.0], [1.0], [2.0]])), "budget": 20_000, "out": tmp_path / "run"}
    run = iso.sample(energy, **given)
    assert len(run.draws) == 3
    with pytest.raises(InputError, match="`seed` must be 0, as in the run"):
        iso.sample(energy, **given, seed=1, resume=True)


def test_a_sampler_needs_iterations_and_no_budget():
    with pytest.raises(InputError, match="`num_steps` must be given with a sampler"):
        iso.sample(lambda x: x @ x, iso.sgld(0.1), init=jnp.zeros(2))
    with pytest.raises(InputError, match="`budget` must be left out where a sampler is given"):
        iso.sample(lambda x: x @ x, iso.sgld(0.1), num_steps=10, budget=20_000, init=jnp.zeros(2))


def test_streams_and_networks_need_a_sampler():
    data = (np.zeros((8, 1), np.float32), np.zeros(8, np.float32))
    potential = iso.from_likelihood(lambda w, row: row[0][:, 0] * w, None, data, batch_size=2, is_streamed=True)
    with pytest.raises(InputError, match="`sampler` must be given for networks and for data that stream"):
        iso.sample(potential, init=jnp.zeros(()))


def test_scales_of_a_normal_well_are_found_from_draws_of_a_part_of_it():
    """The covariance of draws and that of their gradients give the whole well, exactly so without pseudo-counts."""
    rng = np.random.default_rng(1)
    lower = np.tril(rng.normal(size=(5, 5))) * np.array([1e-2, 1.0, 1.0, 1.0, 1e2])[:, None]
    precision = jnp.asarray(np.linalg.inv(lower @ lower.T))
    rounds, potential = Rounds(4, 0, None), as_potential(lambda x: 0.5 * x @ precision @ x)
    draws = (rng.normal(size=(4_000, 5)) * np.array([0.1, 1.0, 0.3, 1.0, 1.0]) @ lower.T).astype(np.float32)
    factor = fitted_factor(rounds, potential, draws, np.eye(5, dtype=np.float32), True)
    whitened = np.linalg.solve(factor.astype(float), lower)
    assert np.linalg.cond(lower) > 1e4
    assert np.linalg.cond(whitened) < 4.0
    assert np.linalg.cond(np.linalg.solve(np.diag(draws.std(axis=0)), lower)) > 10.0


def test_step_sizes_go_to_the_acceptance_wanted_and_temperatures_to_equal_rejection():
    steps = np.array([1.0, 1.0, 1.0])
    grown = fitted_steps(steps, np.array([0.0, 0.8, 1.0]), 100)
    assert grown[0] < 0.1 < grown[1] < 1.01 < grown[2]
    assert grown[1] == pytest.approx(1.0, abs=1e-6)
    # Rejection of a rung pair is the difference in log temperature: equal rejection is a geometric ladder.
    temperatures = np.array([1.0, 2.0, 64.0])
    placed = fitted_temperatures(temperatures, 0.1 * np.diff(np.log(temperatures)), 4)
    assert np.allclose(placed, [1.0, 4.0, 16.0, 64.0], rtol=1e-6)
    assert np.allclose(interpolated(temperatures, temperatures**2, placed), placed**2, rtol=1e-3)
