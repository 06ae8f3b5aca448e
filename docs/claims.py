"""The ledger of claims: docs/claims.toml and the records in `results/` give docs/claims.md.

A check names a row of a record, and what the claim says of its number:

- `sign`: of a difference. The row is a paired difference "A - B", or `minus` names the method that is subtracted: run by run
  where the record holds the values of all runs, else with the errors of both added in squares, which the evidence calls unpaired.
- `near`: the number's interval lies within a tolerance: half of the distance to `rival`, the value that would speak against the
  claim, or `tolerance`, or a tenth of the number. It is refuted where the interval lies outside, undecided in between.
- `at_least`, `at_most`, or both. `over` names the method by which the number is divided, paired as above.

An interval reaches as many standard errors to either side as Student's law with one degree of freedom less than there are runs
needs for the tails of three standard deviations: 3.1 for 100 runs, 4.1 for 10, 9.2 for 4, 235 for 2. Numbers without an error
decide about tolerances and thresholds alone. With `decides = false` a number is shown, but decides nothing; `why` says what is
missing.

In the name of a method `*` stands for anything: the setting that was chosen.
"""

import fnmatch
import math
import tomllib
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t

from isotherm.experiments.result import shown

CONFIRMED, PARTLY, UNDECIDED, REFUTED, NOT_RUN = "confirmed", "partly", "undecided", "refuted", "not yet run"
VERDICTS = (CONFIRMED, PARTLY, UNDECIDED, REFUTED, NOT_RUN)
_TAIL, _SHARE = float(norm.sf(3.0)), 0.1
_PREFACE = (
    "# The thesis' claims, one by one",
    "",
    "Written by `python -m docs.tables` from docs/claims.toml and the records in `results/`, each made by "
    "`isotherm reproduce NAME`.",
    "",
    "- A comparison is decided where the interval of the difference leaves out zero. Differences are paired, run by run, but for "
    "those marked unpaired, whose records hold no values of single runs.",
    "- An interval reaches to either side as far as Student's law needs for the tails of three standard deviations: 3.2 standard "
    "errors for 40 runs, 4.1 for 10, 9.2 for 4, 235 for 2. Two runs decide nothing.",
    "- A number agrees with a claim where its interval lies within the tolerance that stands beside it: half of the distance to "
    "the value that would speak against the claim (that of the naive or rival method), one per cent for formulas, else a tenth, "
    "or for numbers read off a figure and for scattered times up to a quarter. It is refuted where the interval lies outside, "
    "undecided in between.",
    "- Numbers without an error, such as those of single runs, decide about tolerances and thresholds alone.",
    "- A claim of which some parts hold and others do not is confirmed partly; one of which parts are refuted and none holds is "
    "refuted. What has no record is not yet run.",
)


class Number(NamedTuple):
    """A number of a record, or what two of them give."""

    label: str
    value: float
    error: float | None
    runs: int
    note: str = ""

    @property
    def margin(self) -> float:
        """Half of the width of its interval."""
        return float(t.isf(_TAIL, self.runs - 1)) * self.error if self.error else 0.0


class Finding(NamedTuple):
    """What a check found: a verdict, and the evidence in words."""

    verdict: str
    evidence: str


def load_claims(root: Any) -> list[dict[str, Any]]:
    """The claims of docs/claims.toml."""
    return tomllib.loads((root / "docs" / "claims.toml").read_text())["claim"]


def judge(claim: dict[str, Any], records: dict[str, dict[str, Any]]) -> tuple[str, list[Finding]]:
    """The verdict on a claim, and the findings of its checks."""
    findings = [check(one, records) for one in claim["checks"]]
    found = {finding.verdict for finding in findings}
    known = found - {NOT_RUN}
    if not known:
        return NOT_RUN, findings
    if len(known) == 1:
        return known.pop(), findings
    return (PARTLY if CONFIRMED in known else REFUTED), findings


