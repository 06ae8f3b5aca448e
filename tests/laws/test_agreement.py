"""R-hat of weighted draws, and how large chance makes it."""

import jax.numpy as jnp
import numpy as np
import pytest

from isotherm.run.estimates import estimate
from isotherm.run.standard_errors import num_stretches

IS_OPTIMIZED = False


def test_r_hat_and_effective_draws_honor_weights():
    """Chains that differ in law and are made equal by their weights agree; and the other way round."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 4, 20_000))
    x[:, 2:] += 0.5
    corrected = np.where(np.arange(4)[None, :, None] < 2, 0.0, -0.5 * x + 0.125)
    assert estimate(jnp.asarray, x, np.zeros_like(x)).r_hat > 1.02
    found = estimate(jnp.asarray, x, corrected)
    assert found.r_hat < 1.002
    assert abs(found.mean) < 4 * found.std_error
    # In half of the chains E w^2 x^2 = 1.25 exp(1/4), in the others 1; the error itself is known to 6 %.
    assert 80_000 / found.effective_draws == pytest.approx((1.0 + 1.25 * np.exp(0.25)) / 2, rel=0.3)
    assert estimate(jnp.asarray, x[:, :2], -1.0 * x[:, :2] * np.array([1.0, -1.0])[None, :, None]).r_hat > 1.1


def test_r_hat_weighs_halves_by_their_mass():
    """A chain that is far away and has next to no weight does not disagree with the others; one with weight does."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 4, 4_000))
    x[:, 3] += 5.0
    light = np.where(np.arange(4)[None, :, None] == 3, -12.0, 0.0) + 0.0 * x
    assert estimate(jnp.asarray, x, light).r_hat < 1.01
    assert estimate(jnp.asarray, x, 0.0 * x).r_hat > 2.0


def test_many_coordinates_differ_by_chance_and_long_chains_must_agree_more():
    """Of a thousand coordinates some have a large R-hat; chains that are apart by a fifth are seen if they are long."""
    rng = np.random.default_rng(0)
    few = rng.normal(size=(4, 40, 1_000))
    assert np.max(estimate(lambda x: x, few, np.zeros((4, 40))).r_hat) > 1.05
    assert not any("disagree" in note for note in estimate(lambda x: x, few, np.zeros((4, 40))).notes)
    apart = np.array([0.2, -0.2, 0.2, -0.2])[:, None, None]
    long = rng.normal(size=(4, 40_000, 1)) + apart
    found = estimate(lambda x: x, long, np.zeros((4, 40_000)))
    assert found.r_hat[0] < 1.05
    assert any("disagree" in note for note in found.notes)


@pytest.mark.parametrize("draws", [6, 10, 40])
def test_few_independent_draws_do_not_disagree(draws):
    """The means of n independent draws differ by a variance of 1 / n: without their share R-hat of ten draws is 1.12."""
    x = np.random.default_rng(0).standard_normal((4, draws, 2_000))
    found = np.asarray(estimate(lambda v: v, x, np.zeros((4, draws))).r_hat)
    assert np.median(found) < 1.03
    apart = x + np.array([2.0, -2.0, 2.0, -2.0])[:, None, None]
    assert np.median(np.asarray(estimate(lambda v: v, apart, np.zeros((4, draws))).r_hat)) > 1.5


def test_every_chain_has_stretches_of_its_own():
    assert num_stretches(4, 10_000) == 32
    assert num_stretches(200, 10_000) == 8
    assert num_stretches(200, 3) == 2
    assert num_stretches(200, 10_000, shares_noise=True) == 32


def test_constant_values_have_no_error_and_do_not_disagree():
    x = np.random.default_rng(0).standard_normal((4, 100, 1)) + 1e6
    found = estimate(lambda v: 0.1 + 0.0 * v, x, np.zeros((4, 100)))
    assert np.isnan(found.std_error).all()
    assert np.isnan(found.r_hat).all()
    assert any("all draws have the same value" in note for note in found.notes)
    assert np.isfinite(estimate(lambda v: v, x, np.zeros((4, 100))).std_error).all()
