"""How experiments judge runs: masses of modes, what couplings did, and settings chosen on seeds that are not reported."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from isotherm.experiments.result import Row, differences
from isotherm.runs import Run
from isotherm.runs.modes import mode_masses
from isotherm.targets import Target

# Seeds on which settings are chosen are this far from those that are reported.
TUNING_OFFSET = 1_000_003
Setting = TypeVar("Setting")


def masses_in_box(draws: np.ndarray, log_weights: np.ndarray, target: Target) -> np.ndarray:
    """The weight of every mode among the draws in the target's box, (..., d): the law that `target.mode_masses` is true of.

    A sampler that may leave the box is judged by where it is while it is inside.
    """
    low, high = target.span
    is_inside = np.all((draws >= low) & (draws <= high), axis=-1)
    return mode_masses(target.modes, draws, np.where(is_inside, log_weights, -np.inf))


def variations_of(run: Run, target: Target) -> list[float]:
    """The total variation over modes of every run."""
    return [
        target.total_variation(masses_in_box(np.asarray(one.draws), np.asarray(one.log_weights), target))
        for one in run.split_runs()
    ]


def coupling_rows(name: str, run: Run) -> list[Row]:
    """What the coupling of a run did: the range of the multiplier, or the swap rate; nothing for independent chains."""
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


def compared(rows: Sequence[Row], metric: str, own: str, *groups: Sequence[str]) -> list[Row]:
    """The method whose name begins with `own` beside the others of its group, such as those with the thesis' settings."""
    pairs = []
    for names in groups:
        first = next((name for name in names if name.startswith(own)), "")
        pairs += [(first, name) for name in names if name != first]
    return differences(rows, metric, pairs)


def choose_setting(candidates: Mapping[Setting, Any], score: Callable[[Any], Sequence[float]]) -> Setting:
    """The name of the candidate whose scores are lowest on average. Give runs of other seeds than those that are reported."""
    means = {name: float(np.mean(score(candidate))) for name, candidate in candidates.items()}
    return min(means, key=lambda name: means[name])
