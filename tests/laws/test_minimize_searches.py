"""What a global search does: honest success, functions of every kind, the parts that it is made of."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import Bounds

import isotherm as iso
from isotherm.minimization.descent import Minimum
from isotherm.minimization.jumps import NUM_STEPS, Exploration, lowest_of_cubics
from isotherm.minimization.noisy import NoisySearcher
from isotherm.minimization.objective import Objective
from isotherm.minimization.searcher import agreement, verdict
from isotherm.minimization.space import space_of
from isotherm_thesis.functions import rastrigin, zakharov

IS_OPTIMIZED = False
CENTER = np.array([1.3, -2.1, 0.4, 2.7, -0.9])


def moved(x):
    """Rastrigin's function with its minimum, 0, off the center of the box."""
    return rastrigin(x - CENTER)


def test_a_budget_that_lets_no_two_searchers_agree_is_no_success():
    found = iso.minimize(moved, bounds=[(-5.12, 5.12)] * 5, max_evaluations=400)
    assert not found.success
    assert "only one searcher" in found.message
    assert "Raise `max_evaluations`" in found.message


def test_searchers_that_disagree_are_no_success():
    assert agreement([2.0, 1.0, 1.5], 1e-6) == 1
    assert agreement([1.0 + 1e-7, 1.0, 1.5], 1e-6) == 2
    assert verdict("The budget of evaluations is spent.", False, 0, 3)[0] is False
    assert verdict("The budget of evaluations is spent.", False, 2, 3) == (
        False,
        "The budget of evaluations is spent. 2 of 3 searchers found the same lowest value. Raise `max_evaluations`.",
    )
    # Agreement does not make up for a target that was missed.
    assert verdict("The budget of evaluations is spent.", True, 2, 3)[0] is False


def test_a_rotated_function():
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    found = iso.minimize(lambda x: rastrigin(rotation @ (x - CENTER[:4])), bounds=[(-5.12, 5.12)] * 4, target=1e-3)
    assert found.success
    np.testing.assert_allclose(found.x, CENTER[:4], atol=1e-2)


def test_a_descent_does_not_end_early_where_values_span_many_orders():
    """Zakharov's function of fifty coordinates: 1e15 at the start, and a single descent to its minimum."""
    center = np.random.default_rng(2).uniform(-4.0, 6.0, 50)
    found = iso.minimize(lambda x: zakharov(x - center), bounds=[(-5.0, 10.0)] * 50, target=1e-3, max_evaluations=120)
    assert found.success, found.message


def test_a_function_for_numpy_counts_every_call():
    calls = []

    def function(x):
        assert isinstance(x, np.ndarray)
        calls.append(1)
        return float(np.sum((x - 0.3) ** 2) + np.sin(5.0 * float(x[0])))

    box: Any = ([-2.0, -2.0], [2.0, 2.0])
    found = iso.minimize(function, bounds=Bounds(*box), max_evaluations=3_000, seed=2)
    assert found.nfev == len(calls) <= 3_000
    grid = np.linspace(-2.0, 2.0, 100_001)
    assert found.fun == pytest.approx(float(np.min((grid - 0.3) ** 2 + np.sin(5.0 * grid))), abs=1e-6)
    assert found.fun == function(found.x)


def test_bounds_of_scipy_with_single_numbers_and_a_minimum_at_a_bound():
    found = iso.minimize(lambda x: jnp.sum(x**2), x0=[2.0, 3.0], bounds=Bounds(1.0, 4.0), max_evaluations=5_000)
    np.testing.assert_array_equal(found.x, [1.0, 1.0])
    assert found.fun == 2.0


def test_positions_keep_their_shape():
    found = iso.minimize(lambda x: jnp.sum((x - 1.0) ** 2), np.zeros((2, 3)), target=1e-6)
    assert found.x.shape == (2, 3)


