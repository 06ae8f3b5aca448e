"""Scores of experiments: shapes of modes, couplings, paired differences, and settings chosen on separate seeds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from isotherm.demo.result import Row, log_weights_in_box, variations_of
from isotherm.foundation.errors import DivergenceError, refuse, short
from isotherm.foundation.nearest import nearest_centers
from isotherm.run import Run
from isotherm.run.estimates import normalized_weights
from isotherm.targets import Target

# Offset from the reported seeds to those for the choice of settings.
TUNING_OFFSET = 1_000_003
SHAPE = "shape variation"
# Maximum number of points added to a grid of settings.
_MAX_EXTENSIONS = 8
Attempt = Callable[[Sequence[float]], Mapping[float, Any]]


def shape_variations_of(run: Run, target: Target) -> list[float]:
    """Total variation over the inner and outer halves of all modes, for every run.

    It detects modes that are too wide, unlike masses of modes: a step size chosen by masses may blur all modes.
    """
    return [shape_variation(np.asarray(one.draws), np.asarray(one.log_weights), target) for one in run.split_runs()]


def shape_variation(draws: np.ndarray, log_weights: np.ndarray, target: Target) -> float:
    """Half the absolute difference between weights of inner and outer halves, in the box, and half the true masses."""
    weights = normalized_weights(log_weights_in_box(draws, log_weights, target))
    nearest, distance = nearest_centers(draws, target.modes)
    halves = 2 * nearest + (distance > target.half_distances[nearest])
    masses = np.bincount(halves.reshape(-1), weights.reshape(-1), minlength=2 * len(target.modes))
    return float(0.5 * np.abs(masses - 0.5 * np.repeat(target.mode_masses, 2)).sum())


def coupling_rows(name: str, run: Run) -> list[Row]:
    """Range of the multiplier, or swap rate; nothing for independent chains."""
    metrics = {
        "lowest_multiplier": ("multiplier, lowest", np.min),
        "highest_multiplier": ("multiplier, highest", np.max),
        "swap_rate": ("swap rate", np.mean),
    }
    return [
        Row.of_runs(name, metric, [over(one) for one in np.asarray(run.stats[stat], np.float64)])
        for stat, (metric, over) in metrics.items()
        if stat in run.stats
    ]


def differences(rows: Sequence[Row], metric: str, pairs: Sequence[tuple[str, str]]) -> list[Row]:
    """Rows "A - B" of a metric, with the standard error of the paired difference, for pairs with both methods in `rows`."""
    found = {row.method: row for row in rows if row.metric == metric and row.values}
    return [
        Row.of_runs(f"{one} - {other}", metric, np.subtract(found[one].values, found[other].values))
        for one, other in pairs
        if one in found and other in found and len(found[one].values) == len(found[other].values)
    ]


def compared(rows: Sequence[Row], metric: str, own: str, *groups: Sequence[str]) -> list[Row]:
    """Differences between the method whose name begins with `own` and the others of its group."""
    pairs = []
    for names in groups:
        first = next((name for name in names if name.startswith(own)), "")
        pairs += [(first, name) for name in names if name != first]
    return differences(rows, metric, pairs)


def variation_rows(runs: Mapping[str, Run], target: Target, own: str, *groups: Sequence[str]) -> list[Row]:
    """Variations of masses and shapes of all runs, and their differences by `compared`."""
    rows = []
    for metric, score in (("total variation", variations_of), (SHAPE, shape_variations_of)):
        found = [Row.of_runs(name, metric, score(run, target)) for name, run in runs.items()]
        rows += found + compared(found, metric, own, *groups)
    return rows


class Choice(NamedTuple):
    """The best setting, and the scores of all settings."""

    best: float
    scores: dict[float, list[float]]

    def rows(self, method: str, metric: str) -> list[Row]:
        """A row for every setting that did not diverge."""
        named = f"{metric}, on the seeds of the choice"
        kept = {setting: found for setting, found in self.scores.items() if np.isfinite(found).all()}
        return [Row.of_runs(f"{method} ({setting:g})", named, found) for setting, found in kept.items()]


def choose_setting(settings: Sequence[float], attempt: Attempt, score: Callable[[Any], Sequence[float]]) -> Choice:
    """The setting with the lowest mean score, between two worse ones.

    If the best setting is at an end of the grid, the grid is extended by its own ratio until it is not: otherwise methods would be
    compared by their grids.

    Args:
        settings: at least three positive numbers.
        attempt: function from settings to results, on separate seeds.
        score: function from a result to one number per run; NaN loses.
    """
    grid = sorted(settings)
    if len(grid) < 3 or grid[0] <= 0:
        refuse(
            "settings", "three positive numbers or more", short(settings), "A best in between needs one on either side."
        )
    scores: dict[float, list[float]] = {}
    missing, best = grid, grid[0]
    while len(grid) <= len(settings) + _MAX_EXTENSIONS:
        scores |= _scores(missing, attempt, score)
        means = {setting: np.nan_to_num(np.mean(scores[setting]), nan=np.inf) for setting in sorted(scores)}
        grid, best = list(means), min(means, key=lambda setting: means[setting])
        if best not in (grid[0], grid[-1]):
            break
        missing = [_rounded(grid[0] ** 2 / grid[1] if best == grid[0] else grid[-1] ** 2 / grid[-2])]
    else:
        remedy = "Give a grid around the best setting."
        refuse(
            "settings",
            "a grid whose best is inside once it is extended",
            f"{best:g} of {grid[0]:g} to {grid[-1]:g}",
            remedy,
        )
    return Choice(best, {setting: scores[setting] for setting in grid})


def _scores(
    settings: Sequence[float], attempt: Attempt, score: Callable[[Any], Sequence[float]]
) -> dict[float, list[float]]:
    """Scores of all runs by setting; infinite for a single setting that diverged."""
    try:
        found = attempt(settings)
    except DivergenceError:
        if len(settings) > 1:
            raise
        return {settings[0]: [float("inf")]}
    return {setting: [float(value) for value in score(found[setting])] for setting in settings}


def _rounded(setting: float) -> float:
    return float(f"{setting:.3g}")
