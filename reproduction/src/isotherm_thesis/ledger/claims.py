"""The ledger of claims: claims.toml and the records in `reproduction/results/` give docs/claims.md.

A check names a row of a record, and what the claim says of its number:

- `sign`: of a difference. The row is a paired difference "A - B", or `minus` names the method that is subtracted (of
  `minus_metric`, where that is another one): run by run where the record holds the values of all runs, else with the errors of
  both added in squares, which the evidence calls unpaired.
- `near`: the number's interval lies within a tolerance: half of the distance to `rival`, the value that would speak against the
  claim, or `tolerance`, or a tenth of the number. It is refuted where the interval lies outside, undecided in between.
- `at_least`, `at_most`, or both. `over` names the method by which the number is divided, paired as above.

An interval reaches as many standard errors to either side as Student's law with one degree of freedom less than there are runs
needs for the tails of three standard deviations: 3.1 for 100 runs, 4.1 for 10, 9.2 for 4, 235 for 2.

What cannot decide leaves its part of the claim undecided:

- a single run, unless the number is `exact`: computed, not sampled;
- a record of less than the thesis' epochs;
- a check with `decides = false`: what was run cannot tell, such as a setting tuned on the judged measure.

With `is_part = false` a number is shown and does not count: of a variant that the thesis does not print, or of a measure that is
not its own.

`unlike`, of a check or of the whole claim, says what the thesis leaves open of the setting, or what of it was not run. Such a
check refutes nothing. `remark` and the notes of `[[tuned]]`, which say what settings were chosen by, are shown with every verdict.

In the name of a method `*` stands for anything: the setting that was chosen.
"""

import fnmatch
import math
import pathlib
import tomllib
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t

from isotherm.demo.result import shown

CONFIRMED, PARTLY, UNDECIDED, REFUTED, NOT_RUN = "confirmed", "partly", "undecided", "refuted", "not yet run"
VERDICTS = (CONFIRMED, PARTLY, UNDECIDED, REFUTED, NOT_RUN)
_TAIL, _SHARE = float(norm.sf(3.0)), 0.1
_FULL = "full"
_PREFACE = (
    "# The thesis' claims, one by one",
    "",
    "Written by `python -m isotherm_thesis.ledger.tables` from claims.toml and the records in `reproduction/results/`, each made "
    "by `isotherm reproduce NAME`. Chapters and lines (L) are those of the thesis' LaTeX source.",
    "",
    "- **Measure.** A claim is judged on the thesis' algorithm as printed, and by its own measure first. Where a printed step is "
    "an error that another passage corrects, the corrected algorithm is run, and the evidence says so. Where the thesis shows "
    "pictures, and for best step sizes, measures of ours are further parts. Variants of ours are marked *shown only*.",
    "- **Comparisons.** A difference is decided where its interval leaves out zero. Differences are paired, run by run, except "
    "those marked unpaired, whose records hold no values of single runs.",
    "- **Intervals.** An interval reaches to either side as far as Student's law needs for the tails of three standard deviations: "
    "3.2 standard errors for 40 runs, 4.1 for 10, 9.2 for 4, 235 for 2.",
    "- **Numbers.** A number agrees with a claim where its interval lies within the tolerance beside it: half of the distance to "
    "the value that would speak against the claim (the naive or rival method's), one per cent for formulas, else a tenth, or up to "
    "a quarter for scattered times. It is refuted where the interval lies outside, undecided in between.",
    "- **What decides nothing.** Single runs, unless the number is exact (computed, not sampled), and runs of less than the "
    "thesis' epochs. A part is refuted only where the thesis gives the setting and that setting was run.",
    "- **Verdicts.** *Confirmed*: every part holds. *Partly*: some parts hold; others do not, are undecided, or were not run. "
    "*Refuted*: a part is refuted and none holds. *Not yet run*: no part has a number.",
)

CLAIMS = pathlib.Path(__file__).with_name("claims.toml")


class Number(NamedTuple):
    """A number of a record, or what two of them give."""

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


class Finding(NamedTuple):
    """What a check found: a verdict, the evidence in words, and the number alone."""

    verdict: str
    evidence: str
    number: str = ""


def load_claims(path: pathlib.Path = CLAIMS) -> list[dict[str, Any]]:
    """The claims of claims.toml, each with the notes on how settings of its checks were chosen."""
    given = tomllib.loads(path.read_text())
    return [claim | {"tuned": _tuned(claim, given["tuned"])} for claim in given["claim"]]


