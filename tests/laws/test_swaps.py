"""Swap rules against exact acceptances, and swap stages against the product law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from isotherm.coupling import CouplingInputs
from isotherm.exchange import (
    Adjacent,
    AllPairs,
    Corrected,
    DeterministicEvenOdd,
    Exchange,
    Ladder,
    StochasticEvenOdd,
    expected_swap_rate,
)
from isotherm.exchange.rules import CorrectedState, Pairing
from isotherm.foundation.randomness import uniforms

IS_OPTIMIZED = False

NUM_DRAWS = 10_000
TEMPERATURES = (1.0, 1.9, 3.5, 7.0)
RUNGS = len(TEMPERATURES)
MANY_DRAWS = 80_000  # For controls and their counterparts: a wrong rule must be caught without doubt.


def closed_form(mean, deviation, correction):
    """E min(1, exp(X)) for X normal with mean `mean` - `correction` and the given deviation, by quadrature."""
    grid = np.linspace(-10, 10, 20_001)
    exponent = np.minimum(0.0, mean - correction + deviation * grid)
    return np.trapezoid(np.exp(exponent) * stats.norm.pdf(grid), grid)


@pytest.mark.parametrize("factor", [0.5, 1.0, 4.0, np.inf])
@pytest.mark.parametrize("gap", [-3.0, 0.5, 2.0])
@pytest.mark.parametrize(("hot", "deviation"), [(1.7, 1.0), (10.0, 3.0)])
def test_acceptance_is_the_exact_value(factor, gap, hot, deviation):
    number = 40_000
    delta = 1.0 - 1.0 / hot
    noise = np.random.default_rng(0).standard_normal((2, number)) * deviation
    pairs = Pairing(jnp.asarray(gap + noise[0]), jnp.asarray(noise[1]), jnp.full(number, 1.0), jnp.full(number, hot))
    rule = Corrected(factor)
    state = CorrectedState(jnp.full(number, 2 * deviation**2), jnp.zeros(()), jnp.ones((), jnp.int32), jnp.zeros(()))
    uniform = uniforms(jnp.array([3, 4], jnp.uint32), jnp.arange(number), 1)[:, 0]
    rate = float(rule.accept(state, pairs, uniform, jnp.zeros(())).mean())
    spread = delta * deviation * np.sqrt(2)
    right = closed_form(delta * gap, spread, spread**2 / (2 * factor))
    error = max(np.sqrt(right * (1 - right) / number), 1e-4)
    assert abs(rate - right) < 4 * error
    if factor == 1.0:
        assert float(expected_swap_rate(delta * gap, spread)) == pytest.approx(right, abs=1e-4)
        wrong_sign = closed_form(-delta * gap, spread, spread**2 / 2)
        doubled = closed_form(delta * gap, spread, spread**2)
        for wrong in (wrong_sign, doubled):
            if abs(wrong - right) > 0.02:
                assert abs(rate - wrong) > 6 * error


def test_the_tables_contain_what_the_controls_need():
    assert abs(closed_form(0.5, 1.0, 0.5) - closed_form(-0.5, 1.0, 0.5)) > 0.02


def stage(exchange, noise_scale, num_iterations=1, knows_variance=True, num_draws=NUM_DRAWS):
    """Positions by rung after swaps that start from the product law, and how many pairs swapped. Positions stay frozen."""
    keys = jax.vmap(lambda k: jax.random.key_data(jax.random.key(k)))(jnp.arange(num_draws))
    position = jax.random.normal(jax.random.key(1), (num_draws, RUNGS)) * jnp.sqrt(jnp.asarray(TEMPERATURES))

    def one(x, key):
        state = exchange.init(RUNGS)
        if knows_variance and not exchange.rule.is_naive:
            rule = state.rule._replace(variance=jnp.full_like(state.rule.variance, 2 * noise_scale**2))
            state = state._replace(rule=rule)
        draws = exchange.draw(key, jnp.arange(num_iterations), RUNGS)
        noise = jax.random.normal(jax.random.wrap_key_data(key), (num_iterations, 1 + exchange.traits.num_fresh, RUNGS))

        def iteration(state, inputs):
            k, drawn, xi = inputs
            energies = 0.5 * x**2 + noise_scale * xi
            fresh = energies[1:] if exchange.traits.num_fresh else None
            alive = jnp.ones(RUNGS, bool)
            seen = CouplingInputs(energies[0], 0.0 * x, alive, jnp.ones(()), jnp.ones(()), k, fresh)
            state, _ = exchange.update(state, drawn, seen)
            return state, None

        state, _ = jax.lax.scan(iteration, state, (jnp.arange(num_iterations), draws, noise))
        return jnp.zeros(RUNGS).at[state.rung].set(x), state.counts[1].sum()

    moved, swaps = jax.jit(jax.vmap(one))(position, keys)
    return np.asarray(moved), int(swaps.sum())


def smallest_p_value(moved):
    """Kolmogorov-Smirnov over rungs, Bonferroni-corrected."""
    values = [stats.kstest(moved[:, r], stats.norm(scale=np.sqrt(t)).cdf).pvalue for r, t in enumerate(TEMPERATURES)]
    return min(values) * RUNGS


def ladder():
    return Ladder((0.1,) * RUNGS, TEMPERATURES)


SCHEMES = {
    "adjacent": Adjacent(),
    "all pairs": AllPairs(),
    "seo": StochasticEvenOdd(),
    "deo": DeterministicEvenOdd(1),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_exact_energies_leave_the_product_law(name):
    moved, swaps = stage(Exchange(ladder(), SCHEMES[name], Corrected(np.inf)), 0.0, 2)
    assert swaps > NUM_DRAWS // 4
    assert smallest_p_value(moved) > 0.01


@pytest.mark.parametrize("name", SCHEMES)
def test_noisy_energies_leave_it_with_the_corrected_rule(name):
    is_fresh = SCHEMES[name].is_sequential
    moved, swaps = stage(Exchange(ladder(), SCHEMES[name], Corrected(1.0), fresh_energies=is_fresh), 2.0)
    assert swaps > NUM_DRAWS // 20
    assert smallest_p_value(moved) > 0.01


def test_naive_swaps_under_noise_do_not():
    moved, _ = stage(Exchange(ladder(), DeterministicEvenOdd(1), Corrected(np.inf)), 2.0, num_draws=MANY_DRAWS)
    assert smallest_p_value(moved) < 1e-6


def test_adjacent_pairs_that_reuse_noisy_energies_do_not():
    moved, _ = stage(Exchange(ladder(), Adjacent(), Corrected(1.0)), 2.0, num_draws=MANY_DRAWS)
    assert smallest_p_value(moved) < 1e-6
    fresh = Exchange(ladder(), Adjacent(), Corrected(1.0), fresh_energies=True)
    assert smallest_p_value(stage(fresh, 2.0, num_draws=MANY_DRAWS)[0]) > 0.01


def test_a_whole_window_with_its_gate_does_not():
    moved, _ = stage(Exchange(ladder(), DeterministicEvenOdd(3), Corrected(np.inf)), 0.0, 3)
    assert smallest_p_value(moved) < 1e-6


def test_wrong_corrections_do_not():
    class Doubled(Corrected):
        """The variance of the difference where half of it belongs."""

        def log_acceptance(self, state, pairs, iteration):
            return super().log_acceptance(state._replace(variance=2 * state.variance), pairs, iteration)

    for rule, is_right in ((Doubled(1.0), False), (Corrected(1.0), True)):
        moved, _ = stage(Exchange(ladder(), StochasticEvenOdd(), rule), 2.0, 40, num_draws=MANY_DRAWS)
        assert (smallest_p_value(moved) > 0.01) == is_right
        assert is_right or smallest_p_value(moved) < 1e-6


def test_variance_is_tracked_and_nothing_swaps_before():
    exchange = Exchange(ladder(), DeterministicEvenOdd(1), Corrected(1.0))
    _, swaps = stage(exchange, 1.0, knows_variance=False)
    assert swaps == 0
    state = exchange.init(RUNGS)._replace(rung=jnp.array([2, 0, 1, 3]), replica=jnp.array([1, 2, 0, 3]))
    rng = np.random.default_rng(0)
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    measured, (work,) = [], exchange.periodic(is_exact=False)
    for _ in range(200):
        energies = jnp.asarray(rng.standard_normal((10, RUNGS)) * scale)
        seen = CouplingInputs(energies, 0 * energies, jnp.ones(RUNGS, bool), jnp.ones(()), jnp.ones(()), jnp.zeros(()))
        state = work.apply(state, lambda number, seen=seen: seen)
        measured.append(np.var(np.diff(np.asarray(energies)[:, [1, 2, 0, 3]], axis=1), axis=0, ddof=1))
    np.testing.assert_allclose(state.rule.variance, np.mean(measured, axis=0), rtol=1e-4)
    np.testing.assert_allclose(state.rule.variance, [4 + 9, 9 + 1, 1 + 16], rtol=0.15)
