"""Swaps on mini-batches whose noise depends on the position, and on the size of the batch.

A location model: N observations y of variance 1 around x, with mean zero, and the prior N(0, 1). The posterior is
N(0, 1 / (N + 1)).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.exchange import Corrected
from isotherm.exchange.rules import Pairing
from tests.statistics import FAIL, PASS

NUM_DATA, STEP, TEMPERATURES = 200, 6e-5, (1.0, 2.0)
Y = np.random.default_rng(0).standard_normal(NUM_DATA).astype(np.float32)
Y = (Y - Y.mean()) / Y.std()


def potential(batch_size, batching, **options):
    log_likelihood = lambda x, y: -0.5 * (y - x[0]) ** 2  # noqa: E731
    log_prior = lambda x: -0.5 * jnp.sum(x**2)  # noqa: E731
    return iso.from_likelihood(log_likelihood, log_prior, Y, batch_size=batch_size, batching=batching, **options)


def variance(problem, sampler, **number):
    """The variance over the true one without the bias that the run claims, and the error of both."""
    settings = {"num_steps": 100_000, "burn_in": 2_000, "thinning": 20, "init": jnp.zeros(1), **number}
    found = iso.sample(problem, sampler, **settings).estimate(lambda x: x[0] ** 2 * (NUM_DATA + 1))
    return found.mean - found.bias, np.hypot(found.std_error, found.bias_error)


@pytest.mark.parametrize(
    ("batch_size", "batching", "options"),
    [
        (50, "independent", {}),
        (50, "replacement", {}),
        (50, "independent", {"is_batch_shared": False}),
    ],
)
def test_the_variance_of_the_batch_at_hand_keeps_the_law(batch_size, batching, options):
    problem = potential(batch_size, batching, **options)
    right = variance(problem, iso.resgld(STEP, temperatures=TEMPERATURES), num_ladders=32)
    assert abs(right[0] - 1.0) < PASS * right[1]
    if not options:
        tracked = iso.resgld(STEP, temperatures=TEMPERATURES, variance="tracked")
        wrong = variance(problem, tracked, num_ladders=32)
        assert wrong[0] - 1.0 > FAIL * wrong[1]


def test_a_short_last_batch_is_corrected_by_its_own_noise():
    """The last batch of an epoch holds 50 examples, whose noise has nine times the variance of the first one's."""
    problem = potential(150, "epochs")
    right, wrong = (
        variance(problem, iso.resgld(STEP, temperatures=TEMPERATURES, variance=name), num_ladders=32)
        for name in ("batch", "tracked")
    )
    # What is left is the memory of an epoch of two batches, which the summary names.
    assert abs(right[0] - 1.0) < 0.04
    assert wrong[0] - 1.0 > 0.08


def test_pairs_in_turn_read_the_noise_of_their_own_batches():
    schemes = {"scheme": iso.exchange.Adjacent(), "fresh_energies": True}
    sampler = iso.resgld(STEP, temperatures=(1.0, 1.5, 2.25), **schemes)
    found = variance(potential(50, "independent"), sampler, num_ladders=32)
    assert abs(found[0] - 1.0) < PASS * found[1]


def test_control_variates_have_residuals_of_their_own():
    sampler = iso.vr_resgld(STEP, temperatures=TEMPERATURES, refresh_every=10)
    found = variance(potential(50, "independent"), sampler, num_ladders=32)
    assert abs(found[0] - 1.0) < PASS * found[1]


@pytest.mark.parametrize(("variance", "number"), [(0.5, 10), (2.0, 20), (5.0, 40)])
def test_the_penalty_makes_up_for_the_scatter_of_an_estimated_variance(variance, number):
    """E exp(noise - penalty) is 1 for noise of that variance, which is estimated from as many normal examples."""
    rng = np.random.default_rng(1)
    noise = rng.standard_normal(2_000_000) * np.sqrt(variance)
    found = variance * rng.chisquare(number - 1, noise.size) / (number - 1)
    state = Corrected().init(1)._replace(variance=jnp.zeros(1))
    one, two = jnp.ones(1), 2.0 * jnp.ones(1)
    # At temperatures 1 and 2 the exponent is half of the difference of the energies, far below 0.
    low = -100.0
    pairs = Pairing(
        jnp.asarray(2.0 * (noise + low)), 0.0 * one, one, two, jnp.asarray(4.0 * found), jnp.asarray(number)
    )
    exponent = np.asarray(Corrected().log_acceptance(state, pairs, jnp.array(0)), np.float64) - low
    plain = noise - 0.5 * found
    right, naive = (np.exp(part) for part in (exponent, plain))
    error = np.std(right) / np.sqrt(right.size)
    assert abs(right.mean() - 1.0) < PASS * error + 0.01
    assert abs(naive.mean() - 1.0) > abs(right.mean() - 1.0)


@pytest.mark.parametrize("batching", ["independent", "replacement"])
def test_residuals_are_the_covariance_of_energies(batching):
    problem = potential(40, batching).on_device()
    x = jnp.array([[0.3], [-0.2]])

    def both(number):
        batch = problem.batch(jnp.zeros(2, jnp.uint32), number)
        found = [problem.evaluate(one, batch, (), ()) for one in x]
        return jnp.stack([f.energy for f in found]), jnp.stack([jnp.asarray(f.residuals) for f in found])

    energies, residuals = jax.vmap(both)(jnp.arange(20_000))
    expected = np.cov(np.asarray(energies, np.float64).T)
    found = np.mean(np.asarray(residuals @ jnp.swapaxes(residuals, 1, 2), np.float64), axis=0)
    # The covariance of 20,000 normal pairs is known to 1 %.
    np.testing.assert_allclose(found, expected, rtol=0.04)


def test_measured_batches_take_all_places_of_an_epoch():
    """The mean variance over the batches of an epoch, of which every hundredth iteration sees full ones alone."""
    problem = potential(150, "epochs")
    sampler = iso.resgld(STEP, temperatures=TEMPERATURES, variance="tracked", num_measured=40)
    run = iso.sample(problem, sampler, num_steps=20_000, num_ladders=8, init=jnp.zeros(1))
    of_size = lambda n: 1 / n - 1 / NUM_DATA  # noqa: E731
    full, short = of_size(150), of_size(50)
    # Energies are -N x ybar up to what both replicas share, so that the noise of a difference goes as (x_1 - x_2)^2.
    apart = (1.0 + 2.0) / (NUM_DATA + 1)
    expected = NUM_DATA**2 * apart * 0.5 * (full + short)
    assert np.mean(run.stats["variance_of_difference"]) == pytest.approx(expected, rel=0.15)
