"""Global minimization: known minima, stops, regions without values, and refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm_thesis.functions import rastrigin, ten_functions

IS_OPTIMIZED = False


@pytest.mark.parametrize("function", ten_functions(), ids=lambda function: function.name)
def test_the_ten_functions_are_zero_at_their_minimizers_and_nowhere_below(function):
    assert abs(float(function.function(function.minimizer))) < 2e-5
    low, high = function.domain
    points = jax.random.uniform(jax.random.key(0), (1_000, function.dimension), minval=low, maxval=high)
    assert float(jnp.min(jax.vmap(function.function)(points))) > 0


def test_a_function_with_many_wells():
    found = iso.minimize(rastrigin, bounds=[(-2.56, 5.12)] * 3, max_evaluations=60_000)
    assert found.fun < 1e-4
    np.testing.assert_allclose(found.x, 0.0, atol=1e-3)
    assert not found.success
    assert found.message.startswith(
        "2 searchers with independent starts found the same lowest value. That is evidence, not"
    )
    # 1 - 0.05^(1/2)
    assert "2 searchers miss a minimum that 78 % of them reach in one search of 20. Pass the value" in found.message
    assert found.num_searchers == found.num_agreeing == 2
    # A descent alone, from the same number of starts, ends in other wells.
    assert float(rastrigin(jnp.array([1.0, 1.0, 1.0]))) > 2.9


def hidden(x):
    """Wells 1 deep all over the box, and a narrow one of 2.5."""
    places = jnp.array([[-3.0, -3.0], [-2.5, 3.0], [3.0, -2.0], [2.5, 2.5], [0.0, 0.5]])
    distances = jnp.sum((x - places) ** 2, axis=1)
    deepest = 2.5 * jnp.exp(-jnp.sum((x - 4.6) ** 2) / (2 * 0.05**2))
    return -jnp.sum(jnp.exp(-distances / 2)) - deepest


def test_searchers_that_agree_on_the_wrong_well_are_no_success():
    """All of them miss the deepest well: agreement is no success, however many they are."""
    for seed, num_agreeing in ((0, 2), (1, 5)):
        found = iso.minimize(hidden, bounds=[(-5.0, 5.0)] * 2, num_agreeing=num_agreeing, seed=seed)
        assert found.fun > -1.1
        assert float(hidden(jnp.array([4.6, 4.6]))) < -2.4
        assert found.num_agreeing == num_agreeing
        assert not found.success
    known = iso.minimize(hidden, bounds=[(-5.0, 5.0)] * 2, x0=[4.55, 4.62], target=-2.4)
    assert known.success
    assert known.message == "The target was reached."


@pytest.mark.parametrize("unit", [1e-12, 1e6])
def test_a_search_does_not_depend_on_the_unit_of_values(unit):
    """Wells that differ by less than 1e-6 are not the same value."""
    plain, scaled = (
        iso.minimize(lambda x, factor=factor: factor * rastrigin(x), bounds=[(-2.56, 5.12)] * 3, max_evaluations=60_000)
        for factor in (1.0, unit)
    )
    assert scaled.num_agreeing == plain.num_agreeing == 2
    np.testing.assert_allclose(scaled.x, plain.x, atol=1e-4)
    assert scaled.fun / unit < 1e-4


def test_stops():
    reached = iso.minimize(rastrigin, bounds=[(-2.56, 5.12)] * 4, target=10.0)
    assert reached.success
    assert reached.fun <= 10.0
    assert reached.message == "The target was reached."
    spent = iso.minimize(rastrigin, bounds=[(-2.56, 5.12)] * 10, target=-1.0, max_evaluations=5_000)
    assert not spent.success
    assert spent.message == "The budget of evaluations is spent. The target was not reached. Raise `max_evaluations`."
    assert 4_900 <= spent.nfev <= 5_000
    seen = []
    stopped = iso.minimize(
        rastrigin, bounds=[(-2.56, 5.12)] * 10, callback=lambda best: seen.append(best.fun) or len(seen) == 2
    )
    assert len(seen) == 2
    assert not stopped.success
    assert stopped.message.startswith("The callback stopped the search.")
    assert stopped.fun <= min(seen) + 1e-9
    tired = iso.minimize(rastrigin, bounds=[(-2.56, 5.12)] * 10, target=-1.0, patience=1_000)
    assert not tired.success
    assert tired.message.startswith("No better point was found in 1000 evaluations.")


def test_regions_without_values():
    """A logarithm that is not defined on half of the domain, and a minimum near its edge."""

    def function(x):
        return jnp.sum((x - 0.1) ** 2) - jnp.log(x[0]) * 0.01

    found = iso.minimize(function, bounds=[(-3.0, 3.0)] * 2, max_evaluations=30_000)
    assert np.isfinite(found.fun)
    # Where the derivative 2 (x - 0.1) - 0.01 / x is zero.
    assert found.x[0] == pytest.approx(0.05 + np.sqrt(0.05**2 + 0.005), abs=2e-3)
    assert found.x[1] == pytest.approx(0.1, abs=2e-3)


def test_a_start_without_bounds_and_the_same_result_for_the_same_seed():
    first, second = (
        iso.minimize(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(2), max_evaluations=10_000, seed=1) for _ in range(2)
    )
    np.testing.assert_allclose(first.x, 3.0, atol=1e-3)
    np.testing.assert_array_equal(first.x, second.x)
    assert first.nfev == second.nfev


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`x0` must be given if there are no bounds"),
        ({"bounds": [(1.0, 0.0)]}, "`bounds` must be"),
        ({"bounds": [(0.0, np.inf)]}, "`bounds` must be"),
        ({"bounds": [(0.0, 1.0)], "x0": [2.0]}, "`x0` must be 1 numbers within the bounds"),
        ({"x0": [0.0], "scale": 0.0}, "`scale` must be"),
        ({"x0": [0.0], "max_evaluations": 0}, "`max_evaluations` must be"),
        ({"x0": [0.0], "patience": 0}, "`patience` must be"),
        ({"x0": [0.0], "num_agreeing": 1}, "`num_agreeing` must be an integer of at least 2"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        iso.minimize(lambda x: jnp.sum(x**2), **arguments)


def test_something_that_is_no_function_is_refused():
    with pytest.raises(ValueError, match="`fun` must be a function of an array"):
        iso.minimize(3.0, bounds=[(0.0, 1.0)])  # pyright: ignore[reportArgumentType]


def test_a_function_that_is_finite_nowhere_is_refused():
    with pytest.raises(ValueError, match="`fun` must be finite somewhere"):
        iso.minimize(lambda x: jnp.sum(x) * jnp.nan, bounds=[(0.0, 1.0)])


@pytest.mark.parametrize("budget", [1, 2, 30, 250, 3_000])
def test_the_value_is_that_of_the_point_and_the_budget_counts_everything(budget):
    def steps(x):
        return jnp.sum(jnp.floor(jnp.abs(x)) ** 2)

    found = iso.minimize(steps, x0=(3.0, 3.0), bounds=[(-5.0, 5.0)] * 2, max_evaluations=budget, seed=3)
    assert found.fun == float(steps(jnp.asarray(found.x)))
    assert found.nfev <= budget
    smooth = iso.minimize(rastrigin, bounds=[(-2.56, 5.12)] * 3, max_evaluations=budget)
    with jax.enable_x64(True):
        assert smooth.fun == float(rastrigin(jnp.asarray(smooth.x)))
    assert smooth.nfev <= budget


def test_a_good_start_is_kept_and_not_paid_for_with_the_best_of_the_others():
    """The given start is worse than some random ones, and no descent leads anywhere: the best of all must come back."""

    def steps(x):
        return jnp.sum(jnp.floor(4 * jnp.abs(x)) ** 2)

    found = iso.minimize(steps, x0=(3.0, 3.0), bounds=[(-5.0, 5.0)] * 2, max_evaluations=170)
    assert found.fun < float(steps(jnp.array([3.0, 3.0])))
    alone = iso.minimize(steps, x0=(0.01, 0.01), bounds=[(-5.0, 5.0)] * 2, max_evaluations=170)
    assert alone.fun == 0.0
