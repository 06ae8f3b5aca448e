"""Writes the README's tables from the records in `results/`. With --check, only says whether they are up to date."""

import json
import pathlib
import sys
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]


def demo_table() -> str:
    """Errors and speeds of the demonstration."""
    record = json.loads((ROOT / "results" / "demo" / "result.json").read_text())
    cells: dict[str, dict[str, str]] = {}
    for row in record["rows"]:
        error = "" if row["std_error"] is None else f" ± {row['std_error']:.1g}"
        text = f"{row['ours'] / 1e6:.1f} M" if row["metric"] == "steps/s" else f"{row['ours']:.3g}{error}"
        cells.setdefault(row["method"], {})[row["metric"]] = text
    return _markdown("method", cells)


# The metrics of each experiment that the README shows; the records hold more.
SHOWN = {
    "mixture-resgld": ("swap rate", "mass below zero"),
    "mixture-vr": ("visits both modes", "swaps", "ratio of variances"),
    "round-trips": ("round trip, P = 16, r = 0.6",),
    "modes25-deo": ("round trips / 1000", "mean acceptance", "total variation"),
}


def experiments_table() -> str:
    """The thesis' numbers beside ours."""
    lines = ["| experiment | method | metric | thesis | ours | runs |", "|---|---|---|---|---|---|"]
    for name, metrics in SHOWN.items():
        record = json.loads((ROOT / "results" / name / "result.json").read_text())
        for row in record["rows"]:
            if row["metric"] in metrics:
                thesis = "" if row["thesis"] is None else f"{row['thesis']:.4g}"
                error = "" if row["std_error"] is None else f" ± {row['std_error']:.1g}"
                ours = f"{row['ours']:.3g}{error}"
                lines.append(f"| `{name}` | {row['method']} | {row['metric']} | {thesis} | {ours} | {row['runs']} |")
    return "\n".join(lines)


def bench_table() -> str:
    """Speeds beside peers."""
    lines = ["| work | peer | ours | theirs | ratio |", "|---|---|---|---|---|"]
    for row in json.loads((ROOT / "results" / "bench.json").read_text()):
        numbers = f"{_short(row['ours'])} | {_short(row['theirs'])} | {row['ratio']:.2f}"
        lines.append(f"| {row['work']} | {row['peer']} | {numbers} |")
    return "\n".join(lines)


def _markdown(first: str, cells: dict[str, dict[str, Any]]) -> str:
    columns = list(next(iter(cells.values())))
    lines = [f"| {first} | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    lines += [f"| {name} | {' | '.join(values[column] for column in columns)} |" for name, values in cells.items()]
    return "\n".join(lines)


def _short(number: float) -> str:
    return f"{number / 1e6:.2f} M" if number >= 1e6 else f"{number:.3g}"


TABLES = {"demo": demo_table, "experiments": experiments_table, "bench": bench_table}


def rendered(text: str) -> str:
    """The README with every table made anew between its marks."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{table()}\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    new = rendered(readme.read_text())
    if "--check" in sys.argv:
        sys.exit(0 if new == readme.read_text() else "README.md is not up to date: run python docs/tables.py")
    readme.write_text(new)
