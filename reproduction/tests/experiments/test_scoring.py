"""Exact draws score zero, whatever the experiment; and a method that does nothing is seen to do nothing."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.demo.result import Row, masses_in_box, write_result
from isotherm.exchange import DeterministicEvenOdd, expected_round_trip
from isotherm.foundation.errors import DivergenceError
from isotherm.run.estimates import mode_masses
from isotherm.targets import modes25
from isotherm_thesis.experiments import energy_cdf, modes25_icsgld, round_trips, ten_functions
from isotherm_thesis.experiments.scoring import choose_setting, coupling_rows, differences, shape_variation
from isotherm_thesis.targets import modes9

NUMBER = 160_000


def exact_draws(target, reach: float, number: int = NUMBER) -> np.ndarray:
    """Draws of exp(-U) in [-reach, reach]^2."""
    rng, side = np.random.default_rng(0), np.linspace(-reach, reach, 1_401)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    energies = np.asarray(jax.vmap(target.energy)(jnp.asarray(points, jnp.float32)), np.float64)
    masses = np.exp(energies.min() - energies)
    chosen = points[rng.choice(len(points), number, p=masses / masses.sum())]
    return chosen + (side[1] - side[0]) * (rng.random(chosen.shape) - 0.5)


@pytest.mark.parametrize(("target", "reach"), [(modes25(), 7.0), (modes25(), 2.5), (modes9(), 2.5)])
def test_exact_draws_have_the_right_masses(target, reach):
    draws = exact_draws(target, reach)[None]
    variation = target.total_variation(masses_in_box(draws, np.zeros(draws.shape[:2]), target))
    # Twice the mean absolute deviation of a multinomial.
    assert variation < np.sum(np.sqrt(2 / np.pi * target.mode_masses / draws.shape[1]))


def test_strays_in_the_nearest_cell_would_be_seen():
    target = modes25()
    draws = exact_draws(target, 7.0)[None]
    assert target.total_variation(mode_masses(target.modes, draws, np.zeros(draws.shape[:2]))) > 0.09


def test_exact_draws_have_no_divergence():
    target = modes25()
    truth, draws = modes25_icsgld.true_points(target, 4_000), exact_draws(target, 2.5, 1_000)
    assert abs(modes25_icsgld.divergence(truth, draws)) < 0.12
    # Draws that are there several times are farther from the truth than they seem.
    assert modes25_icsgld.divergence(truth, np.repeat(draws[:200], 5, axis=0)) > 0.3
    assert modes25_icsgld.divergence(truth, 0.8 * draws) > 0.3


def test_a_contour_that_does_nothing_is_seen_to_do_nothing():
    settings = {"num_steps": 200, "num_runs": 2, "init": jnp.zeros(2)}
    still = iso.sample(modes25().potential, iso.csgld(1e-3, partition=(-3.0, 5.0, 20), zeta=0.0), **settings)
    assert {row.metric: row.ours for row in coupling_rows("still", still)} == {
        "multiplier, lowest": 1.0,
        "multiplier, highest": 1.0,
    }
    moving = iso.sample(modes25().potential, iso.csgld(1e-3, partition=(-3.0, 5.0, 20), gain=0.1), **settings)
    rows = {row.metric: row.ours for row in coupling_rows("moving", moving)}
    assert rows["multiplier, highest"] > rows["multiplier, lowest"] + 0.1
    assert coupling_rows("plain", iso.sample(modes25().potential, iso.sgld(1e-3), **settings)) == []


def test_differences_are_paired():
    rows = [Row.of_runs("a", "error", [1.0, 2.0, 6.0]), Row.of_runs("b", "error", [0.9, 1.9, 5.9])]
    (found,) = differences(rows, "error", [("a", "b"), ("a", "c")])
    assert found.method == "a - b"
    assert found.ours == pytest.approx(0.1)
    assert found.std_error == pytest.approx(0.0, abs=1e-9)


def parabola(best: float):
    """Scores that are lowest at `best`, for an attempt that hands settings through."""
    return lambda settings: {one: one for one in settings}, lambda one: [np.log(one / best) ** 2, np.log(one / best)]


def test_the_best_setting_is_the_one_of_the_lowest_mean():
    scores = {1.0: [3.0, 4.0], 2.0: [1.0, 5.0], 4.0: [0.0, 7.0]}
    found = choose_setting((1.0, 2.0, 4.0), lambda settings: {one: scores[one] for one in settings}, lambda each: each)
    assert found == (2.0, scores)


@pytest.mark.parametrize("best", [0.06, 0.5, 31.0])
def test_a_best_at_an_edge_extends_the_grid(best):
    attempt, score = parabola(best)
    found = choose_setting((1.0, 2.0, 4.0), attempt, lambda one: score(one)[:1])
    assert min(found.scores) < found.best < max(found.scores)
    assert abs(np.log(found.best / best)) <= 0.5 * np.log(2.0)
    assert [row.method for row in found.rows("A", "error")] == [f"A ({one:g})" for one in sorted(found.scores)]


def test_runs_without_a_score_lose():
    def score(one):
        return [one**-1.0 if one < 10 else np.nan]

    assert choose_setting((1.0, 2.0, 4.0), parabola(1.0)[0], score).best == 8.0


def test_a_grid_without_a_best_is_refused():
    attempt = parabola(1.0)[0]
    with pytest.raises(ValueError, match="whose best is inside once it is extended; got 2030 of 1 to 2030"):
        choose_setting((1.0, 2.0, 4.0), attempt, lambda one: [1 / one])
    with pytest.raises(ValueError, match="three positive numbers or more"):
        choose_setting((1.0, 2.0), attempt, lambda one: [one])


def test_the_record_holds_what_every_run_gave(tmp_path):
    rows = [Row.of_runs("a", "error", [1.0, 2.0, 6.0]), Row.of_runs("b", "error", [1.0])]
    write_result(tmp_path / "result.json", "e", "full", rows, {}, seed=0, seconds=1.0)
    first, second = json.loads((tmp_path / "result.json").read_text())["rows"]
    assert first["values"] == [1.0, 2.0, 6.0]
    assert "values" not in second


def test_a_run_that_does_not_arrive_counts_as_the_limit():
    config = ten_functions.Config(num_steps=100_000)
    time, share = ten_functions.rows_of_hits("a", np.array([2_000, -1]), config, None)
    assert (time.ours, share.ours) == (51.0, 0.5)


def test_the_fixed_point_of_awsgld_is_the_distribution_function_for_zeta_one_alone():
    truth = np.cumsum([0.2, 0.3, 0.4, 0.1])
    assert energy_cdf._distance(truth, 1.0) == pytest.approx(0.0, abs=1e-9)
    theta = [0.0]
    for mass in np.diff(truth, prepend=0.0):
        theta.append((theta[-1] + np.sqrt(theta[-1] ** 2 + 4 * mass)) / 2)
    expected = np.max(np.abs((np.array(theta[1:]) / theta[-1]) ** 2 - truth))
    assert expected > 0.05
    assert energy_cdf._distance(truth, 2.0) == pytest.approx(expected, abs=1e-6)


def test_round_trips_are_those_of_the_formula():
    """Many rungs in a short run: the first trips, which begin in the middle, would make a visible share."""
    config = round_trips.Config(num_iterations=4_000, burn_in=2_000, num_runs=40)
    times = round_trips.simulate_trips(DeterministicEvenOdd(), 16, 0.6, config, seed=0)
    error = times.std(ddof=1) / np.sqrt(len(times))
    assert abs(times.mean() - expected_round_trip(16, 0.6, 1)) < 4 * error + 0.02 * times.mean()


def test_masses_do_not_see_modes_that_are_too_wide_and_shapes_do():
    target, rng = modes25(), np.random.default_rng(0)
    exact = target.truth.points[rng.choice(len(target.truth.points), (1, 20_000), p=target.truth.probabilities)]
    wide = exact + rng.normal(size=exact.shape) * 0.2
    even = np.zeros(exact.shape[:2])
    assert shape_variation(exact, even, target) < 0.04
    assert shape_variation(wide, even, target) > 0.25
    assert target.total_variation(masses_in_box(wide, even, target)) < 0.04


def test_a_setting_that_diverges_loses():
    def attempt(settings):
        if max(settings) > 4:
            raise DivergenceError("gone")
        return {one: [1 / one] for one in settings}

    found = choose_setting((1.0, 2.0, 4.0), attempt, lambda each: each)
    assert found.best == 4.0
    assert found.scores[8.0] == [math.inf]
    assert [row.method for row in found.rows("SGLD", "error")] == ["SGLD (1)", "SGLD (2)", "SGLD (4)"]
