"""All cells of an experiment, and the rows of its table."""

import contextlib
import dataclasses
import functools
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from isotherm.demo.result import Row
from isotherm_thesis.experiments.images.cell import Cell, run_cell
from isotherm_thesis.experiments.images.plan import Arm
from isotherm_thesis.experiments.images.problem import problem_of
from isotherm_thesis.experiments.images.setting import Setting
from isotherm_thesis.experiments.images.thesis_values import Values
from isotherm_thesis.experiments.reproduce import Outcome

Records = dict[str, list[dict[str, Any]]]

# What of a cell's scores, couplings and costs stands in a table.
SCORES = (
    "accuracy, logits",
    "best accuracy, logits",
    "accuracy, probabilities",
    "best accuracy, probabilities",
    "chosen accuracy, logits",
    "held-out accuracy, logits",
    "NLL sum, logits",
    "NLL, logits",
    "NLL, probabilities",
    "calibrated NLL, logits",
    "calibrated NLL, probabilities",
    "ECE, logits",
    "ECE, probabilities",
    "SVHN Brier, permille",
    "SVHN entropy above 1.5",
    "SVHN entropy above 1.5, T = 2",
    "single accuracy, mean",
    "single accuracy, best",
    "num_networks",
)
_COSTS = ("images_per_second", "seconds", "compile_seconds", "peak_bytes")
_COMPARED = ("accuracy, logits", "NLL sum, logits", "calibrated NLL, logits", "SVHN Brier, permille")


def run_cells(
    experiment: str, arms: dict[str, Arm], setting: Setting, seed: int, log: Callable[[str], None]
) -> Records:
    """Records of all finished cells, by method; those that were stopped are left out, and said."""
    found: Records = {}
    # Seeds share images and compiled programs, and so do methods that differ in numbers alone.
    make_problem = functools.cache(problem_of)
    with _folder_of(setting) as folder:
        for number in range(setting.num_runs):
            for label in setting.methods:
                log(f"{label}, seed {seed + number}")
                own = dataclasses.replace(setting, **{} if setting.is_quick else arms[label].changes)
                record = run_cell(Cell(experiment, label, arms[label], own, seed + number), folder, make_problem)
                if record["is_finished"]:
                    found.setdefault(label, []).append(record)
                else:
                    log("  stopped; the same command goes on with it")
    return found


def rows_of(records: Records, setting: Setting, thesis: Values, baseline: str) -> list[Row]:
    """Scores, couplings and costs of all methods, and paired differences to the baseline where seeds are shared."""
    rows = []
    for label, cells in records.items():
        published = thesis.get((setting.data_set, setting.network), {}).get(label, {})
        for metric in SCORES:
            rows += _row(label, metric, [cell["scores"].get(metric) for cell in cells], published.get(metric))
        for metric in cells[0]["coupling"]:
            rows += _row(label, metric, [cell["coupling"].get(metric) for cell in cells], published.get(metric))
        for metric in _COSTS:
            rows += _row(label, metric, [cell["cost"].get(metric) for cell in cells], None)
        # Cells of older records have no parts.
        for part in cells[0].get("parts", {}):
            for metric in SCORES:
                rows += _row(f"{label}, {part}", metric, [cell["parts"][part].get(metric) for cell in cells], None)
    for label in records:
        if label != baseline and baseline in records:
            rows += _differences(records, label, baseline)
    return rows


def outcome_of(records: Records, rows: list[Row], figures: dict[str, Figure]) -> Outcome:
    """With the machine and the seconds of the cells, which may have been run before, and elsewhere."""
    cells = [cell for found in records.values() for cell in found]
    if not cells:
        return Outcome(rows, figures)
    seconds = sum(cell["cost"]["seconds"] + cell["cost"]["judge_seconds"] for cell in cells)
    return Outcome(rows, figures, cells[-1]["environment"], seconds)


def _differences(records: Records, label: str, baseline: str) -> list[Row]:
    own, theirs = ({cell["seed"]: cell["scores"] for cell in records[name]} for name in (label, baseline))
    seeds = sorted(own.keys() & theirs.keys())
    rows = []
    for metric in _COMPARED if seeds else ():
        pairs = [own[seed][metric] - theirs[seed][metric] for seed in seeds]
        rows += _row(f"{label} - {baseline}", metric, pairs, None)
    return rows


def _row(label: str, metric: str, values: list[Any], thesis: float | None) -> list[Row]:
    """A row where all cells have this number."""
    is_number = all(isinstance(value, (int, float)) and np.isfinite(value) for value in values)
    return [Row.of_runs(label, metric, values, thesis)] if is_number else []


@contextlib.contextmanager
def _folder_of(setting: Setting) -> Iterator[pathlib.Path]:
    if setting.cells is not None:
        yield pathlib.Path(setting.cells)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder)
