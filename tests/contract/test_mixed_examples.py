"""Log likelihoods that mix the examples of a batch are refused: their mini-batch energies are biased."""

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso

rng = np.random.default_rng(0)
INPUTS = rng.normal(2.0, 1.0, (60, 3)).astype(np.float32)
TARGETS = (INPUTS @ np.ones(3)).astype(np.float32)


def centered(theta, examples):
    inputs, targets = examples
    return -0.5 * (targets - (inputs - inputs.mean(axis=0)) @ theta) ** 2


def scaled_by_the_largest(theta, examples):
    inputs, targets = examples
    return -0.5 * ((targets - inputs @ theta) / jnp.max(jnp.abs(targets))) ** 2


def apart(theta, examples):
    inputs, targets = examples
    return -0.5 * (targets - inputs @ theta) ** 2


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2)


def sampled(log_likelihood, batch_size, step=1e-4, **changes):
    potential = iso.from_likelihood(
        log_likelihood, log_prior=log_prior, data=(INPUTS, TARGETS), batch_size=batch_size, **changes
    )
    return iso.sample(potential, iso.sgld(step), num_steps=10, init=jnp.zeros(3), progress=False)


@pytest.mark.parametrize("mixing", [centered, scaled_by_the_largest], ids=lambda f: f.__name__)
@pytest.mark.parametrize("batching", ["epochs", "independent"])
def test_they_are_refused_on_batches(mixing, batching):
    rule = r"`log_likelihood` must be .* does not depend on the other examples of its batch; got one that mixes them. Compute"
    with pytest.raises(ValueError, match=rule):
        sampled(mixing, 20, batching=batching)


def test_noise_added_to_energies_hides_nothing():
    potential = iso.from_likelihood(centered, log_prior=log_prior, data=(INPUTS, TARGETS), batch_size=20)
    with pytest.raises(ValueError, match="mixes them"):
        iso.sample(iso.with_noise(potential, energy_scale=5.0), iso.sgld(1e-4), num_steps=10, init=jnp.zeros(3))


def test_all_data_may_be_mixed():
    assert len(sampled(centered, None).draws[0]) == 10


def test_examples_that_differ_are_not_mixed():
    assert len(sampled(apart, 20).draws[0]) == 10


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e-4])
def test_rounding_is_no_mixing(scale):
    def in_other_units(theta, examples):
        return scale * apart(theta, examples) - 1e3 * scale

    assert len(sampled(in_other_units, 20, step=1e-4 / scale).draws[0]) == 10
