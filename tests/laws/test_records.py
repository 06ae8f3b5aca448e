"""Draw, energy and weight of a record belong to the same point, and couplings fit the driver as it is."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import isotherm as iso
from isotherm.coupling import Coupling, Observed, Traits
from isotherm.foundation.randomness import uniforms
from isotherm.kernels import SGHMC, SGLD, Move
from isotherm.samplers.sampler import Sampler
from isotherm.targets.target import GaussianEnergy
from tests.statistics import FAIL, PASS, assert_law, z_score
from tests.targets import langevin_variance

IS_OPTIMIZED = False

ENERGY = GaussianEnergy((2.0, 0.5), (1.0, -3.0))


class Tempered(Coupling):
    """A throw-away contour: multiplier c everywhere, so the chain samples exp(-c U), and log weights (c - 1) U undo it."""

    multiplier = 0.6

    def init(self, num_chains):
        return jnp.zeros(num_chains)

    def update(self, state, random_numbers, inputs):
        everyone = jnp.ones_like(inputs.energies)
        scaled = self.multiplier * everyone
        move = Move(inputs.step_size * everyone, inputs.temperature * everyone, scaled, everyone)
        return inputs.energies / inputs.temperature, move

    def log_weights(self, state):
        return (self.multiplier - 1.0) * state


class Ladder(NamedTuple):
    rung: Array
    num_swaps: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Swaps(Coupling):
    """A throw-away exchange of two rungs: rungs move, states stay, the cold rung is recorded."""

    temperatures: tuple[float, float] = (1.0, 5.0)

    def init(self, num_chains):
        return Ladder(jnp.arange(num_chains), jnp.zeros((), jnp.int32))

    def draw(self, key, iterations, num_chains):
        return uniforms(key, iterations, 1)[:, 0]

    def update(self, state, random_numbers, inputs):
        cold = jnp.argmin(state.rung)
        inverse = 1.0 / jnp.asarray(self.temperatures)
        exponent = (inverse[0] - inverse[1]) * (inputs.energies[cold] - inputs.energies[1 - cold])
        is_swapped = jnp.log(random_numbers) < exponent
        rung = jnp.where(is_swapped, 1 - state.rung, state.rung)
        temperature = jnp.asarray(self.temperatures)[rung]
        scale = jnp.sqrt(temperature / jnp.asarray(self.temperatures)[state.rung])
        everyone = jnp.ones_like(temperature)
        move = Move(inputs.step_size * everyone, temperature, everyone, scale)
        return Ladder(rung, state.num_swaps + is_swapped), move

    @property
    def traits(self):
        return Traits(num_chains=2)

    def observe(self, state):
        return Observed({"rung": state.rung}, jnp.argmin(state.rung)[None])

    def statistics(self, state):
        return {"num_swaps": state.num_swaps}


@pytest.mark.parametrize("size", [2, 20_000])
def test_energy_and_weight_belong_to_the_draw(size):
    # The large position takes the path that writes records straight from the state.
    precision = jnp.linspace(0.5, 2.0, size)
    energy = lambda x: 0.5 * jnp.sum(precision * x**2)  # noqa: E731
    sampler = Sampler(SGLD(), 0.05, 1.7, coupling=Tempered())
    run = iso.sample(energy, sampler, num_steps=41, num_chains=3, burn_in=4, thinning=4, init=jnp.ones(size))
    expected = np.asarray(jax.vmap(jax.vmap(energy))(run.draws))
    np.testing.assert_allclose(run.energies, expected, rtol=1e-5)
    np.testing.assert_allclose(run.log_weights, -0.4 * expected / 1.7, rtol=1e-5)
    assert run.iterations.tolist() == list(range(4, 41, 4))

    every = iso.sample(energy, sampler, num_steps=41, num_chains=3, init=jnp.ones(size))
    at_every = np.asarray(jax.vmap(jax.vmap(energy))(every.draws))
    np.testing.assert_array_equal(run.draws, every.draws[:, 4::4])
    shifted = np.abs(every.energies[:, :-1] - at_every[:, 1:])
    assert np.all(shifted.max(axis=1) > 1e-3)


def test_first_record_is_the_start():
    run = iso.sample(ENERGY, iso.sgld(step_size=0.1), num_steps=3, init=jnp.array([4.0, 5.0]))
    assert run.draws[0, 0].tolist() == [4.0, 5.0]


def test_weights_of_a_contour_give_back_the_law():
    step_size = 0.2
    run = iso.sample(
        ENERGY,
        Sampler(SGLD(), step_size, coupling=Tempered()),
        num_steps=6_000,
        num_runs=128,
        burn_in=200,
        init=jnp.array([1.0, -3.0]),
    )
    square = np.asarray(run.draws)[..., 0] ** 2 - 2 * np.asarray(run.draws)[..., 0] + 1
    weights = np.exp(run.log_weights)
    # exp(-0.6 U) at a finite step, times exp(-0.4 U): a normal law of known precision.
    tempered = langevin_variance(step_size, 0.6 * 2.0, 1.0)
    truth = 1.0 / (1.0 / tempered + 0.4 * 2.0)
    estimates = (square * weights).sum(axis=(1, 2)) / weights.sum(axis=(1, 2))
    assert_law(estimates, truth, wrong=tempered)
    shifted = (square[..., 1:] * weights[..., :-1]).sum(axis=(1, 2)) / weights[..., :-1].sum(axis=(1, 2))
    assert abs(z_score(shifted, truth)) > FAIL


@pytest.mark.parametrize("kernel", [SGLD(), SGHMC(friction=0.3)])
def test_an_exchange_coupling_needs_nothing_from_the_driver(kernel):
    sampler = Sampler(kernel, 0.05, coupling=Swaps())
    settings: dict[str, Any] = {"num_steps": 20_000, "num_runs": 64, "num_chains": 2, "burn_in": 500, "thinning": 5}
    run = iso.sample(ENERGY, sampler, num_ladders=1, init=jnp.array([1.0, -3.0]), **settings)
    assert run.draws.shape == (64, 1, 3_900, 2)
    assert run.observed["rung"].shape == (64, 1, 3_900, 2)
    assert np.all(np.sort(run.observed["rung"], axis=-1) == np.array([0, 1]))
    rates = run.stats["num_swaps"] / 20_000
    assert np.all((rates > 0.3) & (rates < 0.9))
    estimates = ((run.draws[..., 0] - 1.0) ** 2).mean(axis=(1, 2))
    assert abs(z_score(estimates, 0.5)) < 3 * PASS  # Of O(step size); the next line is the control.
    assert abs(estimates.mean() / 0.5 - 1) < 0.04
    hot = iso.sample(ENERGY, Sampler(kernel, 0.05, 5.0), init=jnp.array([1.0, -3.0]), **settings)
    assert abs(((hot.draws[..., 0] - 1.0) ** 2).mean() / 0.5 - 1) > 1.0


def test_recorded_draws_are_those_of_the_cold_rung():
    sampler = Sampler(SGLD(), 0.05, coupling=Swaps((1.0, 50.0)))
    run = iso.sample(ENERGY, sampler, num_steps=200, num_chains=2, init=jnp.array([1.0, -3.0]))
    both = np.asarray(jax.vmap(ENERGY)(run.draws[0]))
    np.testing.assert_allclose(run.energies[0], both, rtol=1e-4, atol=1e-5)
