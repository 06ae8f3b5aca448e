"""Rows that the ledger computes from what records hold besides their rows: cells of image experiments, and measured speeds."""

import json
import pathlib
from typing import Any

import numpy as np

from isotherm.demo.result import Row

Record = dict[str, Any]
# The name of the record of speeds, for the ledger.
SPEEDS = "images"
# Corrections are "thousands of times larger than the losses" (L768).
_MANY = 1_000.0
# Of the gain of `interaction`.
_GAIN_OFFSET = 100.0
# Single networks are compared in the last quarter of the epochs.
_LATE = 0.75


def with_derived(records: dict[str, Record], results: pathlib.Path) -> dict[str, Record]:
    """Records with the rows that their cells give, and a record of the speeds in `images/record.json`."""
    found = {
        name: {**record, "rows": record["rows"] + _cell_rows(results / name) + _gain_rows(record)}
        for name, record in records.items()
    }
    return found | {
        SPEEDS: {"experiment": SPEEDS, "scale": "full", "rows": _speeds(results / "images" / "record.json")}
    }


def _cell_rows(folder: pathlib.Path) -> list[Record]:
    """What the cells of a record give, by method: one value per seed."""
    found: dict[tuple[str, str], list[float]] = {}
    for path in sorted(folder.glob("cells/*/cell.json")):
        cell = json.loads(path.read_text())
        for metric, value in _of_cell(cell).items():
            found.setdefault((cell["method"], metric), []).append(value)
    return [_stored(Row.of_runs(method, metric, values)) for (method, metric), values in found.items()]


def _of_cell(cell: Record) -> dict[str, float]:
    """Numbers of one cell: acceptances of pairs, exact corrections, and single networks late in the run."""
    report, curves = cell.get("coupling", {}), cell.get("curves", {})
    values: dict[str, float] = {}
    rates = report.get("acceptance of pairs", [])
    if len(rates) > 1:
        values |= {"lowest acceptance of a pair": min(rates), "highest acceptance of a pair": max(rates)}
    if "correction over time" in report:
        ratios = np.array(report["correction over time"]["ratio"])
        values["share of epochs with a correction above 1,000 losses"] = float(np.mean(ratios > _MANY))
        values["largest correction over loss"] = float(ratios.max())
    if curves:
        is_late = np.array(curves["epoch"]) > _LATE * cell["epochs"]
        if is_late.any():
            values[f"single accuracy, epochs after {_LATE:.0%}"] = float(
                np.mean(np.array(curves["accuracy, single"])[is_late])
            )
    return values


def _gain_rows(record: Record) -> list[Record]:
    """What the thesis derives for interacting chains, w_kP / (w_k / P), at the length and with the gain of the record."""
    if record.get("experiment") != "interaction":
        return []
    config = record["config"]

    def gain(iteration: float, power: float) -> float:
        return config["gain_scale"] / (iteration**power + _GAIN_OFFSET)

    return [
        _stored(Row(f"alpha = {power:g}, P = {chains}", "ratio of the gains", None, chains * late / early, None, 1))
        for power in config["powers"]
        for chains in config["chains"]
        for early, late in [[gain(factor * config["num_steps"], power) for factor in (1, chains)]]
    ]


def _speeds(path: pathlib.Path) -> list[Record]:
    """Images per second of every timed program that had the device to itself; runs are timings of one program."""
    timed = [row for row in json.loads(path.read_text()) if row["kind"] == "speed"]
    return [
        _stored(
            Row.of_runs(
                f"{row['network']}, {row['method']} x {row['num_chains']}", "images per second", row["all_rates"]
            )
        )
        for row in timed
    ]


def _stored(row: Row) -> Record:
    stored = {key: getattr(row, key) for key in ("method", "metric", "thesis", "ours", "std_error", "runs")}
    return stored | ({"values": list(row.values)} if row.runs > 1 else {})
