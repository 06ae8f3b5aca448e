"""Tables of the studies, from their records."""

import json
from typing import Any

from isotherm_thesis.paths import RESULTS

# Compared at equal steps; the first is the one to beat.
_SAMPLERS = ("sgld", "csgld", "icsgld", "csghmc")


def _record(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())


def spreads_table() -> str:
    """How much too large variances are, exactly and as runs measure it."""
    lines = ["| inputs | batch | step size | exact | measured by the run |", "|---|---|---|---|---|"]
    for row in _record("bias")["spreads"]:
        found = f"{100 * row['measured']:.3g} ± {100 * row['error']:.2g} %"
        lines.append(f"| {row['inputs']} | {row['n']} | {row['step']:.2g} | {100 * row['exact']:.3g} % | {found} |")
    return "\n".join(lines)


def means_table() -> str:
    """How far means are off in standard deviations, and as runs measure it."""
    lines = ["| step size | actual bias | measured by the run |", "|---|---|---|"]
    for row in _record("bias")["means"]:
        seen = f"{row['off']:+.4f} ± {row['std_error']:.4f}"
        lines.append(f"| {row['step']:.2g} | {seen} | {row['measured']:+.4f} ± {row['error']:.4f} |")
    return "\n".join(lines)


def network_heat_table() -> str:
    """Temperatures and losses of a network at several steps."""
    lines = [
        "| step size | temperature, measured by the run | training loss | reported by the summary |",
        "|---|---|---|---|",
    ]
    for row in _record("network-heat")["rows"]:
        heat, loss = (
            f"{row[a]:.{n}f} ± {row[b]:.{n}f}" for a, b, n in (("temperature", "error", 3), ("loss", "loss_error", 1))
        )
        lines.append(f"| {row['step']:.2g} | {heat} | {loss} | {'yes' if row['is_named'] else 'no'} |")
    return "\n".join(lines)


def contours_table() -> str:
    """Systematic and total errors of contour samplers beside SGLD, and the range of the multiplier."""
    by_target: dict[str, dict[str, Any]] = {}
    for row in _record("contours")["rows"]:
        by_target.setdefault(row["target"], {})[row["sampler"]] = row
    heads = [f"{name}: systematic, total" for name in _SAMPLERS]
    lines = [f"| target | barrier | {' | '.join(heads)} | multipliers of icsgld |", "|---" * (len(heads) + 3) + "|"]
    for target, rows in by_target.items():
        if not set(_SAMPLERS) <= set(rows):
            continue
        cells = [f"{rows[n]['systematic']:.3f} ± {rows[n]['error']:.3f}, {rows[n]['total']:.3f}" for n in _SAMPLERS]
        barrier = rows["sgld"]["barrier"]
        low, high = rows["icsgld"]["multiplier"]
        height = f"{barrier:.3g}" if barrier else ""
        mark = " (fresh)" if rows["sgld"].get("is_fresh") else ""
        lines.append(f"| {target}{mark} | {height} | {' | '.join(cells)} | {low:.2f} to {high:.2f} |")
    return "\n".join(lines)


STUDIES = {
    "bias-spreads": spreads_table,
    "bias-means": means_table,
    "network-heat": network_heat_table,
    "contours": contours_table,
}
