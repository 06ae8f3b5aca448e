"""The fewest effective draws of a run."""

from typing import Any

import numpy as np
import scipy.signal

from isotherm.diagnostics.precision import fewest_effective, is_look, next_look

RNG = np.random.default_rng(0)
FLAT = np.zeros((4, 4_000))


def independent(*shape):
    return RNG.normal(size=shape)


def slowly(rho=0.98):
    """An autoregression, in which each draw counts for (1 - rho) / (1 + rho)."""
    filtered: Any = scipy.signal.lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], independent(4, 5_000), axis=1)
    return filtered[:, 1_000:]


def test_independent_draws_all_count():
    found = fewest_effective(independent(4, 4_000, 3), independent(4, 4_000), FLAT, 1_000)
    assert 0.6 * FLAT.size < found < 1.4 * FLAT.size


def test_the_slowest_coordinate_counts():
    draws = np.concatenate([independent(4, 4_000, 2), slowly()[..., None]], axis=-1)
    assert 80 < fewest_effective(draws, independent(4, 4_000), FLAT, 1_000) < 320


def test_the_energy_counts():
    assert 80 < fewest_effective(independent(4, 4_000, 2), slowly(), FLAT, 1_000) < 320


def test_masses_of_wells_count_that_coordinates_hide():
    # Three wells on a line: the outer ones change sides in every draw, and the middle one is visited for long.
    middle = np.repeat(RNG.random((4, 40)) < 0.3, 100, axis=1)
    sides = 30.0 * np.sign(independent(4, 4_000))
    line = np.where(middle, 0.0, sides) + 0.1 * independent(4, 4_000)
    coordinate_alone = fewest_effective(independent(4, 4_000, 1), independent(4, 4_000), FLAT, 1_000)
    assert fewest_effective(line[..., None], independent(4, 4_000), FLAT, 1_000) < 0.1 * coordinate_alone


def test_chains_that_stay_apart_have_none():
    draws = independent(4, 4_000, 1) + 50.0 * np.arange(4)[:, None, None]
    assert fewest_effective(draws, independent(4, 4_000), FLAT, 1_000) == 0.0


def test_constants_are_left_out():
    draws = np.concatenate([independent(4, 4_000, 1), np.ones((4, 4_000, 1))], axis=-1)
    assert fewest_effective(draws, independent(4, 4_000), FLAT, 1_000) > 1_000


def test_looks_grow_by_a_factor():
    counts = [number for number in range(2_000) if is_look(number)]
    assert counts[:4] == [128, 179, 250, 350]
    assert all(is_look(next_look(number)) for number in range(0, 2_000, 7))