def _tuned(claim: dict[str, Any], notes: list[dict[str, str]]) -> list[str]:
    """The notes that are about a check of the claim."""
    named = [
        (one["experiment"], one[role]) for one in claim["checks"] for role in ("method", "minus", "over") if role in one
    ]
    return [
        note["says"]
        for note in notes
        if any(name == note["experiment"] and fnmatch.fnmatchcase(method, note["method"]) for name, method in named)
    ]


def judge(claim: dict[str, Any], records: dict[str, dict[str, Any]]) -> tuple[str, list[Finding]]:
    """The verdict on a claim, and the findings of its checks. A part that was not run keeps a claim from being confirmed."""
    shared = {"unlike": claim["unlike"]} if "unlike" in claim else {}
    findings = [check(shared | one, records) for one in claim["checks"]]
    parts = [one.get("is_part", True) for one in claim["checks"]]
    found = {finding.verdict for finding, is_part in zip(findings, parts, strict=True) if is_part}
    if len(found) == 1:
        return found.pop(), findings
    if CONFIRMED in found:
        return PARTLY, findings
    return (REFUTED if REFUTED in found else UNDECIDED), findings


def check(given: dict[str, Any], records: dict[str, dict[str, Any]]) -> Finding:
    """One check."""
    experiment, metric = given["experiment"], given["metric"]
    if experiment not in records:
        return Finding(NOT_RUN, f"`{experiment}`: no record")
    record = records[experiment]
    wanted = [(given["method"], metric)]
    other_name = given.get("minus") or given.get("over")
    if other_name:
        wanted.append((other_name, given.get("minus_metric", metric)))
    rows = [_row(record, *each) for each in wanted]
    missing = [f"{name}, {of}" for (name, of), row in zip(wanted, rows, strict=True) if row is None]
    if missing:
        return Finding(NOT_RUN, f"`{experiment}`: its record has no row of {'; '.join(missing)}")
    number = _number(given, [row for row in rows if row is not None])
    length = record.get("scale", _FULL)
    runs = "exact" if given.get("exact") else f"{number.runs:,} run{'s' * (number.runs > 1)}"
    notes = [runs, *([length] if length != _FULL else []), *([number.note] if number.note else [])]
    alone = shown(number.value, number.error)
    words = f"`{experiment}`, {number.label}, {number.metric}: {alone} ({', '.join(notes)})"
    if "near" in given:
        words += f", claimed {given['near']:g} ± {_room(given):.3g}"
    can_decide = given.get("decides", True) and length == _FULL and (number.runs > 1 or given.get("exact", False))
    verdict = _verdict(given, number) if can_decide else UNDECIDED
    return Finding(UNDECIDED if verdict == REFUTED and "unlike" in given else verdict, words, alone)


def _number(given: dict[str, Any], rows: list[dict[str, Any]]) -> Number:
    if len(rows) == 1:
        row = rows[0]
        return Number(row["method"], row["metric"], row["ours"], row["std_error"], row["runs"])
    return (_difference if "minus" in given else _ratio)(*rows)


def _verdict(given: dict[str, Any], number: Number) -> str:
    if "near" in given:
        distance = _room(given) - abs(number.value - given["near"])
    elif "sign" in given:
        if number.error is None:
            return UNDECIDED
        distance = number.value if given["sign"] == "+" else -number.value
    else:
        above = number.value - given.get("at_least", -math.inf)
        distance = min(above, given.get("at_most", math.inf) - number.value)
    if distance > number.margin or (number.error is None and distance == 0):
        return CONFIRMED
    return REFUTED if distance < -number.margin else UNDECIDED


def _room(given: dict[str, Any]) -> float:
    if "rival" in given:
        return abs(given["near"] - given["rival"]) / 2
    return given.get("tolerance", _SHARE * abs(given["near"]))


def _difference(row: dict[str, Any], other: dict[str, Any]) -> Number:
    label, value = f"{row['method']} - {other['method']}", row["ours"] - other["ours"]
    metric = row["metric"] if row["metric"] == other["metric"] else f"{row['metric']} - {other['metric']}"
    if _are_paired(row, other):
        return Number(label, metric, value, _error(np.subtract(row["values"], other["values"])), row["runs"])
    error = None
    if row["std_error"] is not None and other["std_error"] is not None:
        error = math.hypot(row["std_error"], other["std_error"])
    return Number(label, metric, value, error, min(row["runs"], other["runs"]), "" if error is None else "unpaired")


