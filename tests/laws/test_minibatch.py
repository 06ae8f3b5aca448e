"""The mini-batch posterior of a conjugate Gaussian model: exact mean and variance at a finite step."""

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from tests.statistics import FAIL, PASS, assert_law, z_score
from tests.targets import langevin_variance

NUM_DATA, BATCH = 50, 7
SPREAD, PRIOR_MEAN, PRIOR_SPREAD = 2.0, -1.0, 0.5
DATA = np.random.default_rng(3).normal(1.5, SPREAD, NUM_DATA).astype(np.float32)
PRECISION = NUM_DATA / SPREAD**2 + 1 / PRIOR_SPREAD**2
MEAN = (DATA.sum() / SPREAD**2 + PRIOR_MEAN / PRIOR_SPREAD**2) / PRECISION


def log_likelihood(position, examples):
    return -0.5 * ((examples - position[0]) / SPREAD) ** 2


def log_prior(position):
    return -0.5 * jnp.sum(((position - PRIOR_MEAN) / PRIOR_SPREAD) ** 2)


def draws(step_size, temperature, num_steps=4_000, **options):
    potential = iso.from_likelihood(log_likelihood, log_prior, DATA, batch_size=BATCH, **options)
    run = iso.sample(
        potential,
        iso.sgld(step_size=step_size, temperature=temperature),
        num_steps=num_steps,
        num_runs=96,
        num_chains=1,
        burn_in=300,
        init=jnp.full(1, MEAN),
    )
    return run.draws.reshape(96, -1)


@pytest.mark.parametrize("batching", ["independent", "replacement"])
def test_variance_holds_the_noise_of_batches(batching):
    step_size, temperature = 0.02, 0.7
    found = draws(step_size, temperature, batching=batching)
    finite = 1.0 if batching == "replacement" else (1 - BATCH / NUM_DATA) * NUM_DATA / (NUM_DATA - 1)
    noise = NUM_DATA**2 / BATCH * DATA.var() * finite / SPREAD**4
    truth = langevin_variance(step_size, PRECISION, temperature, noise)
    assert_law(((found - MEAN) ** 2).mean(axis=1), truth, wrong=langevin_variance(step_size, PRECISION, temperature))


@pytest.mark.parametrize("batching", ["epochs", "independent", "replacement"])
def test_mean_is_that_of_the_posterior_and_the_prior_is_not_scaled(batching):
    found = draws(0.02, 0.7, batching=batching)
    scaled = NUM_DATA / BATCH / PRIOR_SPREAD**2
    wrong = (DATA.sum() / SPREAD**2 + PRIOR_MEAN * scaled) / (NUM_DATA / SPREAD**2 + scaled)
    unscaled = DATA.sum() / SPREAD**2 * BATCH / NUM_DATA + PRIOR_MEAN / PRIOR_SPREAD**2
    unscaled /= BATCH / SPREAD**2 + 1 / PRIOR_SPREAD**2
    estimates = found.mean(axis=1)
    assert abs(z_score(estimates, MEAN)) < PASS
    assert abs(z_score(estimates, wrong)) > FAIL
    assert abs(z_score(estimates, unscaled)) > FAIL


def test_chains_with_their_own_batches_are_independent_and_shared_ones_are_not():
    correlations = []
    for is_shared in (True, False):
        potential = iso.from_likelihood(
            log_likelihood, log_prior, DATA, batch_size=BATCH, batching="replacement", is_batch_shared=is_shared
        )
        sampler = iso.sgld(step_size=0.05, temperature=0.01)
        run = iso.sample(potential, sampler, num_steps=4_000, num_chains=2, burn_in=100, init=jnp.full(1, MEAN))
        correlations.append(np.corrcoef(run.draws[0, :, 0], run.draws[1, :, 0])[0, 1])
    assert correlations[0] > 0.9
    assert abs(correlations[1]) < 0.15
