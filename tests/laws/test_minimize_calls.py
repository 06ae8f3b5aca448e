"""What users pass to `minimize`: functions for NumPy and for JAX, arguments, callbacks, and what is refused."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import Bounds

import isotherm as iso

IS_OPTIMIZED = False

# Calls that type checkers would refuse.
minimize: Any = iso.minimize
LOWEST, VALUE = -1.3064400076, -0.7945823375615


def wave(x):
    return np.sin(x[0]) + 0.1 * x[0] ** 2


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
def test_functions_for_numpy_keep_their_digits(offset):
    """In single precision a value of 1e6 is rounded to steps of 0.06, and the lowest of these may be below the minimum."""
    found = minimize(lambda x: float(wave(np.asarray(x, float))) + offset, bounds=[(-5, 5)])
    assert found.num_agreeing == 2
    assert found.fun == wave(found.x) + offset
    assert found.fun - offset == pytest.approx(VALUE, abs=1e-9)
    assert found.x[0] == pytest.approx(LOWEST, abs=1e-4)


def test_a_target_below_the_minimum_is_not_reached():
    found = minimize(
        lambda x: float(wave(np.asarray(x, float))), bounds=[(-5, 5)], target=VALUE - 1e-8, max_evaluations=2e3
    )
    assert not found.success
    assert found.nfev <= 2_000


def test_functions_of_jax_that_it_cannot_differentiate_are_computed_in_double_precision():
    def branches(x):
        return jnp.sum((x - 0.3) ** 2) + (101.0 if x[0] > 0.5 else 100.0)

    found = minimize(branches, bounds=[(-1, 1)] * 2)
    np.testing.assert_allclose(found.x, 0.3, atol=1e-6)


def test_a_result_of_one_element_is_a_number():
    found = minimize(lambda x: jnp.sin(x) + 0.1 * x**2, bounds=[(-5, 5)])
    assert found.x[0] == pytest.approx(LOWEST, abs=1e-6)


def test_further_arguments():
    def shifted(x, center, level):
        return np.sum((x - center) ** 2) + level

    bounds: Any = Bounds
    box = bounds([-5] * 3, [5] * 3)
    found = minimize(shifted, bounds=box, args=(1.0, 2.0))
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)
    assert found.fun == pytest.approx(2.0)

    def noisy(x, center, key):
        return jnp.sum((x - center) ** 2) + 0.01 * jax.random.normal(key)

    found = minimize(noisy, bounds=[(-1, 1)] * 2, args=(0.3,), max_evaluations=2_000)
    np.testing.assert_allclose(found.x, 0.3, atol=0.02)


def test_a_callback_may_stop_as_in_scipy():
    def stop(_):
        raise StopIteration

    found = minimize(lambda x: jnp.sum(x**4), bounds=[(-1, 2)] * 2, callback=stop)
    assert "callback stopped" in found.message


def test_a_function_without_a_lowest_value_is_no_success():
    found = minimize(lambda x: jnp.log(jnp.abs(x[0])), x0=[0.0], bounds=[(-1, 1)])
    assert not found.success
    assert "not bounded below" in found.message


REFUSED = {
    "one pair": (lambda: minimize(wave, bounds=(-5, 5)), r"Write `bounds=\[\(low, high\)\]` for one coordinate"),
    "no ends": (lambda: minimize(wave, bounds=[(None, None)]), "leave `bounds` out, and give `x0`"),
    "a dict of bounds": (lambda: minimize(wave, bounds={"a": (0, 1)}), "`bounds` must be a .* pair of numbers"),
    "noise": (
        lambda: minimize(lambda x: np.sum(x**2) + np.random.default_rng().normal(), bounds=[(0, 1)] * 2),
        "gives the same value twice; got .* pass `noise=True`",
    ),
    "too few bounds": (
        lambda: minimize(lambda x: np.sum((np.asarray(x) - np.ones(5)) ** 2), bounds=[(0, 1)] * 4),
        r"`fun` must be a function of an array of shape \(4,\); got ValueError",
    ),
    "a key of another name": (lambda: minimize(lambda x, rng: x[0], bounds=[(0, 1)]), "key is named `key`"),
    "no bounds at all": (lambda: minimize(wave, bounds=[]), r"`bounds` must be \(low, high\) for every coordinate"),
    "bounds of text": (lambda: minimize(wave, bounds=[("0", "1")]), "`bounds` must be a .* pair of numbers"),
    "complex bounds": (lambda: minimize(wave, bounds=np.array([[0, 1j]])), "`bounds` must be a .* pair of numbers"),
    "bounds of NaN": (lambda: minimize(wave, bounds=[(np.nan, 1)]), "`bounds` must be .* finite, low below high"),
    "bounds too wide": (lambda: minimize(wave, bounds=[(-1e308, 1e308)]), "`bounds` must be .* Swap or widen|finite"),
    "triples": (lambda: minimize(wave, bounds=[(0, 1, 2)]), "`bounds` must be .* for every coordinate"),
    "ragged bounds": (lambda: minimize(wave, bounds=[(0, 1), (0,)]), "`bounds` must be a .* pair of numbers"),
    "a start of NaN": (lambda: minimize(wave, x0=[np.nan]), r"`x0` must be finite; got \[nan\]"),
    "an infinite start": (lambda: minimize(wave, x0=[np.inf]), "`x0` must be finite"),
    "a complex start": (lambda: minimize(wave, x0=np.array([1j])), "`x0` must be an array of numbers"),
    "an empty start": (lambda: minimize(wave, x0=[]), r"`x0` must be an array of numbers; got \[\]"),
    "a start of text": (lambda: minimize(wave, x0=["1"]), "`x0` must be an array of numbers"),
    "a ragged start": (lambda: minimize(wave, x0=[[1], [1, 2]]), "`x0` must be an array of numbers"),
    "a start of another length": (
        lambda: minimize(wave, x0=[0.0, 0.0], bounds=[(0, 1)]),
        "`x0` must be 1 numbers within the bounds",
    ),
    "a scale beside bounds": (
        lambda: minimize(wave, bounds=[(0, 1)], scale=0.1),
        "`scale` must be left out beside bounds; got 0.1",
    ),
    "scales": (lambda: minimize(wave, x0=[0.0], scale=[1.0, 2.0]), "`scale` must be a finite real number above 0"),
    "an argument alone": (
        lambda: minimize(wave, bounds=[(0, 1)], args=2.0),
        r"`args` must be a tuple .*args=\(value,\)",
    ),
    "how strong the noise is": (
        lambda: minimize(wave, bounds=[(0, 1)], noise=0.1),
        "`noise` must be True or False; got 0.1",
    ),
    "a callback of two": (
        lambda: minimize(wave, bounds=[(0, 1)], callback=lambda x, f: None),
        r"`callback` must be a function of one argument; got one of \(x, f\)",
    ),
    "a target of NaN": (
        lambda: minimize(wave, bounds=[(0, 1)], target=np.nan),
        "`target` must be a finite real number",
    ),
    "half an evaluation": (
        lambda: minimize(wave, bounds=[(0, 1)], max_evaluations=0.5),
        "`max_evaluations` must be an in",
    ),
    "half a searcher": (lambda: minimize(wave, bounds=[(0, 1)], num_agreeing=2.5), "`num_agreeing` must be an integer"),
    "a seed of text": (lambda: minimize(wave, bounds=[(0, 1)], seed="one"), "`seed` must be"),
    "a target in words": (
        lambda: minimize(wave, bounds=[(0, 1)], target="low"),
        "`target` must be a finite real number",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_calls_say_what_is_right(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_functions_of_numpy_are_called_in_double_precision_from_wherever():
    """Excursions call them from threads of their own, which do not know of the search's precision."""
    seen = []

    def fun(x):
        seen.append(np.asarray(x))
        return float(np.sum((x - 1) ** 2 + 5 * (1 - np.cos(3 * x))))

    found = [iso.minimize(fun, bounds=[(-8, 8)] * 4, max_evaluations=2_000, seed=2) for _ in range(3)]
    assert found[0].jumps["awsgld"]["number"] > 0
    assert all(np.array_equal(one.x, found[0].x) and one.fun == fun(one.x) for one in found)
    # Some points are corners of the box.
    assert np.mean([np.array_equal(x, x.astype(np.float32)) for x in seen]) < 0.01


