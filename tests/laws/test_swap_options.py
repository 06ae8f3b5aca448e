"""Options of exchange: exact windows, cooling, intensity, and what they do to F and to a gate's bias."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.coupling import CouplingInputs
from isotherm.exchange import Adjacent, Corrected, DeterministicEvenOdd, Exchange, Ladder
from isotherm.exchange.rules import Pairing
from isotherm.foundation.schedules import Following
from isotherm_thesis.targets import resgld_mixtures


def swaps(num_rungs, num_iterations, gap, scheme=None, rule=None, **options):
    """The state after iterations in which the replica on each rung is `gap` lower in energy than the one below."""
    ladder = Ladder((0.1,) * num_rungs, tuple(float(t) for t in range(1, num_rungs + 1)))
    exchange = Exchange(ladder, scheme or DeterministicEvenOdd(1), rule or Corrected(np.inf), **options)

    @jax.jit
    def go(key):
        draws = exchange.draw(key, jnp.arange(num_iterations), num_rungs)
        alive, one = jnp.ones(num_rungs, bool), jnp.ones(())

        def iterate(state, inputs):
            k, drawn = inputs
            energies = -gap * state.rung.astype(float)
            return exchange.update(state, drawn, CouplingInputs(energies, 0 * energies, alive, one, one, k))[0], None

        return jax.lax.scan(iterate, exchange.init(num_rungs), (jnp.arange(num_iterations), draws))[0]

    return go(jax.random.key_data(jax.random.key(0)))


def test_exact_windows_swap_every_active_pair_once():
    state = swaps(4, 120, -3.0, DeterministicEvenOdd(5, is_exact=True))
    # 24 windows; pairs 0 and 2 are active in every other one, pair 1 in the rest.
    assert state.counts[1].tolist() == [12, 12, 12]
    loose = swaps(4, 120, -3.0, DeterministicEvenOdd(5))
    assert int(loose.counts[1].sum()) < 36


def test_a_pair_rests_after_a_swap():
    # Pair 0 may swap at even iterations and accepts; after a swap it rests for 5, so that it swaps every sixth time.
    state = swaps(2, 60, 1.0, cooling=5)
    assert state.counts[1].tolist() == [10]
    assert swaps(2, 60, 1.0).counts[1].tolist() == [30]
    # A pair that is tried in every iteration rests for exactly as many.
    assert swaps(2, 60, 1.0, Adjacent(), cooling=4).counts[1].tolist() == [12]


def test_intensity_is_the_probability_of_trying():
    number = 40_000
    state = swaps(2, number, 1.0, intensity=0.25)
    expected = number / 2 * 0.25
    assert abs(int(state.counts[1][0]) - expected) < 5 * np.sqrt(expected)


def test_a_swap_multiplies_the_factor():
    rule = Corrected(1.0, jump=0.8)
    ladder = Ladder((0.1, 0.1), (1.0, 2.0))
    exchange = Exchange(ladder, DeterministicEvenOdd(1), rule)
    state = exchange.init(2)
    state = state._replace(rule=state.rule._replace(variance=jnp.zeros(1)))
    energies, one = jnp.array([5.0, 0.0]), jnp.ones(())
    state, _ = exchange.update(
        state, jnp.zeros(3), CouplingInputs(energies, 0 * energies, jnp.ones(2, bool), one, one, jnp.array(0))
    )
    assert float(state.rule.log_factor) == pytest.approx(np.log(0.8))
    pairs = Pairing(*(jnp.ones(1) * value for value in (1.0, 1.0, 1.0, 2.0)))
    noisy = state.rule._replace(variance=jnp.array([4.0]))
    # delta = 1/2, variance 4, F = 0.8: the exponent is -(1/4) 4 / 1.6.
    assert float(rule.log_acceptance(noisy, pairs, jnp.array(0))[0]) == pytest.approx(-1.0 / 1.6)


def test_the_factor_follows_the_temperature():
    rule = Corrected(Following(2.0, lambda k: 0.5**k))
    state = rule.init(1)._replace(variance=jnp.array([4.0]))
    pairs = Pairing(*(jnp.ones(1) * value for value in (1.0, 1.0, 1.0, 2.0)))
    found = [float(rule.log_acceptance(state, pairs, jnp.array(k))[0]) for k in (0, 1, 3)]
    assert found == pytest.approx([-0.25, -0.125, -0.03125])


def test_a_gate_biases_and_its_correction_helps():
    target = resgld_mixtures()[1]

    def mass(window, correction):
        ladder, rule = Ladder((0.01, 0.01), (1.0, 10.0)), Corrected(np.inf, gate_log_correction=correction)
        sampler = iso.Sampler(
            iso.sgld(0.01).kernel, 0.01, 1.0, coupling=Exchange(ladder, DeterministicEvenOdd(window), rule)
        )
        run = iso.sample(
            target.potential, sampler, num_steps=100_000, num_runs=100, thinning=10, burn_in=2_000, init=target.init
        )
        x = np.asarray(run.draws)[:, 0, :, 0]
        edges = np.linspace(-7.0, 5.0, 61)
        seen = np.histogram(x, edges)[0] / x.size
        truth = np.histogram(np.asarray(target.truth.points)[:, 0], edges, weights=target.truth.probabilities)[0]
        return np.abs(seen - truth).sum()

    plain, biased, corrected = mass(1, 0.0), mass(10, 0.0), mass(10, 1.7)
    assert biased > 3 * plain
    assert corrected < 0.5 * biased
