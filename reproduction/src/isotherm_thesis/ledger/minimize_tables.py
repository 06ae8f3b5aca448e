"""Tables that compare `iso.minimize` with SciPy's optimizers, from the record of `studies.minimize`."""

import functools
import json
from typing import Any

import numpy as np

from isotherm_thesis.paths import RESULTS

_PATH = RESULTS / "minimize.json"
_OURS = "minimize"
_METHODS = (_OURS, "dual_annealing", "basinhopping", "differential_evolution", "shgo")
# A tie is a number of evaluations within this factor.
_TIE = 1.2
_SIZES = {2: (2, 4), 10: (10, 12), 50: (50, 52)}


def _record(kind: str) -> list[dict[str, Any]]:
    return json.loads(_PATH.read_text())[kind]


def _count(hit: Any, dimension: int, is_second: bool) -> float:
    """Evaluations to a hit; in the second count a gradient costs as many as there are coordinates."""
    if hit is None:
        return np.inf
    return hit[0] + (dimension * hit[1] if is_second else 0)


def _cell(rows: list[dict[str, Any]], which: str) -> str:
    hits = [row[which] for row in rows]
    successes = sum(hit is not None for hit in hits)
    medians = [
        float(np.median([_count(row[which], row["dimension"], second) for row in rows])) for second in (False, True)
    ]
    if not np.isfinite(medians[0]):
        return f"{successes}/{len(hits)}"
    return f"{successes}/{len(hits)}: {medians[0]:,.0f} ({medians[1]:,.0f})"


def comparison_table(dimension: int, which: str) -> str:
    """Success and median evaluations of every method in one dimension, and who needed fewer."""
    cells: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in _record("exact"):
        if row["dimension"] in _SIZES[dimension] and which in row:
            cells.setdefault(row["function"], {}).setdefault(row["method"], []).append(row)
    methods = [method for method in _METHODS if any(method in rows for rows in cells.values())]
    heads = " | ".join(f"`{method}`" for method in methods)
    lines = [f"| function | {heads} | against the best of SciPy |", "|---" * (len(methods) + 2) + "|"]
    good = 0
    for name, rows in cells.items():
        medians = {method: float(np.median([_count(row[which], 0, False) for row in rows[method]])) for method in rows}
        ours, best = (
            medians.get(_OURS, np.inf),
            min([medians[method] for method in rows if method != _OURS], default=np.inf),
        )
        if not np.isfinite(min(ours, best)):
            verdict = "neither"
        else:
            verdict = "fewer" if ours < best / _TIE else "tie" if ours <= best * _TIE and np.isfinite(ours) else "more"
        good += verdict in ("fewer", "tie")
        shown = " | ".join(_cell(rows[method], which) if method in rows else "" for method in methods)
        lines.append(f"| {name} | {shown} | {verdict} |")
    lines.append(f"| fewer, or a tie | {' | ' * (len(methods) - 1)} | {good} of {len(cells)} |")
    return "\n".join(lines)


def noisy_table() -> str:
    """How often the point that is returned is within 1e-3 of the minimum, or within a tenth of the noise, told without noise."""
    cells: dict[tuple[float, str], dict[str, list[dict[str, Any]]]] = {}
    for row in _record("noisy"):
        for name in (row["function"], "all"):
            cells.setdefault((row["level"], name), {}).setdefault(row["method"], []).append(row)
    methods = _METHODS[:4]
    heads = " | ".join(f"`{method}`" for method in methods)
    lines = [f"| noise | function | {heads} |", "|---" * (len(methods) + 2) + "|"]
    for (level, name), rows in sorted(cells.items(), key=lambda item: (item[0][0], item[0][1] == "all")):
        shown = []
        for method in methods:
            found = rows.get(method, [])
            fine = sum(row["value"] <= 1e-3 for row in found)
            near = sum(row["value"] <= 0.1 * row["noise"] for row in found)
            middle = f", {np.median([row['value'] for row in found]):.2g}" if name != "all" and found else ""
            shown.append(f"{fine}/{len(found)}, {near}/{len(found)}{middle}")
        lines.append(f"| {100 * level:g} % | {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


MINIMIZE = {
    "minimize": functools.partial(comparison_table, 10, "accurate"),
    "minimize-2": functools.partial(comparison_table, 2, "accurate"),
    "minimize-50": functools.partial(comparison_table, 50, "accurate"),
    "minimize-thesis": functools.partial(comparison_table, 10, "thesis"),
    "minimize-noisy": noisy_table,
}
