"""Parts that start late do nothing before, and what they are made of after."""

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.estimators import ControlVariate, Plain
from isotherm.estimators.estimator import Refreshed
from isotherm.exchange import DeterministicEvenOdd, Exchange, Ladder
from isotherm.samplers.sampler import Sampler
from isotherm_thesis.experiments.images.variants import (
    LateControlVariate,
    LateDeterministic,
    PooledExchange,
    control_variate_from,
)

DATA = jnp.asarray(np.random.default_rng(0).normal(size=40))
POTENTIAL = iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, lambda m: -0.5 * m**2, DATA, batch_size=8)


def energy_of(estimator, state, x):
    batch = POTENTIAL.batch(jnp.zeros(2, jnp.uint32), jnp.asarray(3))
    return float(estimator.evaluate(POTENTIAL, state, x, (), (batch,), ((),))[1].energy)


def test_a_late_control_variate_is_plain_until_its_second_refresh():
    late, usual = LateControlVariate(4, start=8), ControlVariate(4)
    here, anchor = jnp.asarray(0.7), jnp.asarray(0.5)
    seen = Refreshed(anchor, (), POTENTIAL.full_energy(anchor), lambda number: None)
    (work,), (other,) = late.periodic(), usual.periodic()
    state, expected = (part.init(POTENTIAL, anchor, ()) for part in (late, usual))
    plain = energy_of(Plain(), (), here)
    assert energy_of(late, state, here) == plain
    state = work.apply(POTENTIAL, state, seen)
    assert energy_of(late, state, here) == plain
    state, expected = work.apply(POTENTIAL, state, seen), other.apply(POTENTIAL, expected, seen)
    assert energy_of(late, state, here) == energy_of(usual, expected, here) != plain
    due = [k for k in range(20) if k % int(work.period(jnp.asarray(k))) == 0]
    assert due == [0, 8, 12, 16]


def test_a_late_control_variate_starts_at_a_multiple_of_its_period():
    assert isinstance(control_variate_from(1, 4, False), ControlVariate)
    found = control_variate_from(18, 4, True)
    assert isinstance(found, LateControlVariate)
    assert (found.start, found.is_adaptive) == (16, True)
    with pytest.raises(ValueError, match="`start` must be a multiple of `refresh_every`, 4"):
        LateControlVariate(4, start=6)


def swapped(kind, start):
    ladder = Ladder((0.01, 0.01, 0.01), (0.1, 1.0, 10.0))
    coupling = kind(ladder, DeterministicEvenOdd(), LateDeterministic(0.0, start=start))
    sampler = Sampler(iso.kernels.SGHMC(), 0.01, 0.1, coupling=coupling, name="some")
    return iso.sample(POTENTIAL, sampler, num_steps=200, num_ladders=1, init=jnp.asarray(0.0), progress=False)


def test_swaps_start_late():
    run = swapped(Exchange, 120)
    rungs = np.asarray(run.observed["rung"]).reshape(200, 3)
    assert np.all(rungs[:121] == np.arange(3))
    assert np.sum(run.stats["num_swaps"]) > 5


def test_draws_of_all_rungs_are_pooled():
    assert swapped(Exchange, 0).energies.shape == (1, 200)
    assert swapped(PooledExchange, 0).energies.shape == (3, 200)