@pytest.mark.parametrize("wrap", [lambda fun: fun, jax.jit], ids=["plain", "compiled by the user"])
def test_a_function_with_constants_of_numpy_is_as_it_was_after_a_search(wrap):
    center = np.array([1.0, 2.0])
    fun = wrap(lambda x: jnp.sum((x - center) ** 2 + 1.0 - jnp.cos(3.0 * (x - center))))
    before = float(fun(jnp.zeros(2)))
    found = iso.minimize(fun, bounds=[(-5, 5)] * 2, max_evaluations=1_000)
    assert found.jumps["awsgld"]["number"] > 0
    assert float(fun(jnp.zeros(2))) == before
    assert float(jax.jit(lambda x: fun(x))(found.x)) == pytest.approx(found.fun, abs=1e-6)
    assert iso.sample(fun, iso.sgld(0.01), num_steps=10, init=jnp.asarray(found.x, jnp.float32), progress=False)


@pytest.mark.parametrize("options", [{}, {"noise": True}])
def test_an_interrupted_search_gives_what_it_has_found(options):
    values = []

    def fun(x):
        if len(values) == 1_500:
            raise KeyboardInterrupt
        values.append(float(np.sum((x - 1) ** 2)))
        return values[-1]

    found = iso.minimize(fun, bounds=[(-8, 8)] * 2, max_evaluations=10_000, target=-1.0, **options)
    assert not found.success
    assert found.message.startswith("The search was interrupted.")
    assert found.fun < 0.01


def test_a_bound_is_met_exactly():
    """The upper one is not the lower one plus their difference."""
    found = iso.minimize(lambda x: -jnp.sum(x), bounds=[(-2.1, 0.3)] * 3, max_evaluations=300)
    assert np.array_equal(found.x, [0.3, 0.3, 0.3])


def test_an_option_of_another_library_is_told():
    with pytest.raises(ValueError, match=r"`maxiter` must be an option of `iso.minimize`.*mean `max_evaluations`"):
        minimize(lambda x: x @ x, bounds=[(-1, 1)], maxiter=10)
