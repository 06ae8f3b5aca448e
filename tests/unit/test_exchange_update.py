"""One update of an exchange against values by hand: momenta of swapped replicas, gains, forced swaps, and rare uniforms."""

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.coupling import CouplingInputs
from isotherm.exchange import (
    Corrected,
    Deterministic,
    DeterministicEvenOdd,
    EquiAcceptance,
    Exchange,
    Ladder,
    expected_swap_rate,
)
from isotherm.exchange.rules import Pairing


def update(exchange, energies, iteration=0, uniform=0.5, state=None, temperature=None):
    """The state and the moves after one update; the scheduled values are those of rung 0."""
    energies, one = jnp.asarray(energies, jnp.float32), jnp.ones(())
    state = exchange.init(len(energies)) if state is None else state
    first = exchange.ladder.temperatures[0] if temperature is None else temperature
    draws = jnp.full(len(exchange._pairs) + 2, uniform)
    step = exchange.ladder.step_sizes[0]
    readings = CouplingInputs(
        energies, 0 * energies, jnp.isfinite(energies), step * one, first * one, jnp.asarray(iteration)
    )
    return exchange.update(state, draws, readings)


def test_a_swap_scales_momenta_to_the_new_rung():
    """sqrt(step' T' / (step T)) for those who move, 1 for who stays."""
    ladder = Ladder((0.1, 0.3, 0.2), (2.0, 5.0, 11.0))
    exchange = Exchange(ladder, DeterministicEvenOdd(), Corrected(np.inf))
    state, move = update(exchange, [50.0, 0.0, 0.0])  # The pair (0, 1) is active, and certain to swap.
    np.testing.assert_array_equal(state.rung, [1, 0, 2])
    up = np.sqrt(0.3 * 5.0 / (0.1 * 2.0))
    np.testing.assert_allclose(move.momentum_scale, [up, 1 / up, 1.0], rtol=1e-6)
    np.testing.assert_allclose(move.step_size, [0.3, 0.1, 0.2], rtol=1e-6)
    np.testing.assert_allclose(move.temperature, [5.0, 2.0, 11.0], rtol=1e-6)
    _, stays = update(exchange, [0.0, 50.0, 50.0])
    np.testing.assert_array_equal(stays.momentum_scale, 1.0)


def test_a_replica_that_meets_a_rung_without_noise_starts_from_rest():
    exchange = Exchange(Ladder((0.1, 0.3), (1.0, 0.0)), DeterministicEvenOdd(), Deterministic())
    state, move = update(exchange, [5.0, 0.0])
    np.testing.assert_array_equal(state.rung, [1, 0])
    np.testing.assert_array_equal(move.momentum_scale, 0.0)


def test_gains_of_the_buffer_and_of_the_ladder():
    gain, target = 0.2, 0.4
    ladder = Ladder((0.1, 0.3, 0.4, 0.9), (1.0, 0.0, 0.0, 0.0))
    rule = Deterministic(0.5, target, gain, buffer_gain=0.3)
    exchange = Exchange(ladder, DeterministicEvenOdd(), rule, EquiAcceptance(gain))
    state, _ = update(exchange, [3.0, 2.0, 2.4, 2.2])  # Pair (0, 1) accepts with the buffer, the others do not.
    assert float(state.rule.buffer) == pytest.approx(0.5 + 0.3 * 0.2 * (1 / 3 - 0.4), rel=1e-6)
    z = np.array([0.1, 0.3, 0.4, 0.9])
    accepted = np.array([1.0, 0.0, 0.0])
    grown = np.diff(z) * np.exp(gain * accepted)
    np.testing.assert_allclose(np.diff(state.step_ratios * 0.1), 0.8 * grown / grown.sum(), rtol=1e-5)


def test_rungs_keep_their_order_and_their_ends_at_any_gain():
    """A gap 1,000 times as narrow as its neighbors, which alone accept: with the thesis' recursion it turns round at once."""
    values, accepted = jnp.array([1.0, 2.0, 2.001, 3.0]), jnp.array([1.0, 0.0, 1.0])
    for gain in (0.01, 0.5, 5.0):
        moved = np.asarray(EquiAcceptance(gain).move(values, accepted, jnp.array(0)))
        assert np.all(np.diff(moved) > 0)
        np.testing.assert_array_equal(moved[[0, -1]], [1.0, 3.0])
    reach = np.diff(values) * np.exp(0.01 * (np.asarray(accepted) - 0.4))
    thesis = 0.5 * (values[:-2] + reach[:-1] + values[2:] - reach[1:])
    assert thesis[0] > thesis[1]


@pytest.mark.parametrize("window", [2, 5])
def test_an_exact_window_swaps_at_its_last_iteration(window):
    """Energies that never accept: nothing until W - 1 iterations have passed, one swap at the next."""
    exchange = Exchange(Ladder((0.1, 0.2), (1.0, 2.0)), DeterministicEvenOdd(window, is_exact=True), Corrected(np.inf))
    state = None
    counts = []
    for k in range(window):
        state, _ = update(exchange, [0.0, 1e6], iteration=k, state=state)
        counts.append(int(state.counts[1, 0]))
    assert counts == [0] * (window - 1) + [1]


def test_a_forced_swap_leaves_diverged_replicas_where_they_are():
    exchange = Exchange(Ladder((0.1, 0.2), (1.0, 2.0)), DeterministicEvenOdd(1, is_exact=True), Corrected(np.inf))
    for energies in ([0.0, np.nan], [np.inf, 0.0]):
        state, _ = update(exchange, energies)
        np.testing.assert_array_equal(state.rung, [0, 1])
    state, _ = update(exchange, [0.0, 1e6])
    np.testing.assert_array_equal(state.rung, [1, 0])


def test_the_smallest_uniform_accepts_what_is_certain_and_nothing_else():
    rule = Corrected(np.inf)
    state = rule.init(1)
    for uniform in (0.0, 1 - 2.0**-24):
        pairs = [Pairing(*jnp.asarray([[u], [0.0], [1.0], [2.0]])) for u in (-2e4, 2e4)]
        never, always = (bool(rule.accept(state, pair, jnp.array([uniform]), jnp.array(0))[0]) for pair in pairs)
        assert always
        assert not never


def test_expected_swap_rates_of_extreme_arguments():
    assert float(expected_swap_rate(100.0, 1.0)) == pytest.approx(1.0)
    assert float(expected_swap_rate(-100.0, 1.0)) == pytest.approx(0.0, abs=1e-30)
    assert float(expected_swap_rate(2.0, 0.0)) == 1.0
    assert float(expected_swap_rate(-2.0, 0.0)) == pytest.approx(np.exp(-2.0))
    assert float(expected_swap_rate(2.0, 3.0)) == pytest.approx(0.3141258, abs=1e-5)  # By quadrature.


def test_cyclical_variance_follows_new_measurements():
    coupling = iso.cvr_resghmc(0.1, cycle_length=100).coupling
    assert isinstance(coupling, Exchange)
    assert isinstance(coupling.rule, Corrected)
    assert coupling.rule.smoothing == 0.3
