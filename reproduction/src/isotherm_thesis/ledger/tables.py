"""Generates the tables of the README and of the pages in `docs/` from the records in `reproduction/results/`.

With --check, only says whether they are up to date.
"""

import json
import math
import pathlib
import sys
import tomllib
from fnmatch import fnmatchcase
from typing import Any

from isotherm.demo.result import shown
from isotherm_thesis.experiments.images.thesis_values import (
    ACCURACY,
    BEST_SINGLE,
    BRIER,
    CONTOUR,
    INTERACTING,
    LADDERS,
    NLL,
    RESGHMC,
    VARIANCE_REDUCED,
    Values,
)
from isotherm_thesis.ledger.claims import claims_page, load_claims, notable_findings, tally_table
from isotherm_thesis.ledger.derived import with_derived
from isotherm_thesis.ledger.minimize_tables import MINIMIZE
from isotherm_thesis.ledger.quoting import filled
from isotherm_thesis.ledger.remarks import REMARKS
from isotherm_thesis.ledger.study_tables import STUDIES
from isotherm_thesis.paths import RESULTS, ROOT


def demo_table() -> str:
    """Errors and speeds of the demonstration."""
    record = json.loads((RESULTS / "demo" / "result.json").read_text())
    cells: dict[str, dict[str, str]] = {}
    for row in record["rows"]:
        error = "" if row["std_error"] is None else f" ± {row['std_error']:.1g}"
        text = f"{row['ours'] / 1e6:.1f} M" if row["metric"] == "steps/s" else f"{row['ours']:.3g}{error}"
        cells.setdefault(row["method"], {})[row["metric"]] = text
    return _markdown("method", cells)


_APART = ("demo", "digits-example")


def records() -> dict[str, dict[str, Any]]:
    """The records of all experiments by name."""
    paths = sorted(path for path in RESULTS.glob("*/result.json") if path.parent.name not in _APART)
    return {path.parent.name: json.loads(path.read_text()) for path in paths}


def evidence() -> dict[str, dict[str, Any]]:
    """What claims are judged by: the records, and what the ledger computes from them."""
    return with_derived(records(), RESULTS)


