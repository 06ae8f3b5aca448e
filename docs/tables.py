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


TABLES = {"demo": demo_table, "bench": bench_table}


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
