"""The record of an experiment: `result.json`, in the form that other tools rely on."""

import dataclasses
import pathlib
from typing import Any

from isotherm.sampling.describe import environment
from isotherm.sampling.store import write_json


@dataclasses.dataclass(frozen=True)
class Row:
    """One number of a table: the thesis' beside ours, with the standard error over runs where there are several."""

    method: str
    metric: str
    thesis: float | None
    ours: float
    std_error: float | None
    runs: int


def write_result(
    path: pathlib.Path, experiment: str, scale: str, rows: list[Row], config: dict[str, Any], seed: int, seconds: float
) -> None:
    """Write `result.json`."""
    record = {
        "experiment": experiment,
        "scale": scale,
        "rows": [dataclasses.asdict(row) for row in rows],
        "config": config,
        "seed": seed,
        "environment": environment(),
        "seconds": seconds,
    }
    write_json(path, record)
