"""Runs measure their own bias: against exact laws and quadrature, with notes where it matters and none where it does not."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

import isotherm as iso
from isotherm.foundation.checks import WRONG_TEMPERATURE

SHAPE = 2.0  # exp(x) follows a Gamma law of this shape: a skewed well.


def skewed(x):
    return jnp.exp(x[0]) - SHAPE * x[0]


def bowl(x):
    return 0.5 * jnp.sum(x**2)


def measured(run):
    assert run.bias is not None
    return run.bias


def momentum_excess(rate, friction):
    """What the variance of a standard normal has too much under SGHMC, from Lyapunov's equation of its recursion."""
    kept = 1.0 - friction
    move = np.array([[1.0 - rate, kept], [-rate, kept]])
    return scipy.linalg.solve_discrete_lyapunov(move, 2.0 * rate * friction * np.ones((2, 2)))[0, 0] - 1.0


@pytest.fixture(scope="module")
def regression():
    """A conjugate regression with correlated inputs, and its exact posterior covariance and mean."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(1000, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.0], [0.0, 0.0, 2.0]])
    targets = inputs @ np.ones(3) + rng.normal(size=1000)
    covariance = np.linalg.inv(inputs.T @ inputs + np.eye(3))
    data = (inputs.astype(np.float32), targets.astype(np.float32))
    return data, covariance, covariance @ inputs.T @ targets


def posterior(data, batch_size, batching):
    log_likelihood = lambda w, example: -0.5 * (example[1] - example[0] @ w) ** 2  # noqa: E731
    return iso.from_likelihood(
        log_likelihood, lambda w: -0.5 * jnp.sum(w**2), data, batch_size=batch_size, batching=batching
    )


@pytest.mark.parametrize(
    ("sampler", "truth"),
    [
        (iso.sgld(0.2), 1.0 / 0.9 - 1.0),
        (iso.sghmc(0.3, friction=0.5), momentum_excess(0.3, 0.5)),
        # The preconditioner is about 1 / (1e-3 + 1): no closed form, but near that of plain steps.
        (iso.psgld(0.2, decay=0.999, freeze_after=5_000), 0.11),
    ],
)
def test_the_spread_of_a_normal_law(sampler, truth):
    run = iso.sample(bowl, sampler, num_steps=60_000, num_chains=4, burn_in=6_000, init=jnp.zeros(2), progress=False)
    found = run.estimate(lambda x: x[0] ** 2)
    assert abs(float(found.mean) - 1.0 - truth) < 4 * float(found.std_error) + 0.01
    assert abs(float(found.bias) - truth) < 4 * float(found.bias_error) + 0.01
    assert float(found.bias_error) < 0.25 * truth
    low, high = found.interval(0.99)
    assert low < 1.0 < high
    assert float(found.mean) - 3 * float(found.std_error) > 1.0  # which the standard error alone does not cover


@pytest.mark.parametrize("function", [lambda x: x[0], lambda x: jnp.abs(x[0] - 1.0)])
def test_other_means_of_a_skewed_law(function):
    run = iso.sample(skewed, iso.sgld(0.05), num_steps=200_000, num_chains=8, init=jnp.zeros(1), progress=False)
    grid = np.linspace(-25.0, 6.0, 200_001)
    weights = np.exp(-(np.exp(grid) - SHAPE * grid))
    truth = weights @ np.asarray(function(grid[None])) / weights.sum()
    found = run.estimate(function)
    error = np.hypot(float(found.std_error), float(found.bias_error))
    assert abs(float(found.mean) - float(found.bias) - truth) < 3.5 * error
    assert abs(float(found.bias)) > 4 * float(found.bias_error)


@pytest.mark.parametrize(("batching", "step_size"), [("independent", 2e-5), ("epochs", 5e-5)])
def test_the_noise_of_batches(regression, batching, step_size):
    data, covariance, mean = regression
    start = jnp.asarray(mean, jnp.float32)
    potential = posterior(data, 100, batching)
    settings = {
        "num_steps": 60_000,
        "num_chains": 4,
        "burn_in": 2_000,
        "thinning": 10,
        "init": start,
        "progress": False,
    }
    run = iso.sample(potential, iso.sgld(step_size), **settings)
    found = run.estimate(lambda w: (w - start) ** 2)
    truth = np.diag(covariance)
    excess, error = found.mean - truth, np.hypot(found.std_error, found.bias_error)
    assert excess[2] > 0.15 * truth[2]
    assert np.all(np.abs(found.bias - excess) < 4 * error + 0.15 * np.abs(excess))
    assert any("spread" in note for note in run.summary().notes)
    # Batches of shuffled epochs nearly cancel: taken as independent ones they would widen the law several times as much.
    if batching == "epochs":
        independent = iso.sample(posterior(data, 100, "independent"), iso.sgld(step_size), **settings)
        assert independent.estimate(lambda w: (w - start) ** 2).bias[2] > 1.5 * found.bias[2]


def test_a_clean_run_says_nothing():
    settings: dict[str, Any] = {"num_steps": 100_000, "burn_in": 1_000, "progress": False}
    apart = lambda key: jax.random.normal(key, (2,))  # noqa: E731
    run = iso.sample(bowl, iso.sgld(0.02), num_chains=4, init=apart, **settings)
    assert run.summary().notes[1:] == []
    contour = iso.sample(bowl, iso.icsgld(0.02), num_chains=4, init=apart, **settings)
    assert contour.summary().notes[1:] == []
    together = iso.sample(bowl, iso.sgld(0.02), num_chains=4, init=jnp.zeros(2), **settings)
    assert "All chains started at one point" in str(together.summary())
    alone = iso.sample(bowl, iso.sgld(0.02), init=jnp.zeros(2), **settings)
    assert "One chain: convergence cannot be checked" in str(alone.summary())


def test_steps_that_suit_one_mode_only_are_named():
    def energy(x):
        wide = -0.5 * (x[0] - 1.0) ** 2
        return -jnp.logaddexp(np.log(10.0) - 0.5 * ((x[0] + 1.0) / 0.1) ** 2, wide)

    settings = {"num_steps": 300_000, "num_chains": 8, "thinning": 10, "init": jnp.zeros(1), "progress": False}
    named = iso.sample(energy, iso.sgld(0.005), **settings).summary().notes[1:]
    assert any("of a well" in note or "step_size" in note for note in named)
    assert measured(iso.sample(energy, iso.sgld(0.0002), **settings)).rates.max() < 0.1


def test_draws_that_do_not_follow_their_law_are_contradicted_by_gradients():
    vanishing = lambda k: 0.05 / (1.0 + k) ** 2  # noqa: E731
    run = iso.sample(
        bowl, iso.sgld(vanishing), num_steps=5_000, num_chains=64, init=lambda key: 3.0 * jnp.ones(2), progress=False
    )
    assert any("times the temperature" in note for note in run.summary().notes)


def test_jumps_of_the_energy_are_named():
    def stairs(x):
        return bowl(x) + jnp.where(x[0] > 0.3, 2.0, 0.0)

    settings = {"num_steps": 20_000, "num_chains": 4, "burn_in": 500, "init": jnp.zeros(2), "progress": False}
    assert any("jumps" in note for note in iso.sample(stairs, iso.sgld(0.02), **settings).summary().notes)


def test_bias_is_kept_with_a_run(tmp_path):
    settings = {"num_steps": 4_000, "num_chains": 2, "init": {"a": jnp.zeros(2), "b": jnp.zeros(())}, "progress": False}
    energy = lambda x: bowl(x["a"]) + x["b"] ** 2  # noqa: E731
    run = iso.sample(energy, iso.sgld(0.3), out=tmp_path / "run", **settings)
    loaded = iso.load(tmp_path / "run")
    square = lambda x: x["b"] ** 2  # noqa: E731
    assert float(loaded.estimate(square).bias) == pytest.approx(float(run.estimate(square).bias), rel=1e-9)
    assert float(loaded.estimate(square).bias) > 0.0
    assert loaded.select(slice(100)).bias is loaded.bias
    repeats = iso.sample(energy, iso.sgld(0.3), num_runs=2, **settings)
    assert measured(repeats).log_weights.ndim == 2
    swept = iso.sweep(energy, {"long": iso.sgld(0.3), "short": iso.sgld(0.03)}, **settings)
    long, short = (float(swept[name].estimate(square).bias) for name in ("long", "short"))
    assert long > 5 * short > 0.0


def test_what_is_not_a_position_has_no_bias():
    run = iso.sample(
        bowl, iso.sgld(0.3), num_steps=500, init=jnp.zeros(2), collect=lambda x: x[0], num_chains=4, progress=False
    )
    assert run.bias is None
    assert np.isnan(run.estimate(lambda x: x).bias)


def test_large_positions_are_looked_at_in_places():
    run = iso.sample(
        bowl, iso.sgld(0.7), num_steps=3_000, num_chains=4, burn_in=200, init=jnp.zeros(300), progress=False
    )
    assert 1 < len(measured(run).coordinates) < 200
    assert any("step" in note for note in run.summary().notes[1:])


def test_the_widths_of_intervals_hold_the_truth():
    """Over 40 short runs, of which the standard error alone covers hardly any."""
    run = iso.sample(
        bowl, iso.sgld(0.4), num_steps=20_000, num_runs=40, num_chains=2, init=jnp.zeros(1), progress=False
    )
    ends = [one.estimate(lambda x: x[0] ** 2) for one in run.split_runs()]
    covered = [low < 1.0 < high for low, high in (one.interval(0.95) for one in ends)]
    alone = [abs(float(one.mean) - 1.0) < 2 * float(one.std_error) for one in ends]
    assert np.mean(covered) > 0.8
    assert np.mean(alone) < 0.1


def test_significance_grows_with_the_number_of_coordinates():
    from isotherm.run.bias import significant

    assert significant(1) < significant(100)
    tail = 2 * scipy.special.stdtr(19, -significant(100))
    assert tail == pytest.approx(1e-3 / 100, rel=1e-6)


def test_energies_that_are_infinite_nearby_are_left_out():
    """A Gamma law of shape 5 whose energy is infinite below zero, where a step from some of the draws leads."""

    def energy(x):
        return jnp.where(x[0] > 0, x[0] - 4.0 * jnp.log(jnp.where(x[0] > 0, x[0], 1.0)), jnp.inf)

    settings = {"num_steps": 30_000, "num_chains": 4, "burn_in": 500, "init": 4.0 * jnp.ones(1), "progress": False}
    run = iso.sample(energy, iso.sgld(0.3, box=(0.01, 50.0)), **settings)
    found = measured(run)
    assert np.any(np.isinf(found.log_weights))
    assert np.isfinite(float(run.estimate(lambda x: x[0]).bias))
    assert np.all(np.isfinite(found.tilts))


def test_noise_that_is_left_out_narrows_spreads_though_epochs_take_noise_back():
    """Two shuffled batches in an epoch: their noise cancels, and what was not injected for its sake is missing all the same."""
    rows = np.random.default_rng(0).normal(1.0, 1.0, 300).astype(np.float32)
    potential = iso.from_likelihood(lambda x, row: -0.5 * (row - x) ** 2, None, rows, batch_size=150)
    settings: dict[str, Any] = {"num_steps": 40_000, "num_chains": 6, "thinning": 10, "burn_in": 2_000}
    settings["init"] = lambda key: 1.0 + 0.2 * jax.random.normal(key)
    narrow = iso.sample(potential, iso.sghmc(1e-4, gradient_variance=500.0), **settings)
    assert np.var(narrow.draws) * 300 == pytest.approx(0.75, abs=0.08)
    assert any("too narrow" in note for note in narrow.summary().notes)
    right = iso.sample(potential, iso.sghmc(1e-4), **settings)
    assert not any("too narrow" in note or "too wide" in note for note in right.summary().notes)


def test_cycles_that_choose_their_modes_are_named():
    """Two modes, 0.3 and 0.7, that the steps of the sampling stage do not connect; and one mode, in which every cycle mixes."""

    def two_modes(x):
        return -jnp.sum(jnp.logaddexp(jnp.log(0.3) - 8.0 * (x + 2.0) ** 2, jnp.log(0.7) - 8.0 * (x - 2.0) ** 2))

    sampler = iso.cycsgld(
        0.05, cycle_length=1_000, sampling_from=0.7, hold_from=0.8, floor=0.01, exploration_temperature=10.0
    )
    settings: dict[str, Any] = {"num_steps": 40_000, "num_chains": 4, "thinning": 5}
    settings["init"] = lambda key: jax.random.uniform(key, (1,), minval=-3.0, maxval=3.0)
    apart = iso.sample(two_modes, sampler, **settings)
    assert any("Cycles end in different regions" in note for note in apart.summary().notes)
    together = iso.sample(lambda x: 8.0 * jnp.sum(x**2), sampler, **settings)
    assert not any("Cycles" in note for note in together.summary().notes)


def normalizer_left_out(x):
    """A regression with its scale, whose normalizer has no gradient."""
    return 2.0 * jnp.exp(-2.0 * x[1]) * (1.0 + x[0] ** 2) + 4.0 * jax.lax.stop_gradient(x[1]) + 0.5 * x[1] ** 2


def with_rounding(x):
    return 0.5 * jnp.sum(x**2) + 0.5 * jnp.sum((1.0 - jnp.round(x, 1)) ** 2)


OTHER_GRADIENT = "Changes of the energy around draws differ by about"


@pytest.mark.parametrize("energy", [normalizer_left_out, with_rounding], ids=lambda energy: energy.__name__)
def test_gradients_of_something_else_are_named(energy):
    run = iso.sample(energy, iso.sgld(0.01), num_steps=40_000, num_chains=8, thinning=10, init=spread)
    assert any(note.startswith(OTHER_GRADIENT) for note in run.summary().notes)
    assert WRONG_TEMPERATURE.name in {check.name for check in run.estimate(lambda x: x).checks}


@pytest.mark.parametrize("center", [0.0, 1e5])
@pytest.mark.parametrize("energy", [bowl, skewed, lambda x: jnp.sum(jnp.abs(x))], ids=["bowl", "skewed", "kink"])
def test_gradients_of_the_energy_explain_its_changes(energy, center):
    moved = lambda x: energy(x - center)  # noqa: E731
    start = lambda key: center + spread(key)  # noqa: E731
    run = iso.sample(moved, iso.sgld(0.02), num_steps=20_000, num_chains=8, thinning=10, init=start)
    assert measured(run).unexplained < 1e-3


def spread(key):
    return 2.0 * jax.random.normal(key, (2,))


def test_energies_that_are_infinite_everywhere_nearby_say_nothing():
    """An arcsine law at the walls of its box: a step away there is no energy."""
    law = lambda x: 0.9 * jnp.sum(jnp.log(x) + jnp.log1p(-x))  # noqa: E731
    start = lambda key: jnp.where(jax.random.bernoulli(key, 0.5, (1,)), 1e-6, 1.0 - 1e-6)  # noqa: E731
    run = iso.sample(law, iso.sgld(0.05, box=(1e-7, 1.0 - 1e-7)), num_steps=2_000, num_chains=4, init=start)
    assert run.summary().notes[1:]
