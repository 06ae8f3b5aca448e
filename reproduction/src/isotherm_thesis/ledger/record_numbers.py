"""Numbers of records: rows, differences and ratios, each with its error and number of runs."""

import fnmatch
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t

_TAIL = float(norm.sf(3.0))
Row = dict[str, Any]


class Number(NamedTuple):
    """A number of a record, or what two of them give.

    Attributes:
        label: of the method, or of both.
        metric: what was measured.
        value: the mean over runs.
        error: its standard error; None where the record has none.
        runs: their number.
        note: how the error was found.
    """

    label: str
    metric: str
    value: float
    error: float | None
    runs: int
    note: str = ""

    @property
    def margin(self) -> float:
        """Half of the width of its interval."""
        return float(t.isf(_TAIL, self.runs - 1)) * self.error if self.error else 0.0

    @classmethod
    def of_row(cls, row: Row) -> "Number":
        """The number of one row."""
        return cls(row["method"], row["metric"], row["ours"], row["std_error"], row["runs"])


def row_of(record: dict[str, Any], method: str, metric: str) -> Row | None:
    """The row of a record; None where there is none. In the name of the method `*` stands for anything but DEO's star."""
    pattern = method.replace("DEO*", "DEO[*]").replace("[*][*]", "[*]")
    rows = [row for row in record["rows"] if row["metric"] == metric]
    return next((row for row in rows if fnmatch.fnmatchcase(row["method"], pattern)), None)


def difference_of(row: Row, other: Row) -> Number:
    """The difference of two rows: run by run where both have as many runs, else with the errors of both."""
    label, value = f"{row['method']} - {other['method']}", row["ours"] - other["ours"]
    if row["method"] == other["method"]:
        label = row["method"]
    metric = row["metric"] if row["metric"] == other["metric"] else f"{row['metric']} - {other['metric']}"
    if _are_paired(row, other):
        return Number(label, metric, value, _error(np.subtract(row["values"], other["values"])), row["runs"])
    error = None
    if row["std_error"] is not None and other["std_error"] is not None:
        error = math.hypot(row["std_error"], other["std_error"])
    return Number(label, metric, value, error, min(row["runs"], other["runs"]), "" if error is None else "unpaired")


def ratio_of(row: Row, other: Row) -> Number:
    """The ratio of two rows, likewise."""
    label, value = f"{row['method']} over {other['method']}", row["ours"] / other["ours"]
    metric = row["metric"] if row["metric"] == other["metric"] else f"{row['metric']} over {other['metric']}"
    if row["method"] == other["method"]:
        label = row["method"]
    if _are_paired(row, other):
        rests = np.subtract(row["values"], value * np.array(other["values"]))
        return Number(label, metric, value, _error(rests) / abs(other["ours"]), row["runs"])
    error = None
    if row["std_error"] is not None and other["std_error"] is not None:
        error = abs(value) * math.hypot(row["std_error"] / row["ours"], other["std_error"] / other["ours"])
    runs = min(row["runs"], other["runs"])
    return Number(label, metric, value, error, runs, "" if error is None else "unpaired")


def _are_paired(row: Row, other: Row) -> bool:
    return 1 < len(row.get("values", ())) == len(other.get("values", ()))


def _error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
