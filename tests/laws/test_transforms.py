"""Constrained parameters: Jacobians against autodiff, quadrature and closed forms, and the laws of draws."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import isotherm as iso
from isotherm.transforms import constrain, interval, ordered, positive, simplex
from tests.statistics import FAIL, PASS, assert_law, z_score

CASES = {
    "positive": (positive(), np.array([-3.0, 0.2, 4.0])),
    "interval": (interval(-1.0, np.array([3.0, 5.0])), np.array([-2.0, 0.7])),
    "simplex": (simplex(), np.array([0.3, -1.2, 2.0])),
    "ordered": (ordered(), np.array([0.5, -2.0, 1.5])),
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
