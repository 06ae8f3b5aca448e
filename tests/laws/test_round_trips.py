"""The index process: closed forms for swaps that always succeed, and expected round trips for Bernoulli rejections."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from isotherm.exchange import (
    Adjacent,
    DeterministicEvenOdd,
    StochasticEvenOdd,
    expected_round_trip,
    optimal_window,
)
from isotherm_thesis.experiments import round_trips


def travel(scheme, num_rungs, rejection, num_iterations, seed=0):
    """The state of a ladder after many iterations of Bernoulli swaps, and the rungs on the way."""
    key = jax.random.key_data(jax.random.key(seed))
    state, rungs, _ = jax.jit(lambda key: round_trips.travel(scheme, num_rungs, rejection, num_iterations, key))(key)
    return state, np.asarray(rungs)


@pytest.mark.parametrize("num_rungs", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("window", [1, 3])
def test_always_accepting_swaps_give_the_closed_form(num_rungs, window):
    num_iterations = 1_000
    state, _ = travel(DeterministicEvenOdd(window), num_rungs, 0.0, num_iterations)
    # Every replica circles through 2 P places: place f is rung f on the way up and rung 2 P - 1 - f on the way down. Even rungs
    # climb first, because pair 0 is active first. A trip ends at place 2 P - 1; the first arrival is one for replica 0 alone.
    num_windows, circle = -(-num_iterations // window), 2 * num_rungs
    for start in range(num_rungs):
        place = start if start % 2 == 0 else circle - 1 - start
        arrivals = (num_windows - (circle - 1 - place)) // circle + 1
        assert int(state.trips.num_strict[start]) == arrivals - (start > 0)


ROWS = [(16, 0.6, 1), (16, 0.6, 4), (16, 0.6, 7), (16, 0.6, 8), (16, 0.6, 12), (8, 0.8, 5), (5, 0.5, 2)]


@pytest.mark.parametrize(("num_rungs", "rejection", "window"), ROWS)
def test_trips_take_as_long_as_expected(num_rungs, rejection, window):
    num_iterations = 400_000
    state, _ = travel(DeterministicEvenOdd(window), num_rungs, rejection, num_iterations)
    rate = float(state.trips.num_strict.sum()) / num_iterations
    assert rate == pytest.approx(num_rungs / expected_round_trip(num_rungs, rejection, window), rel=0.03)


def test_other_gates_are_far_slower():
    class OneForAll(DeterministicEvenOdd):
        """An accepted swap of any pair closes every gate."""

        def is_active(self, num_rungs, iteration, uniform):
            return super().is_active(num_rungs, iteration, uniform) & (
                jnp.arange(num_rungs - 1) == iteration % (num_rungs - 1)
            )

    class Printed(DeterministicEvenOdd):
        """The gate as printed: one attempt per window."""

        def is_active(self, num_rungs, iteration, uniform):
            return super().is_active(num_rungs, iteration, uniform) & (iteration % 8 == 0)

    class Ungated(DeterministicEvenOdd):
        """As many swaps in a window as are accepted."""

        def opens_gates(self, num_rungs, iteration):
            return jnp.ones((), bool)

    num_iterations = 200_000
    right = float(travel(DeterministicEvenOdd(8), 16, 0.6, num_iterations)[0].trips.num_strict.sum())
    for wrong, most in ((OneForAll(8), 0.2), (Printed(8), 0.08), (Ungated(8), 0.12)):
        assert float(travel(wrong, 16, 0.6, num_iterations)[0].trips.num_strict.sum()) < most * right


def test_stochastic_pairs_diffuse():
    for rejection in (0.0, 0.6):
        state, _ = travel(StochasticEvenOdd(), 8, rejection, 400_000)
        rate = float(state.trips.num_strict.sum()) / 400_000
        assert rate == pytest.approx(8 / expected_round_trip(8, rejection, scheme="seo"), rel=0.05)


def test_counters_agree_with_a_slow_count():
    state, rungs = travel(DeterministicEvenOdd(2), 5, 0.3, 5_000, seed=2)
    rungs = np.concatenate([rungs, np.asarray(state.rung)[None]])
    for replica in range(5):
        path, phase, strict, ends, thesis = rungs[:, replica], 0, 0, set(), 0
        for place in path:
            if place == 0:
                strict += phase == 2
                phase = 1
            elif place == 4 and phase == 1:
                phase = 2
            if place in (0, 4):
                ends.add(int(place))
            if len(ends) == 2 and place == path[0]:
                thesis, ends = thesis + 1, set()
        assert int(state.trips.num_strict[replica]) == strict
        assert int(state.trips.num_thesis[replica]) == thesis


def test_windows():
    assert optimal_window(16, 0.6) == 7
    assert optimal_window(16, 0.6, "formula") == 8
    assert optimal_window(10, 0.995) == 604
    assert optimal_window(10, 0.995, "formula") == 626
    assert (optimal_window(4, 0.6), optimal_window(4, 0.6, "formula")) == (2, 4)
    assert optimal_window(2, 0.9) == optimal_window(3, 0.9, "formula") == 1
    for num_rungs, rejection in ((5, 0.7), (12, 0.3), (20, 0.9)):
        best = optimal_window(num_rungs, rejection)
        times = [expected_round_trip(num_rungs, rejection, w) for w in range(1, 4 * best + 10)]
        assert np.argmin(times) + 1 == best


def test_ladder_of_adjacent_pairs_bubbles():
    state, _ = travel(Adjacent(), 4, 0.0, 12)
    # Always accepting, a sweep carries the bottom replica to the top and shifts the others down.
    assert sorted(np.asarray(state.rung).tolist()) == [0, 1, 2, 3]
    assert int(state.counts[1].sum()) == 36
