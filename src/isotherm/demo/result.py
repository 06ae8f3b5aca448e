"""Scores of runs, and their record `result.json`, whose form other tools rely on."""

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from isotherm.driver.describe import environment
from isotherm.run import Run
from isotherm.run.estimates import mode_masses
from isotherm.run.storage.json_files import write_json
from isotherm.targets import Target


@dataclasses.dataclass(frozen=True)
class Row:
    """One number of a table, beside that of the thesis.

    Attributes:
        method: name of the sampler.
        metric: name of the number.
        thesis: value in the thesis, or None.
        ours: mean over runs.
        std_error: its standard error, or None for a single run.
        runs: number of runs.
        values: one per run, for paired differences.
    """

    method: str
    metric: str
    thesis: float | None
    ours: float
    std_error: float | None
    runs: int
    values: tuple[float, ...] = dataclasses.field(default=(), repr=False, compare=False)

    @classmethod
    def of_runs(
        cls, method: str, metric: str, values: Sequence[float] | np.ndarray, thesis: float | None = None
    ) -> Self:
        """Mean and standard error of one value per run."""
        error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
        return cls(method, metric, thesis, float(np.mean(values)), error, len(values), tuple(map(float, values)))

    @property
    def text(self) -> str:
        """Our value and its standard error."""
        return shown(self.ours, self.std_error)


def shown(value: float, std_error: float | None = None) -> str:
    """`value` to the second digit of its standard error, or to four digits without one."""
    is_plain = 1e-4 <= abs(value) < 1e6 or value == 0
    if not std_error:
        text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.4g}"
        return text if std_error is None else f"{text} ± 0"
    if not is_plain or not 1e-6 <= std_error < 1e6:
        return f"{value:.4g} ± {std_error:.2g}"
    decimals = max(1 - math.floor(math.log10(std_error)), 0)
    return f"{value:,.{decimals}f} ± {std_error:,.{decimals}f}"


def masses_in_box(draws: np.ndarray, log_weights: np.ndarray, target: Target) -> np.ndarray:
    """Weight of every mode among the draws (..., d) in the target's box; those outside do not count."""
    return mode_masses(target.modes, draws, log_weights_in_box(draws, log_weights, target))


def variations_of(run: Run, target: Target) -> list[float]:
    """Total variation over modes of every run."""
    return [
        target.total_variation(masses_in_box(np.asarray(one.draws), np.asarray(one.log_weights), target))
        for one in run.split_runs()
    ]


def log_weights_in_box(draws: np.ndarray, log_weights: np.ndarray, target: Target) -> np.ndarray:
    """`log_weights`, with minus infinity for draws outside the target's box."""
    low, high = target.span
    return np.where(np.all((draws >= low) & (draws <= high), axis=-1), log_weights, -np.inf)


def write_result(
    path: pathlib.Path,
    experiment: str,
    scale: str,
    rows: list[Row],
    config: dict[str, Any],
    seed: int,
    seconds: float,
    where: dict[str, Any] | None = None,
) -> None:
    """Write `result.json`. `where` describes the machine; None is this one."""
    record = {
        "experiment": experiment,
        "scale": scale,
        "rows": [_stored(row) for row in rows],
        "config": config,
        "seed": seed,
        "environment": where or environment(),
        "seconds": seconds,
    }
    write_json(path, record)


def _stored(row: Row) -> dict[str, Any]:
    stored = dataclasses.asdict(row)
    values = stored.pop("values")
    return stored | ({"values": [float(f"{value:.7g}") for value in values]} if len(values) > 1 else {})
