"""The record of an experiment: `result.json`, in the form that other tools rely on."""

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from isotherm.driver.describe import environment
from isotherm.run.storage.store import write_json


@dataclasses.dataclass(frozen=True)
class Row:
    """One number of a table: the thesis' beside ours, with the standard error over runs where there are several.

    `values`, one per run where they are known, are in the record too: from them paired differences can be taken later.
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
        """The mean of one value per run, with its standard error."""
        error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
        each = tuple(float(value) for value in values)
        return cls(method, metric, thesis, float(np.mean(values)), error, len(values), each)

    @property
    def text(self) -> str:
        """Ours, with the standard error."""
        return shown(self.ours, self.std_error)


def shown(value: float, std_error: float | None = None) -> str:
    """A number to the second digit of its standard error, or to four digits where there is none."""
    is_plain = 1e-4 <= abs(value) < 1e6 or value == 0
    if not std_error:
        text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.4g}"
        return text if std_error is None else f"{text} ± 0"
    if not is_plain or not 1e-6 <= std_error < 1e6:
        return f"{value:.4g} ± {std_error:.2g}"
    decimals = max(1 - math.floor(math.log10(std_error)), 0)
    return f"{value:,.{decimals}f} ± {std_error:,.{decimals}f}"


def differences(rows: Sequence[Row], metric: str, pairs: Sequence[tuple[str, str]]) -> list[Row]:
    """Rows "A - B" of a metric, with the error of the paired difference over runs, for those pairs whose methods are there."""
    found = {row.method: row for row in rows if row.metric == metric and row.values}
    return [
        Row.of_runs(f"{one} - {other}", metric, np.subtract(found[one].values, found[other].values))
        for one, other in pairs
        if one in found and other in found and len(found[one].values) == len(found[other].values)
    ]


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
    """Write `result.json`; `where` describes the machine, None is this one."""
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
    """A row as in the record, with its values to seven digits where there are several."""
    stored = dataclasses.asdict(row)
    values = stored.pop("values")
    return stored | ({"values": [float(f"{value:.7g}") for value in values]} if len(values) > 1 else {})