def test_awsgld_runs_moves_and_learns():
    objective = Objective(moved, space_of(None, [(-5.12, 5.12)] * 5, 1.0), -np.inf, 1_000)
    start = Minimum(np.full(5, 0.5), objective.value_and_gradient(np.full(5, 0.5))[0], 0.0)
    exploration, before = Exploration(objective, 0), objective.num_evaluations
    first = exploration.explore(start)
    assert objective.num_evaluations - before == NUM_STEPS + 1
    second = exploration.explore(start)
    assert np.all((second >= 0) & (second <= 1))
    assert np.max(np.abs(first - start.z)) > 0.01
    assert np.max(np.abs(second - first)) > 0.01
    # Energies that were met before are left faster: the multiplier of gradients grows.
    assert float(np.max(exploration.state.chains.coupling.extremes)) > 1.2
    found = iso.minimize(moved, bounds=[(-5.12, 5.12)] * 5, target=-1.0, max_evaluations=8_000)
    row = found.jumps["awsgld"]
    assert row["number"] >= 5
    assert row["evaluations"] > 0.03 * found.nfev
    assert sum(kind["evaluations"] for kind in found.jumps.values()) <= found.nfev
    assert found.num_descents > 100


def test_the_lowest_point_of_cubics():
    def cubic(t):
        return t**3 - 2.0 * t**2 - t

    nodes = np.array([0.0, 1.0, 3.0])
    place, value = lowest_of_cubics(nodes, cubic(nodes), 3 * nodes**2 - 4 * nodes - 1, 0.0)
    lowest = (4 + np.sqrt(28)) / 6
    assert place == pytest.approx(lowest)
    assert value == pytest.approx(cubic(lowest))


def test_a_loss_on_mini_batches():
    """Two wells whose depths differ by half a standard deviation of the noise."""
    shifts = jnp.asarray(np.random.default_rng(0).normal(size=500))

    def full(x):
        return (x[0] ** 2 - 1.0) ** 2 + 0.5 * x[0] + (x[1] - 0.5) ** 2

    def loss(x, key):
        batch = shifts[jax.random.randint(key, (4,), 0, 500)]
        return full(x) + 4.0 * jnp.mean(batch) + 0.3 * x[1] * jnp.mean(batch)

    found = iso.minimize(loss, bounds=[(-2.0, 2.0)] * 2, max_evaluations=10_000)
    offset = float(jnp.mean(shifts))
    assert found.x[0] == pytest.approx(-1.057, abs=0.03)
    assert found.x[1] == pytest.approx(0.5 - 0.15 * offset, abs=0.05)
    true = float(full(jnp.asarray(found.x))) + (4.0 + 0.3 * found.x[1]) * offset
    assert abs(found.fun - true) < 4 * found.fun_std_error
    assert 0 < found.fun_std_error < 0.2
    assert found.nfev <= 10_000


def test_searchers_of_noisy_functions_agree_as_many_as_asked(monkeypatch):
    """One well, which all find: the number asked for is what ends the search."""
    monkeypatch.setattr(NoisySearcher, "stall", (2, 0))

    def noisy(x, key):
        return jnp.sum((x - 0.4) ** 2) + 0.01 * jax.random.normal(key)

    options: Any = {"bounds": [(-1.0, 1.0)], "max_evaluations": 200_000}
    for number in (2, 3):
        found = iso.minimize(noisy, num_agreeing=number, **options)
        assert found.num_agreeing == number
        assert found.num_searchers >= number
        assert found.nfev < 200_000
        assert found.message.startswith(f"{number} searchers with independent starts")
        assert not found.success


def test_noise_without_a_key():
    rng = np.random.default_rng(5)

    def function(x):
        return float(np.sum((x - 0.4) ** 2)) + 0.01 * rng.normal()

    found = iso.minimize(function, bounds=[(-1.0, 1.0)] * 2, noise=True, target=0.05, max_evaluations=20_000)
    assert found.success
    assert found.message == "The target was reached."
    np.testing.assert_allclose(found.x, 0.4, atol=0.25)
    never = iso.minimize(function, bounds=[(-1.0, 1.0)] * 2, noise=True, target=-1.0, max_evaluations=2_000)
    assert not never.success
    assert never.nfev <= 2_000
    for budget in (1, 2, 7, 60):
        assert iso.minimize(function, bounds=[(-1.0, 1.0)] * 2, noise=True, max_evaluations=budget).nfev <= budget
