"""Schedules, and collection windows exact to the iteration."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import isotherm as iso
from isotherm.foundation.schedules import Annealed, CollectionWindow, CyclicalCosine, CyclicalTemperature

IS_OPTIMIZED = False


@pytest.mark.parametrize(
    ("cycle_length", "sampling_from", "burn_in", "thinning"),
    [(10, "0.7", 0, 1), (20, "0.95", 0, 1), (37, "0.85", 5, 3), (200, "0.95", 0, 4), (7, "0", 3, 2), (30, "0.9", 0, 1)],
)
def test_collected_iterations_are_exactly_those_of_the_definition(cycle_length, sampling_from, burn_in, thinning):
    sampler = iso.cycsgld(step_size=0.1, cycle_length=cycle_length, sampling_from=float(sampling_from))
    run = iso.sample(
        lambda x: jnp.sum(x**2), sampler, num_steps=500, burn_in=burn_in, thinning=thinning, init=jnp.ones(1)
    )
    threshold = Fraction(sampling_from)
    expected = [k for k in range(burn_in, 500, thinning) if Fraction(k % cycle_length, cycle_length) >= threshold]
    assert run.iterations.tolist() == expected
    every = iso.sample(lambda x: jnp.sum(x**2), sampler_without_window(sampler), num_steps=500, init=jnp.ones(1))
    np.testing.assert_array_equal(run.draws[0], every.draws[0, expected])


def sampler_without_window(sampler):
    return iso.Sampler(sampler.kernel, sampler.step_size, sampler.temperature)


def test_noise_is_injected_in_the_window_and_nowhere_else():
    # Cycles of 10 that sample from 7 on: from a minimum nothing moves before iteration 7.
    sampler = iso.cycsgld(step_size=0.1, cycle_length=10, sampling_from=0.7)
    run = iso.sample(lambda x: 0.5 * jnp.sum(x**2), sampler_without_window(sampler), num_steps=20, init=jnp.zeros(1))
    moved = np.diff(run.draws[0, :, 0]) != 0
    assert not moved[:7].any()
    assert moved[7:10].all()


def test_values_of_schedules():
    cosine = CyclicalCosine(0.4, 8)
    assert [float(cosine(k)) for k in (0, 4, 8)] == pytest.approx([0.4, 0.2, 0.4])
    held = CyclicalCosine(0.6, 200, hold_from=0.95)
    assert float(held(190)) == float(held(199)) == pytest.approx(0.3 * (np.cos(np.pi * 0.95) + 1), rel=1e-5)
    heat = CyclicalTemperature(2.0, 10, 0.7)
    assert [float(heat(k)) for k in (6, 7, 16, 17)] == [0.0, 2.0, 0.0, 2.0]
    annealed = Annealed(0.01, 1.02, every=196, stop_at=196 * 2)
    values = [float(annealed(k)) for k in (0, 195, 196, 10**6)]
    assert values == pytest.approx([0.01, 0.01, 0.01 / 1.02, 0.01 / 1.02**2])
    assert np.flatnonzero(CollectionWindow(4, 0.5).holds(np.arange(8))).tolist() == [2, 3, 6, 7]


def test_any_optax_schedule_serves():
    schedule = optax.exponential_decay(0.1, transition_steps=100, decay_rate=0.5)
    run = iso.sample(lambda x: jnp.sum(x**2), iso.sgd(step_size=schedule), num_steps=50, init=jnp.ones(1))
    expected = 1.0
    for k in range(49):
        expected -= 0.1 * 0.5 ** (k / 100) * 2 * expected
    assert run.draws[0, -1, 0] == pytest.approx(expected, rel=1e-4)
    assert jax.eval_shape(schedule, 0).shape == ()
