"""What a swap and the next gradient lose by sharing a batch: a bias of the order of the step size, gone with fresh ones."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.estimators import Plain
from isotherm.exchange import Corrected, Exchange, Ladder

NUM_DATA, BATCH_SIZE, NOISE = 1_000, 10, 1.0
TEMPERATURES = (1.0, 4.0)


def potential():
    """x^2 / 2 + z x, where z is the mean of a batch: a location model whose energy noise has the variance NOISE^2 x^2."""
    data = np.random.default_rng(0).standard_normal(NUM_DATA)
    data = (data - data.mean()) / data.std() * NOISE * np.sqrt(BATCH_SIZE)
    log_likelihood = lambda x, z: -(0.5 * x**2 + x * z) / NUM_DATA  # noqa: E731
    options = {"batch_size": BATCH_SIZE, "batching": "replacement", "is_batch_shared": False}
    return iso.from_likelihood(log_likelihood, None, data.astype(np.float32), **options)


class Known(Plain):
    """Hands the known variance of the energy to the coupling in the place of the prior, or exact energies."""

    is_exact = False

    def evaluate(self, potential, state, position, model_state, batches, noises, probe=None):
        state, found = super().evaluate(potential, state, position, model_state, batches, noises, probe)
        if self.is_exact:
            return state, found._replace(energy=0.5 * position**2, prior_energy=jnp.zeros_like(position))
        return state, found._replace(prior_energy=NOISE**2 * position**2)


class Exact(Known):
    is_exact = True


class KnownVariance(Exchange):
    """The corrected rule with the exact variance of each energy: delta^2 (v_1 + v_2) / 2 is taken off the exponent."""

    def _decide_swaps(self, state, uniform, inputs, is_allowed):
        delta = 1 / TEMPERATURES[0] - 1 / TEMPERATURES[1]
        side = jnp.where(state.rung == 0, -1.0, 1.0)
        energies = inputs.energies + side * delta / 2 * inputs.prior_energies
        return super()._decide_swaps(state, uniform, inputs._replace(energies=energies), is_allowed)


def cold_variance(step_size, estimator):
    """Mean and standard error of x^2 on the cold rung."""
    coupling = KnownVariance(Ladder((step_size,) * 2, TEMPERATURES), rule=Corrected(None))
    sampler = dataclasses.replace(iso.sgld(step_size=step_size), estimator=estimator, coupling=coupling)
    settings = {"num_steps": 20_000, "num_runs": 60, "burn_in": 1_000, "thinning": 5, "init": jnp.zeros(())}
    squares = np.mean(np.asarray(iso.sample(potential(), sampler, **settings).draws)[:, 0] ** 2, axis=1)
    return squares.mean(), squares.std(ddof=1) / np.sqrt(len(squares))


def test_sharing_the_batch_costs_a_bias_of_the_order_of_the_step_size():
    found = {}
    for step_size in (0.1, 0.05):
        exact, exact_error = cold_variance(step_size, Exact())
        fresh, fresh_error = cold_variance(step_size, Known("fresh"))
        shared, shared_error = cold_variance(step_size, Known("shared"))
        assert abs(fresh - exact) < 4 * np.hypot(fresh_error, exact_error)
        assert shared - exact > 6 * np.hypot(shared_error, exact_error)
        found[step_size] = shared - exact
    assert found[0.1] / found[0.05] == pytest.approx(2.0, rel=0.35)
