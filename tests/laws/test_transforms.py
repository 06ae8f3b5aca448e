"""Constrained parameters: Jacobians against autodiff, quadrature and closed forms, and the laws of draws."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import isotherm as iso
from isotherm.transforms import circular, constrain, interval, ordered, positive, simplex
from tests.laws.exact import langevin_law
from tests.statistics import FAIL, PASS, assert_law, z_score

CASES = {
    "positive": (positive(), np.array([-3.0, 0.2, 4.0])),
    "interval": (interval(-1.0, np.array([3.0, 5.0])), np.array([-2.0, 0.7])),
    "simplex": (simplex(), np.array([0.3, -1.2, 2.0])),
    "ordered": (ordered(), np.array([0.5, -2.0, 1.5])),
    "circular": (circular(-1.0, np.array([2.0, 5.0])), np.array([-0.5, 4.0])),
}


@pytest.mark.parametrize("name", CASES)
def test_log_jacobians_are_those_of_the_maps(name):
    transform, z = CASES[name]
    with jax.enable_x64(True):
        size = len(z)
        jacobian = jax.jacfwd(lambda z: transform.forward(z)[:size])(jnp.asarray(z))
        expected = np.linalg.slogdet(np.asarray(jacobian))[1]
        np.testing.assert_allclose(transform.log_jacobian(jnp.asarray(z)), expected, rtol=1e-10)
        x = transform.forward(jnp.asarray(z))
        assert np.all(transform.is_inside(x))
        np.testing.assert_allclose(transform.inverse(x), z, rtol=1e-9)
        rows = transform.forward(jnp.stack([jnp.asarray(z)] * 2))
        np.testing.assert_array_equal(rows[1], x)


def means(transform, log_density, size, has_jacobian=True):
    """Means of x under a density of x, by quadrature over z: independent of any sampler."""
    axis = np.linspace(-14.0, 14.0, 1_401 if size == 1 else 281)
    with jax.enable_x64(True):
        grid = jnp.asarray(list(itertools.product(axis, repeat=size)))
        x = jax.vmap(transform.forward)(grid)
        logs = jax.vmap(log_density)(x) + has_jacobian * jax.vmap(transform.log_jacobian)(grid)
        weights = np.asarray(jnp.exp(logs - logs.max()))
        return np.asarray(x).T @ weights / weights.sum()


ALPHA = np.array([2.0, 3.0, 4.5])
ENDS = (-1.0, 3.0)
# Two normal numbers of different means, given that the first is the smaller one.


def mean_of_the_smaller():
    def density(x):
        return stats.norm.pdf(x, 0.5, 1.0) * stats.norm.sf(x, 0.0, 1.5)

    return integrate.quad(lambda x: x * density(x), -9, 9)[0] / integrate.quad(density, -9, 9)[0]


KNOWN = {
    "a gamma law": (positive(), lambda x: jnp.sum(2.0 * jnp.log(x) - 2.0 * x), 1, 1.5),
    "a truncated exponential": (
        interval(*ENDS),
        lambda x: -0.7 * jnp.sum(x),
        1,
        stats.truncexpon(4.0 * 0.7, loc=-1.0, scale=1 / 0.7).mean(),
    ),
    "a Dirichlet": (simplex(), lambda x: jnp.sum((ALPHA - 1.0) * jnp.log(x)), 2, ALPHA[0] / ALPHA.sum()),
    "two ordered normals": (
        ordered(),
        lambda x: -0.5 * (x[0] - 0.5) ** 2 - 0.5 * (x[1] / 1.5) ** 2,
        2,
        mean_of_the_smaller(),
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_jacobians_give_the_known_law(name):
    transform, log_density, size, truth = KNOWN[name]
    assert means(transform, log_density, size)[0] == pytest.approx(truth, rel=2e-3)
    # The control: without the Jacobian it is another law.
    assert means(transform, log_density, size, has_jacobian=False)[0] != pytest.approx(truth, rel=5e-2)


A, B = 3.0, 2.0
START = {"scale": jnp.array(1.0), "weights": jnp.array([0.2, 0.3, 0.5]), "free": jnp.array(0.0)}


def log_density(x):
    gamma = (A - 1.0) * jnp.log(x["scale"]) - B * x["scale"]
    return gamma + jnp.sum((ALPHA - 1.0) * jnp.log(x["weights"])) - 0.5 * (x["free"] - 1.0) ** 2


@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_draws_follow_the_law_in_the_space_of_the_user(temperature):
    problem = constrain(log_density, {"scale": positive(), "weights": simplex()}, temperature=temperature)
    sampler = iso.sgld(0.02, temperature=temperature)
    run = iso.sample(
        problem, sampler, num_steps=20_000, num_runs=64, num_chains=2, thinning=5, burn_in=1_000, init=START
    )
    assert run.draws["weights"].shape == (64, 2, 3_800, 3)
    assert run.draws["scale"].min() > 0
    np.testing.assert_allclose(run.draws["weights"].sum(axis=-1), 1.0, rtol=1e-5)
    # exp(log density / T) is a gamma law of shape (A - 1) / T + 1, and a Dirichlet of the exponents (ALPHA - 1) / T + 1.
    exponents = (ALPHA - 1.0) / temperature + 1.0
    truths = {
        "scale": (A - 1.0 + temperature) / B,
        "weights": (exponents / exponents.sum())[2],
        "free": 1.0,
    }
    alone = means(positive(), lambda x: jnp.sum((A - 1) * jnp.log(x) - B * x) / temperature, 1, has_jacobian=False)[0]
    repeats = run.draws["scale"].mean(axis=(1, 2))
    assert_law(repeats, truths["scale"], wrong=alone)
    for name, values in (("weights", run.draws["weights"][..., 2]), ("free", run.draws["free"])):
        assert abs(z_score(values.mean(axis=(1, 2)), truths[name])) < PASS
    variance = ((A - 1.0) / temperature + 1.0) * (temperature / B) ** 2
    assert abs(z_score(run.draws["scale"].var(axis=(1, 2)), variance)) < FAIL


def test_the_bias_of_a_step_is_measured_in_the_space_of_the_user():
    problem = constrain(log_density, {"scale": positive(), "weights": simplex()})
    settings = {"num_steps": 40_000, "num_chains": 16, "thinning": 4, "burn_in": 1_000, "init": START}
    run = iso.sample(problem, iso.sgld(0.4), **settings)
    found = run.estimate(lambda x: (x["scale"], x["weights"][0]))
    for mean, error, bias, bias_error, truth in zip(
        found.mean, found.std_error, found.bias, found.bias_error, (1.5, ALPHA[0] / ALPHA.sum()), strict=True
    ):
        # To first order in the step; the second order is a fraction of it.
        assert abs(mean - bias - truth) < PASS * np.hypot(error, bias_error) + 0.3 * abs(bias)
    assert abs(found.bias[0]) > 5 * found.bias_error[0]


def test_a_likelihood_with_an_unknown_scale():
    data = np.random.default_rng(0).normal(0.0, 2.0, 60).astype(np.float32)
    likelihood = iso.from_likelihood(
        lambda x, y: -0.5 * (y / x["scale"]) ** 2 - jnp.log(x["scale"]), lambda x: -x["scale"], data, batch_size=30
    )
    problem = constrain(likelihood, {"scale": positive()})
    position = {"scale": jnp.array(0.4)}
    z = problem.space.unconstrained(position)
    expected = likelihood.full_energy(position) - positive().log_jacobian(z["scale"])
    assert float(problem.full_energy(z)) == pytest.approx(float(expected), rel=1e-6)
    grid = np.linspace(0.8, 5.0, 4_001)
    logs = -0.5 * (data**2).sum() / grid**2 - len(data) * np.log(grid) - grid
    truth = np.average(grid, weights=np.exp(logs - logs.max()))
    run = iso.sample(
        problem, iso.sgld(1e-3), num_steps=20_000, num_chains=8, num_runs=8, burn_in=2_000, thinning=10, init=position
    )
    assert abs(z_score(run.draws["scale"].mean(axis=(1, 2)), truth)) < PASS


# Two angles with a mode at the cut, and another temperature than 1.
STRENGTHS, MIDDLES, WARMTH = np.array([2.0, 0.5], np.float32), np.array([np.pi, 0.3], np.float32), 1.6


def angles(x):
    return jnp.sum(STRENGTHS * jnp.cos(x - MIDDLES), axis=-1)


def turned_by(strength, middle, step_size, low=-np.pi):
    """The law of an angle whose chain takes steps of this size: points and masses."""
    slope = lambda x: strength * np.sin(x - middle)  # noqa: E731
    return langevin_law(slope, step_size, WARMTH, (low, low + 2.0 * np.pi), "shifted")


@pytest.mark.parametrize("low", [-np.pi, 0.0], ids=["cut at a mode", "from zero"])
def test_angles_have_the_law_of_their_moves_around_a_circle(low):
    step_size = 0.15
    problem = constrain(angles, circular(low, low + 2.0 * np.pi))
    settings: dict[str, Any] = {"num_steps": 20_000, "num_runs": 64, "thinning": 5, "burn_in": 1_000}
    run = iso.sample(problem, iso.sgld(step_size, temperature=WARMTH), init=jnp.full(2, 3.0), **settings)
    draws = np.asarray(run.draws, float)
    assert np.float32(low) <= draws.min() < draws.max() < low + 2.0 * np.pi
    for number in range(2):
        # For short steps it is the von Mises law.
        points, mass = turned_by(STRENGTHS[number], MIDDLES[number], 0.01, low)
        exact = special.i1(STRENGTHS[number] / WARMTH) / special.i0(STRENGTHS[number] / WARMTH)
        assert mass @ np.cos(points - MIDDLES[number]) == pytest.approx(exact, rel=0.02)
        points, mass = turned_by(STRENGTHS[number], MIDDLES[number], step_size, low)
        repeats = np.cos(draws[..., number] - MIDDLES[number]).mean(axis=(1, 2))
        right = mass @ np.cos(points - MIDDLES[number])
        assert_law(repeats, right, wrong=0.8 * right)
        # The wrapped number itself, whose law has the cut.
        assert abs(z_score(draws[..., number].mean(axis=(1, 2)), float(mass @ points))) < PASS
        assert abs(z_score((draws[..., number] ** 2).mean(axis=(1, 2)), float(mass @ points**2))) < PASS


def test_angles_need_no_jacobian_and_no_temperature():
    problem = constrain(angles, circular())
    settings = {"num_steps": 20_000, "num_chains": 16, "thinning": 5, "burn_in": 1_000, "init": jnp.zeros(2)}
    run = iso.sample(problem, iso.sgld(0.01, temperature=WARMTH), **settings)
    cool = run.reweighted(1.2).estimate(lambda x: jnp.cos(x[0] - MIDDLES[0]))
    exact = special.i1(STRENGTHS[0] / 1.2) / special.i0(STRENGTHS[0] / 1.2)
    assert abs(cool.mean - exact) < PASS * cool.std_error + 0.005
    assert exact > 1.1 * special.i1(STRENGTHS[0] / WARMTH) / special.i0(STRENGTHS[0] / WARMTH)


ANGLES, FREE_ANGLES = constrain(angles, circular()), iso.from_log_density(angles)


def names_of(run):
    return {check.name for check in run.summary().checks}


def one_start(key):
    return jnp.array([3.0, 0.0])


def dispersed(key):
    return jax.random.uniform(key, (2,), minval=-3.1, maxval=3.1)


LONG: dict[str, Any] = {"num_steps": 40_000, "num_chains": 4, "thinning": 10, "burn_in": 1_000}


@pytest.mark.parametrize("sampler", [iso.sgld(0.05), iso.sghmc(0.01)], ids=["sgld", "sghmc"])
@pytest.mark.parametrize("init", [one_start, dispersed])
def test_angles_that_wander_alarm_only_without_the_transform(init, sampler):
    for seed in range(2):
        run = iso.sample(ANGLES, sampler, init=init, seed=seed, **LONG)
        assert names_of(run) <= {"one-start"}
        # The control: the same chains, as numbers that wander over periods.
        free = iso.sample(FREE_ANGLES, sampler, init=init, seed=seed, **LONG)
        assert {"disagreement", "slow-mixing"} & names_of(free)
        np.testing.assert_allclose(np.cos(free.draws[:, :20]), np.cos(run.draws[:, :20]), atol=1e-3)


QUIET = {
    "ladder": iso.resgld(0.05, temperatures=(1.0, 3.0)),
    "contour": iso.icsgld(0.02, partition=(-2.6, 2.6, 20)),
    "preconditioner": iso.psgld(0.02, freeze_after=1_000),
}


@pytest.mark.parametrize("name", QUIET)
def test_angles_of_other_samplers_are_quiet(name):
    chains: dict[str, Any] = {} if name == "ladder" else {"num_chains": 8}
    settings = {**LONG, "num_steps": 100_000, "init": dispersed}
    settings.pop("num_chains")
    assert names_of(iso.sample(ANGLES, QUIET[name], **settings, **chains)) == set()


@pytest.mark.parametrize("middle", [np.pi, 0.3])
@pytest.mark.parametrize("strength", [0.05, 30.0])
def test_the_heat_of_an_angle_is_not_judged_by_a_straight_line(strength, middle):
    """Nearly uniform angles have a mean Hessian near zero, and means of x g have a term at the cut: neither is a fault."""
    problem = constrain(lambda x: strength * jnp.sum(jnp.cos(x - middle)), circular())
    # The cut splits a narrow mode in two, between which chains go to and fro.
    settings: dict[str, Any] = {**LONG, "num_chains": 8, "init": dispersed if strength < 1.0 else jnp.full(2, middle)}
    step_size = min(0.05, 0.06 / strength)
    for potential in (problem, iso.with_noise(problem, gradient_scale=1.0)):
        assert names_of(iso.sample(potential, iso.sgld(step_size), **settings)) <= {"one-start"}


def test_a_large_position_of_angles_is_quiet():
    problem = constrain(lambda x: jnp.sum(jnp.cos(x)), circular())
    init = lambda key: jax.random.uniform(key, (70,), minval=-3.1, maxval=3.1)  # noqa: E731
    assert names_of(iso.sample(problem, iso.sgld(0.02), **{**LONG, "num_steps": 15_000, "init": init})) == set()


@pytest.mark.parametrize("middle", [np.pi, 0.3])
def test_a_spread_across_the_cut_is_judged_around_the_mode(middle):
    """A step half of the variance of a mode widens it by a ninth; as wrapped numbers it has hardly another spread."""
    problem = constrain(lambda x: 30.0 * jnp.sum(jnp.cos(x - middle)), circular())
    run = iso.sample(problem, iso.sgld(0.4 / 30.0), **{**LONG, "num_chains": 8, "init": jnp.full(2, middle)})
    assert "biased-spread" in names_of(run)
    found: Any = run.bias
    assert np.all(found.relative().variance > 0.1)
    assert np.all(np.abs(found.values - np.median(found.values)) < np.pi)


def test_an_energy_with_a_jump_at_the_cut_is_noted():
    problem = constrain(lambda x: 0.3 * jnp.sum(x), circular())
    assert "jumps" in names_of(iso.sample(problem, iso.sgld(0.05), **{**LONG, "init": dispersed}))


def test_circles_wrap_every_period_and_keep_what_is_inside():
    with jax.enable_x64(True):
        for low, high in ((-np.pi, np.pi), (0.0, 24.0), (np.array([-1.0, 2.0]), np.array([0.0, 2.5]))):
            transform, period = circular(low, high), np.subtract(high, low)
            inside = np.linspace(low * np.ones(2), high, 7)[:-1]
            np.testing.assert_array_equal(transform.inverse(inside), inside)
            np.testing.assert_array_equal(transform.forward(inside), inside)
            for turns in (-1_000, -1, 1, 3):
                np.testing.assert_allclose(transform.forward(inside + turns * period), inside, atol=1e-10)
    slopes = jax.vmap(jax.grad(circular().forward))(jnp.array([-30.0, -3.0, 0.5, 4.0, 1e3]))
    np.testing.assert_array_equal(slopes, 1.0)
    # Rounding does not lead to the other end.
    just_below = np.nextafter(np.float32(-np.pi), np.float32(-9.0))
    assert float(circular().forward(just_below)) < np.float32(np.pi)
    assert np.isnan(circular().forward(jnp.nan))
    assert np.all(circular().is_inside(np.array([-np.pi, 0.0, np.pi], np.float32)))
    assert not np.any(circular().is_inside(np.array([-3.2, 3.2, np.nan], np.float32)))


def test_a_pilot_finds_the_temperature_at_which_angles_mix():
    """Two wells 16 apart in energy on every circle; free numbers never agree, as hot as they may be."""
    wells = lambda x: 8.0 * jnp.sum(jnp.cos(2.0 * (x - 0.3)))  # noqa: E731
    sampler, found = iso.resgld(0.01, ladder="auto"), []
    for problem in (constrain(wells, circular()), iso.from_log_density(wells)):
        (choice,) = iso.resolve(problem, sampler, init=jnp.zeros(2)).choices
        found.append(("mix at none" in choice.reason, choice.value["temperatures"][-1]))
    assert not found[0][0]
    assert 2.0 <= found[0][1] <= 32.0
    assert found[1][0]