def _ratio(row: dict[str, Any], other: dict[str, Any]) -> Number:
    label, value = f"{row['method']} over {other['method']}", row["ours"] / other["ours"]
    if _are_paired(row, other):
        rests = np.subtract(row["values"], value * np.array(other["values"]))
        return Number(label, row["metric"], value, _error(rests) / abs(other["ours"]), row["runs"])
    error = None
    if row["std_error"] is not None and other["std_error"] is not None:
        error = abs(value) * math.hypot(row["std_error"] / row["ours"], other["std_error"] / other["ours"])
    runs = min(row["runs"], other["runs"])
    return Number(label, row["metric"], value, error, runs, "" if error is None else "unpaired")


def _are_paired(row: dict[str, Any], other: dict[str, Any]) -> bool:
    return 1 < len(row.get("values", ())) == len(other.get("values", ()))


def _error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _row(record: dict[str, Any], method: str, metric: str) -> dict[str, Any] | None:
    """The row of a record; None where there is none."""
    pattern = method.replace("DEO*", "DEO[*]").replace("[*][*]", "[*]")
    rows = [row for row in record["rows"] if row["metric"] == metric]
    return next((row for row in rows if fnmatch.fnmatchcase(row["method"], pattern)), None)


def tally(claims: list[dict[str, Any]], records: dict[str, dict[str, Any]]) -> Counter[str]:
    """How many claims have which verdict."""
    return Counter(judge(claim, records)[0] for claim in claims)


def tally_table(claims: list[dict[str, Any]], records: dict[str, dict[str, Any]]) -> str:
    """The tally by chapter of the thesis."""
    chapters = sorted({claim["chapter"] for claim in claims})
    lines = [f"| chapter | {' | '.join(VERDICTS)} | claims |", "|---" * (len(VERDICTS) + 2) + "|"]
    for chapter in [*chapters, "all"]:
        own = [claim for claim in claims if chapter in ("all", claim["chapter"])]
        counts = tally(own, records)
        lines.append(f"| {chapter} | {' | '.join(str(counts[verdict]) for verdict in VERDICTS)} | {len(own)} |")
    return "\n".join(lines)


def notable_findings(claims: list[dict[str, Any]], records: dict[str, dict[str, Any]]) -> str:
    """What stands out, with the numbers of the checks in the place of {0}, {1} and so on."""
    lines = []
    for claim in claims:
        if "notable" in claim:
            numbers = [finding.number for finding in judge(claim, records)[1]]
            lines.append(f"- {claim['notable'].format(*numbers)}")
    return "\n".join(lines)


def claims_page(claims: list[dict[str, Any]], records: dict[str, dict[str, Any]]) -> str:
    """docs/claims.md."""
    lines = [*_PREFACE, "", tally_table(claims, records)]
    for chapter in sorted({claim["chapter"] for claim in claims}):
        lines += ["", f"## Chapter {chapter}", "", "| claim | where | verdict | evidence |", "|---|---|---|---|"]
        lines += [line_of(claim, records) for claim in claims if claim["chapter"] == chapter]
    return "\n".join([*lines, ""])


def line_of(claim: dict[str, Any], records: dict[str, dict[str, Any]]) -> str:
    """The line of a claim: its verdict, and the evidence with all that limits it, whatever the verdict."""
    verdict, findings = judge(claim, records)
    evidence = [findings[0].evidence]
    if len(findings) > 1:
        parts = [one.get("is_part", True) for one in claim["checks"]]
        evidence = [
            f"{finding.evidence} ({finding.verdict if is_part else 'shown only'})"
            for finding, is_part in zip(findings, parts, strict=True)
        ]
    unlike = [each["unlike"] for each in (claim, *claim["checks"]) if "unlike" in each]
    evidence += [f"*Setting:* {text}" for text in dict.fromkeys(unlike)]
    evidence += [f"*Tuned:* {text}" for text in claim.get("tuned", ())]
    if "remark" in claim:
        evidence.append(claim["remark"])
    return f"| {claim['says']} | {claim['where']} | **{verdict}** | {'<br>'.join(evidence)} |"
