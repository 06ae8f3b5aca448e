"""The ledger of claims: docs/claims.toml and the records in `results/` give docs/claims.md.

A check names a row of a record, and what the claim says of its number:

- `sign`: of a difference. The row is a paired difference "A - B", or `minus` names the method that is subtracted, with the errors
  of both added in squares. More than three standard errors decide.
- `near`: within three standard errors, or within a quarter of the number (or `tolerance`, where it is given).
- `at_least`, `at_most`: by more than three standard errors, or, for numbers without an error, by any margin. `over` names the
  method by which the number is divided.

In the name of a method `*` stands for anything: the setting that was chosen.
"""

import fnmatch
import math
import tomllib
from collections import Counter
from typing import Any, NamedTuple

from docs.remarks import UNDER_REVISION
from isotherm.experiments.result import shown

CONFIRMED, PARTLY, UNDECIDED, REFUTED, NOT_RUN = "confirmed", "partly", "undecided", "refuted", "not yet run"
VERDICTS = (CONFIRMED, PARTLY, UNDECIDED, REFUTED, NOT_RUN)
_ERRORS, _SHARE = 3.0, 0.25


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
    label, value, error = row["method"], row["ours"], row["std_error"]
    if other is not None and "minus" in given:
        label, value = f"{label} - {other['method']}", value - other["ours"]
        error = None if error is None or other["std_error"] is None else math.hypot(error, other["std_error"])
    elif other is not None:
        label, value, error = _ratio(row, other)
    words = f"`{given['experiment']}`, {label}, {given['metric']}: {shown(value, error)}"
    return Finding(_verdict(given, value, error), words)


def _verdict(given: dict[str, Any], value: float, error: float | None) -> str:
    if "near" in given:
        room = given.get("tolerance", _SHARE * abs(given["near"]))
        return CONFIRMED if abs(value - given["near"]) <= max(room, _ERRORS * (error or 0.0)) else REFUTED
    if "sign" in given:
        if error is None:
            return UNDECIDED
        distance = value if given["sign"] == "+" else -value
    else:
        distance = value - given["at_least"] if "at_least" in given else given["at_most"] - value
    margin = _ERRORS * (error or 0.0)
    return CONFIRMED if distance > margin or (error is None and distance == 0) else _lost(distance, margin)


def _lost(distance: float, margin: float) -> str:
    return REFUTED if distance < -margin else UNDECIDED


def _ratio(row: dict[str, Any], other: dict[str, Any]) -> tuple[str, float, float | None]:
    value, error = row["ours"] / other["ours"], None
    if row["std_error"] is not None and other["std_error"] is not None:
        error = abs(value) * math.hypot(row["std_error"] / row["ours"], other["std_error"] / other["ours"])
    return f"{row['method']} over {other['method']}", value, error


def _row(experiment: str, method: str, metric: str, records: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """The row of a record; None where there is none, or where it stands under revision."""
    if experiment not in records or _is_void(experiment, method, metric):
        return None
    pattern = method.replace("DEO*", "DEO[*]").replace("[*][*]", "[*]")
    rows = [row for row in records[experiment]["rows"] if row["metric"] == metric]
    return next((row for row in rows if fnmatch.fnmatchcase(row["method"], pattern)), None)


def _is_void(experiment: str, method: str, metric: str) -> bool:
    if experiment not in UNDER_REVISION:
        return False
    parts = UNDER_REVISION[experiment][0]
    return not parts or any(part in method or part in metric for part in parts)


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
    text = "# The thesis' claims, one by one\n\nWritten by `python -m docs.tables` from docs/claims.toml and the records in "
    text += (
        "`results/`, each made by `isotherm reproduce NAME`. Comparisons are decided by three standard errors of the "
    )
    text += "paired difference; numbers agree within three standard errors or a quarter. A claim of which some parts hold and "
    text += "others do not is confirmed partly; one of which parts are refuted and none holds is refuted. Numbers of single runs, "
    text += "without an error, decide about thresholds alone. What has no record, or one under revision, is not yet run.\n\n"
    text += tally_table(claims, records).partition("\n\nThe three")[0] + "\n"
    for section in sorted({claim["section"] for claim in claims}):
        text += f"\n## Section {section}\n\n| claim | where | verdict | evidence |\n|---|---|---|---|\n"
        for claim in claims:
            if claim["section"] == section:
                text += _line(claim, records)
    return text


def _line(claim: dict[str, Any], records: dict[str, dict[str, Any]]) -> str:
    verdict, findings = judge(claim, records)
    alone = len(findings) == 1
    evidence = [f.evidence if alone else f"{f.evidence} ({f.verdict})" for f in findings]
    if "why" in claim and verdict in (PARTLY, REFUTED, UNDECIDED):
        evidence.append(claim["why"])
    return f"| {claim['says']} | {claim['where']} | **{verdict}** | {'<br>'.join(evidence)} |\n"