def check(given: dict[str, Any], records: dict[str, dict[str, Any]]) -> Finding:
    """One check."""
    row = _row(given["experiment"], given["method"], given["metric"], records)
    other_name = given.get("minus") or given.get("over")
    other = _row(given["experiment"], other_name, given["metric"], records) if other_name else None
    if row is None or (other_name and other is None):
        return Finding(NOT_RUN, f"`{given['experiment']}`: no record")
    if other is None:
        number = Number(row["method"], row["ours"], row["std_error"], row["runs"])
    else:
        number = (_difference if "minus" in given else _ratio)(row, other)
    words = (
        f"`{given['experiment']}`, {number.label}, {given['metric']}: {shown(number.value, number.error)}{number.note}"
    )
    if "near" in given:
        words += f", claimed {given['near']:g} ± {_room(given):.3g}"
    return Finding(_verdict(given, number) if given.get("decides", True) else UNDECIDED, words)


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
    if _are_paired(row, other):
        return Number(label, value, _error(np.subtract(row["values"], other["values"])), row["runs"])
    error = None
    if row["std_error"] is not None and other["std_error"] is not None:
        error = math.hypot(row["std_error"], other["std_error"])
    return Number(label, value, error, min(row["runs"], other["runs"]), "" if error is None else ", unpaired")


def _ratio(row: dict[str, Any], other: dict[str, Any]) -> Number:
    label, value = f"{row['method']} over {other['method']}", row["ours"] / other["ours"]
    if _are_paired(row, other):
        rests = np.subtract(row["values"], value * np.array(other["values"]))
        return Number(label, value, _error(rests) / abs(other["ours"]), row["runs"])
    error = None
    if row["std_error"] is not None and other["std_error"] is not None:
        error = abs(value) * math.hypot(row["std_error"] / row["ours"], other["std_error"] / other["ours"])
    return Number(label, value, error, min(row["runs"], other["runs"]), "" if error is None else ", unpaired")


def _are_paired(row: dict[str, Any], other: dict[str, Any]) -> bool:
    return 1 < len(row.get("values", ())) == len(other.get("values", ()))


def _error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _row(experiment: str, method: str, metric: str, records: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """The row of a record; None where there is none."""
    if experiment not in records:
        return None
    pattern = method.replace("DEO*", "DEO[*]").replace("[*][*]", "[*]")
    rows = [row for row in records[experiment]["rows"] if row["metric"] == metric]
    return next((row for row in rows if fnmatch.fnmatchcase(row["method"], pattern)), None)


def tally(claims: list[dict[str, Any]], records: dict[str, dict[str, Any]]) -> Counter[str]:
    """How many claims have which verdict."""
    return Counter(judge(claim, records)[0] for claim in claims)


def tally_table(claims: list[dict[str, Any]], records: dict[str, dict[str, Any]]) -> str:
    """The tally by section of the thesis, for the README."""
    sections = sorted({claim["section"] for claim in claims})
    lines = [f"| section | {' | '.join(VERDICTS)} | claims |", "|---" * (len(VERDICTS) + 2) + "|"]
    for section in [*sections, "all"]:
        own = [claim for claim in claims if section in ("all", claim["section"])]
        counts = tally(own, records)
        lines.append(f"| {section} | {' | '.join(str(counts[verdict]) for verdict in VERDICTS)} | {len(own)} |")
    refuted = [f"- {claim['instructive']}" for claim in claims if "instructive" in claim]
    return "\n".join([*lines, "", "The three most instructive refutations:", "", *refuted])


def claims_page(claims: list[dict[str, Any]], records: dict[str, dict[str, Any]]) -> str:
    """docs/claims.md."""
    lines = [*_PREFACE, "", tally_table(claims, records).partition("\n\nThe three")[0]]
    for section in sorted({claim["section"] for claim in claims}):
        lines += ["", f"## Section {section}", "", "| claim | where | verdict | evidence |", "|---|---|---|---|"]
        lines += [_line(claim, records) for claim in claims if claim["section"] == section]
    return "\n".join([*lines, ""])


def _line(claim: dict[str, Any], records: dict[str, dict[str, Any]]) -> str:
    verdict, findings = judge(claim, records)
    alone = len(findings) == 1
    evidence = [f.evidence if alone else f"{f.evidence} ({f.verdict})" for f in findings]
    if "why" in claim and verdict in (PARTLY, REFUTED, UNDECIDED):
        evidence.append(claim["why"])
    return f"| {claim['says']} | {claim['where']} | **{verdict}** | {'<br>'.join(evidence)} |"