def experiments_table() -> str:
    """Of every record with numbers of the thesis: how many come within a tenth of it, and which is farthest from it."""
    lines = [
        "| experiment | length | time, device | numbers | within a tenth | farthest | thesis | ours | runs |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, record in records().items():
        rows = [row for row in record["rows"] if row["thesis"] is not None]
        if rows:
            worst = max(rows, key=distance)
            near = sum(abs(row["ours"] - row["thesis"]) <= _NEAR * abs(row["thesis"]) for row in rows)
            where = f"{record['seconds'] / 60:.1f} min, {record['environment']['device']}"
            counts = f"{record['scale']} | {where} | {len(rows)} | {near}"
            label = f"{worst['method']}: {worst['metric']} | {worst['thesis']:.4g}"
            ours = shown(worst["ours"], worst["std_error"])
            lines.append(f"| `{name}` | {counts} | {label} | {ours} | {worst['runs']} |")
    return "\n".join(lines)


_NEAR = 0.1


def distance(row: dict[str, Any]) -> float:
    """How far a number is from the thesis': the logarithm of their ratio, which treats halves and doubles alike."""
    ratio = row["ours"] / row["thesis"] if row["thesis"] else math.inf
    return abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf


# The thesis' tables of images, with their lines, and the experiments that are about them.
_IMAGE_TABLES: tuple[tuple[str, Values, str], ...] = (
    ("2, L783 and L815: reSGHMC", RESGHMC, "cifar-resghmc"),
    ("3, L1074: variance reduction", VARIANCE_REDUCED, "cifar-vr"),
    ("4, L1485: ten networks", LADDERS, "cifar-deo"),
    ("5, L1852: CSGHMC", CONTOUR, "cifar-csghmc"),
    ("6, L2243: ICSGHMC", INTERACTING, "cifar-icsghmc"),
)
# Methods of the thesis that were run with schedules of their own.
_VARIANT = ", longer"


def lengths_table() -> str:
    """How much of the thesis' image tables was run at which length."""
    lines = [
        "| chapter, table | numbers | at full length | at part of it | not run |",
        "|---|---|---|---|---|",
    ]
    totals = [0, 0, 0, 0]
    for title, values, experiment in _IMAGE_TABLES:
        wanted = {
            (*where, method, metric)
            for where, methods in values.items()
            for method, metrics in methods.items()
            for metric in metrics
            if metric in (ACCURACY, NLL, BRIER, BEST_SINGLE)
        }
        full, part = _lengths(experiment, wanted)
        counts = [len(wanted), len(full), len(set(part) - set(full)), len(wanted - set(full) - set(part))]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        cells = [f"{count}{_how(found)}" for count, found in zip(counts[1:3], (full, part), strict=True)]
        lines.append(f"| {title} | {counts[0]} | {cells[0]} | {cells[1]} | {counts[3]} |")
    lines.append(f"| all | {' | '.join(map(str, totals))} |")
    return "\n".join(lines)


Place = tuple[str, str, str, str]


def _lengths(experiment: str, wanted: set[Place]) -> tuple[dict[Place, str], dict[Place, str]]:
    """Which of the wanted numbers were run at full length, and which at part of it, with their length and runs."""
    full: dict[Place, str] = {}
    part: dict[Place, str] = {}
    # Where several records have a number, that of the most runs is shown.
    for record in sorted(records().values(), key=_num_runs):
        if record["experiment"] == experiment:
            config = record["config"]
            for row in record["rows"]:
                place = (config["data_set"], config["network"], row["method"].removesuffix(_VARIANT), row["metric"])
                if place in wanted:
                    seeds = f"{row['runs']} seed{'s' * (row['runs'] > 1)}"
                    is_full = record["scale"] == "full"
                    (full if is_full else part)[place] = seeds if is_full else f"{config['scale']:g}, {seeds}"
    return full, part


def _num_runs(record: dict[str, Any]) -> int:
    return max((row["runs"] for row in record["rows"]), default=0)


def _how(found: dict[Place, str]) -> str:
    return f" ({'; '.join(sorted(set(found.values())))})" if found else ""


def digits_table() -> str:
    """The worked example: four ensembles side by side."""
    cells: dict[str, dict[str, str]] = {}
    for row in json.loads((RESULTS / "digits-example" / "result.json").read_text())["rows"]:
        cells.setdefault(row["method"], {})[row["metric"]] = f"{row['ours']:.3g}"
    return _markdown("ensemble", cells)


def mushroom_table() -> str:
    """Regret of the agents on the mushrooms."""
    cells: dict[str, dict[str, str]] = {}
    for row in records()["mushroom"]["rows"]:
        if not row["metric"].startswith("regret"):
            continue
        error = "" if row["std_error"] is None else f" ± {row['std_error']:.0f}"
        cells.setdefault(row["method"], {})[row["metric"]] = f"{row['ours']:.0f}{error}"
    return _markdown("agent", cells)


def experiments_page() -> str:
    """For every experiment the question, the answer, pictures and the numbers that carry it; the others are in the records."""
    questions, captions = (
        tomllib.loads(pathlib.Path(__file__).with_name(f"{part}.toml").read_text())
        for part in ("questions", "captions")
    )
    found = evidence()
    text = (
        "# Experiments\n\nFor every experiment: the question, our answer, pictures, and the numbers that carry it. Numbers are "
        "means over runs and their standard errors; the thesis' are in parentheses. All numbers, and differences run by run, are "
        "in `reproduction/results/NAME/result.json`. `isotherm reproduce NAME` makes a record; "
        "`python -m isotherm_thesis.ledger.tables` generates this page. The thesis' claims: [claims.md](claims.md).\n"
    )
    for name, record in records().items():
        asked = questions[name]
        text += f"\n## {name}\n\n**{asked['question']}** {filled(asked['answer'], found, name)}\n\n"
        for picture in sorted(path.name for path in (RESULTS / name).glob("*.png")):
            caption = captions.get(name, {}).get(picture.removesuffix(".png"))
            text += f"![{picture}](../reproduction/results/{name}/{picture})\n"
            text += f"*{filled(caption, found, name)}*\n\n" if caption else "\n"
        text += _table_of([row for row in record["rows"] if _is_shown(row, asked["rows"])])
        text += f"{filled(REMARKS[name], found, name)} " if name in REMARKS else ""
        count = record["config"]["num_runs"]
        runs = f"{count:,} run{'s' * (count > 1)}"
        where = f"{record['seconds'] / 60:.1f} min on {record['environment']['device']}"
        text += f"Length: {record['scale']}; {runs}; {where}; seed {record['seed']}; {len(record['rows'])} numbers.\n"
    return text


def _is_shown(row: dict[str, Any], patterns: list[list[str]]) -> bool:
    """Whether a row carries the answer. Differences are in the ledger of claims, and in the record."""
    is_named = any(
        fnmatchcase(row["method"], method) and fnmatchcase(row["metric"], metric) for method, metric in patterns
    )
    return is_named and " - " not in row["method"]


# Columns of a table of the page, at most.
_WIDEST = 7


def _table_of(rows: list[dict[str, Any]]) -> str:
    """Methods by metrics, or metrics by methods where that is shorter; of one metric, problems by methods."""
    cells = {(row["method"], row["metric"]): _cell(row) for row in rows}
    methods, metrics = (list(dict.fromkeys(key[place] for key in cells)) for place in (0, 1))
    if len(metrics) == 1 and all(", " in method for method in methods):
        # "wine, CSGLD": the problem, then the method.
        cells = {tuple(method.split(", ", 1)): cell for (method, _), cell in cells.items()}
        methods, metrics = (list(dict.fromkeys(key[place] for key in cells)) for place in (0, 1))
    if len(metrics) > _WIDEST or (len(metrics) > len(methods) and len(methods) <= _WIDEST):
        cells = {(metric, method): cell for (method, metric), cell in cells.items()}
        methods, metrics = metrics, methods
    lines = [[method, *(cells.get((method, metric), "") for metric in metrics)] for method in methods]
    body = "".join(f"| {' | '.join(line)} |\n" for line in [["", *metrics], ["---"] * (1 + len(metrics)), *lines])
    return f"{body}\n" if rows else ""


def _cell(row: dict[str, Any]) -> str:
    ours = shown(row["ours"], row["std_error"])
    return ours if row["thesis"] is None else f"{ours} ({shown(row['thesis'])})"


_WITH_OPTION = ", with our XLA option"


def _bench() -> list[dict[str, Any]]:
    return json.loads((RESULTS / "bench.json").read_text())


def bench_table() -> str:
    """Speeds beside peers."""
    lines = ["| work | peer | ours | theirs | ratio |", "|---|---|---|---|---|"]
    for row in _bench():
        numbers = f"{_short(row['ours'])} | {_short(row['theirs'])} | {row['ratio']:.2f}"
        lines.append(f"| {row['work']} | {row['peer']} | {numbers} |")
    return "\n".join(lines)


def images_table() -> str:
    """Images per second on a GPU, of programs that were compiled alone, and beside others (†)."""
    alone, beside = (json.loads((RESULTS / "images" / f"{name}.json").read_text()) for name in ("record", "beside"))
    plain = next(row["images_per_second"] for row in alone if row["method"] == "M-SGD" and row["network"] == "resnet20")
    named = [(f"{row['network']}, {row['method']} x {row['num_chains']}", row) for row in alone]
    named += [
        (f"{row['network']}, {row['method']} x {row['num_chains']}{', deterministic' * bool(row['xla_flags'])} †", row)
        for row in beside
    ]
    cells = {
        name: {
            "images/s": f"{row['images_per_second']:,.0f}",
            "relative time per image": f"{plain / row['images_per_second']:.2f}",
            "compile time": f"{row['compile_seconds']:.0f} s",
            "peak memory": f"{row['peak_bytes'] / 1e9:.2f} GB",
            "weights": f"{row['num_weights']:,}",
        }
        for name, row in named
        if row["kind"] == "speed"
    }
    return _markdown("network, sampler x chains", cells)


def _markdown(first: str, cells: dict[str, dict[str, Any]]) -> str:
    columns = list(next(iter(cells.values())))
    lines = [f"| {first} | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    lines += [f"| {name} | {' | '.join(values[column] for column in columns)} |" for name, values in cells.items()]
    return "\n".join(lines)


def _short(number: float) -> str:
    return f"{number / 1e6:.2f} M" if number >= 1e6 else f"{number:.3g}"


TABLES = {
    "claims": lambda: tally_table(load_claims(), evidence()),
    "findings": lambda: notable_findings(load_claims(), evidence()),
    "lengths": lengths_table,
    "demo": demo_table,
    "digits": digits_table,
    "mushroom": mushroom_table,
    "experiments": experiments_table,
    "bench": bench_table,
    **STUDIES,
    **MINIMIZE,
    "images": images_table,
}


def rendered(text: str) -> str:
    """A page with every table made anew between its marks."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, mark, rest = text.partition(begin)
        if mark:
            text = f"{before}{begin}{table()}\n{end}{rest.partition(end)[2]}"
    return text


def pages() -> dict[pathlib.Path, str]:
    """The pages as they should be."""
    made = {
        ROOT / "docs" / "experiments.md": experiments_page(),
        ROOT / "docs" / "claims.md": claims_page(load_claims(), evidence()),
    }
    written = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path not in made)]
    return made | {path: rendered(path.read_text()) for path in written}


if __name__ == "__main__":
    for path, text in pages().items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path.name} is not up to date: run python -m isotherm_thesis.ledger.tables")
