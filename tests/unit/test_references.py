"""References, and Bennett's ratio, against closed forms."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import isotherm as iso
from isotherm.foundation.bennett import log_ratio
from isotherm.potentials.reference import Normal
from tests.statistics import FAIL, PASS, z_score


def test_a_normal_reference_has_its_draws_and_its_density():
    mean = {"a": jnp.array([1.0, -2.0]), "b": jnp.asarray(0.5)}
    factor = np.array([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-1.0, 0.3, 0.7]], np.float32)
    reference = Normal(mean, jnp.asarray(factor))
    draws = jax.vmap(reference.draw)(jax.random.split(jax.random.key(0), 40_000))
    flat = np.concatenate([draws["a"], draws["b"][:, None]], axis=1).astype(np.float64)
    center = np.array([1.0, -2.0, 0.5])
    for k in range(3):
        assert abs(z_score(flat[:, k], center[k])) < PASS
        for other in range(k, 3):
            products = (flat[:, k] - center[k]) * (flat[:, other] - center[other])
            assert abs(z_score(products, (factor @ factor.T)[k, other])) < PASS
    covariance: Any = factor.astype(np.float64) @ factor.T
    exact = stats.multivariate_normal(center, covariance).logpdf(flat[:50])
    found = jax.vmap(reference.log_density)(jax.tree.map(lambda leaf: leaf[:50], draws))
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-4)


def test_the_energy_of_a_potential_with_a_reference_is_its_own():
    log_density = lambda x: -0.5 * jnp.sum(x**2)  # noqa: E731
    potential = iso.with_reference(lambda x: jnp.sum(x), lambda key: jax.random.normal(key, (2,)), log_density)
    found = potential.evaluate(jnp.array([1.0, 2.0]), (), (), ())
    assert float(found.energy) == 3.0
    assert float(found.prior_energy) == 2.5
    infinite = iso.with_reference(lambda x: jnp.inf * jnp.sum(x), lambda key: jax.random.normal(key, (2,)), log_density)
    assert np.isfinite(infinite.evaluate(jnp.ones(2), (), (), ()).energy)


def test_bennetts_ratio_of_two_normal_distributions():
    """Densities exp(-x^2 / 2) and exp(-x^2 / 2 s^2 + 3): constants in the ratio 1 to s e^3."""
    rng, scale, found = np.random.default_rng(0), 1.5, []
    for _ in range(200):
        cold, hot = rng.normal(size=(2, 500, 1)) * np.array([1.0, scale])[:, None, None]
        work = lambda x: 3.0 - 0.5 * x**2 / scale**2 + 0.5 * x**2  # noqa: E731
        found.append(log_ratio(work(cold), work(hot))[0])
    truth = -np.log(scale) - 3.0
    assert abs(z_score(np.array(found), truth)) < PASS
    assert abs(z_score(np.array(found), 0.99 * truth)) > FAIL


def test_bennetts_ratio_with_draws_outside_the_support():
    """Half of the hot draws have no density: the constant is half as large, whatever their number."""
    for number in (10, 1_000):
        hot = np.where(np.arange(number) % 2, 0.0, 1e30)[:, None]
        np.testing.assert_allclose(log_ratio(np.zeros((number, 1)), hot), np.log(0.5), rtol=1e-6)
    most = np.where(np.arange(1_000) % 10, 1e30, 5.0)[:, None]
    np.testing.assert_allclose(log_ratio(np.full((1_000, 1), 5.0), most), np.log(0.1) - 5.0, rtol=1e-6)
