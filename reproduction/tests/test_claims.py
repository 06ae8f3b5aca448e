"""The ledger of claims: what decides a verdict, and that every check can be decided once its experiment has run."""

import json
import pathlib
import re
import types

import pytest

from isotherm.demo.result import Row
from isotherm_thesis.experiments import reproduce as reproducing
from isotherm_thesis.experiments.images.setting import Setting
from isotherm_thesis.experiments.reproduce import Outcome, reproduce
from isotherm_thesis.ledger import tables
from isotherm_thesis.ledger.claims import (
    CONFIRMED,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY,
    REFUTED,
    UNDECIDED,
    VERDICTS,
    check,
    claims_page,
    judge,
    line_of,
    load_claims,
    notable_findings,
    tally,
)
from isotherm_thesis.ledger.derived import with_derived
from isotherm_thesis.ledger.quoting import filled
from isotherm_thesis.ledger.tables import (
    distance,
    evidence,
    experiments_page,
    experiments_table,
    lengths_table,
    records,
)

# First and last lines of a chapter of the thesis, and of its supplement.
LINES = {
    2: ((487, 838), (2628, 3071)),
    3: ((839, 1160), (3072, 3377)),
    4: ((1161, 1526), (3378, 3662)),
    5: ((1527, 1868), (3663, 4625)),
    6: ((1869, 2276), (4626, 5125)),
    7: ((2277, 2557), (5126, 5167)),
}
SHORT = "0.1 of the thesis' epochs"


def record(*rows, runs=40, scale="full"):
    """A record of rows (method, value, error) of one metric."""
    each = [{"method": m, "metric": "error", "ours": v, "std_error": s, "runs": runs} for m, v, s in rows]
    return {"e": {"rows": each, "scale": scale}}


def given(**of):
    return {"experiment": "e", "metric": "error", "method": "A", **of}


@pytest.mark.parametrize(
    ("of", "rows", "verdict"),
    [
        ({"method": "A - B", "sign": "-"}, [("A - B", -1.0, 0.3)], CONFIRMED),
        ({"method": "A - B", "sign": "-"}, [("A - B", -1.0, 0.4)], UNDECIDED),
        ({"method": "A - B", "sign": "-"}, [("A - B", 1.0, 0.3)], REFUTED),
        ({"method": "A - B", "sign": "-"}, [("A - B", -1.0, None)], UNDECIDED),
        ({"method": "A", "minus": "B", "sign": "+"}, [("A", 3.0, 0.3), ("B", 1.0, 0.4)], CONFIRMED),
        ({"method": "A", "minus": "B", "sign": "+"}, [("A", 3.0, 0.6), ("B", 1.0, 0.8)], UNDECIDED),
        ({"method": "A", "near": 10.0}, [("A", 10.9, 0.01)], CONFIRMED),
        ({"method": "A", "near": 10.0}, [("A", 11.1, 0.01)], REFUTED),
        ({"method": "A", "near": 10.0}, [("A", 10.9, 0.1)], UNDECIDED),
        ({"method": "A", "near": 10.0}, [("A", 13.0, 1.1)], UNDECIDED),
        ({"method": "A", "near": 10.0}, [("A", 10.9, 0.0)], CONFIRMED),
        ({"method": "A", "near": 10.0, "rival": 10.4}, [("A", 10.1, 0.01)], CONFIRMED),
        ({"method": "A", "near": 10.0, "rival": 10.4}, [("A", 10.3, 0.01)], REFUTED),
        ({"method": "A", "near": 0.0, "tolerance": 0.1}, [("A", 0.2, 0.01)], REFUTED),
        ({"method": "A", "at_least": 1.0, "at_most": 2.0}, [("A", 1.5, 0.01)], CONFIRMED),
        ({"method": "A", "at_least": 1.0, "at_most": 2.0}, [("A", 0.5, 0.01)], REFUTED),
        ({"method": "A", "at_least": 1.0, "at_most": 2.0}, [("A", 2.5, 0.01)], REFUTED),
        ({"method": "A", "at_least": 2.0}, [("A", 2.5, 0.1)], CONFIRMED),
        ({"method": "A", "at_least": 2.0}, [("A", 2.5, 0.2)], UNDECIDED),
        ({"method": "A", "at_most": 2.0}, [("A", 2.5, 0.0)], REFUTED),
        ({"method": "A", "at_least": 100.0}, [("A", 3659.0, 126.0)], CONFIRMED),
        ({"method": "A", "at_most": 100.0}, [("A", 0.1, 0.1)], CONFIRMED),
        ({"method": "A", "over": "B", "at_least": 2.0}, [("A", 9.0, 0.1), ("B", 3.0, 0.1)], CONFIRMED),
        ({"method": "A, tuned *", "at_least": 2.0}, [("A, tuned (0.1)", 3.0, 0.1)], CONFIRMED),
        ({"method": "A", "at_least": 2.0}, [("B", 3.0, 0.1)], NOT_RUN),
        ({"method": "A", "over": "C", "at_least": 2.0}, [("A", 3.0, 0.1)], NOT_RUN),
    ],
)
def test_verdicts(of, rows, verdict):
    assert check(given(**of), record(*rows)).verdict == verdict


@pytest.mark.parametrize(("runs", "verdict"), [(2, UNDECIDED), (4, UNDECIDED), (10, CONFIRMED), (40, CONFIRMED)])
def test_few_runs_decide_less(runs, verdict):
    of = given(method="A - B", sign="-")
    assert check(of, record(("A - B", -1.0, 0.2), runs=runs)).verdict == verdict


def test_values_of_runs_are_paired():
    found = record(("A", 3.0, 1.0), ("B", 2.0, 1.0), runs=4)
    of = given(minus="B", sign="+")
    assert check(of, found).verdict == UNDECIDED
    assert check(of, found).evidence.endswith("(4 runs, unpaired)")
    found["e"]["rows"][0]["values"], found["e"]["rows"][1]["values"] = [1.0, 2.0, 4.0, 5.0], [0.0, 1.0, 3.01, 3.99]
    assert check(of, found).verdict == CONFIRMED
    ratio = given(over="B")
    assert check(ratio | {"at_least": 1.0}, found).verdict == UNDECIDED
    found["e"]["rows"][1]["values"] = [0.66, 1.34, 2.67, 3.33]
    assert check(ratio | {"at_least": 1.4, "at_most": 1.6}, found).verdict == CONFIRMED


def test_a_difference_may_be_of_two_metrics():
    found = record(("A", 3.0, 0.1), ("B", 1.0, 0.1))
    found["e"]["rows"][1]["metric"] = "size"
    of = given(minus="B", minus_metric="size", sign="+")
    assert check(of, found).verdict == CONFIRMED
    assert "A - B, error - size: 2.00 ± 0.14" in check(of, found).evidence


def test_a_number_may_be_shown_that_decides_nothing():
    of = given(at_least=2.0)
    assert check(of, record(("A", 1.0, 0.1))).verdict == REFUTED
    assert check(of | {"decides": False}, record(("A", 1.0, 0.1))).verdict == UNDECIDED


@pytest.mark.parametrize("value", [1.0, 3.0])
def test_a_single_run_decides_nothing(value):
    found = record(("A", value, None), runs=1)
    assert check(given(at_least=2.0), found).verdict == UNDECIDED
    assert check(given(near=2.0, tolerance=0.5), found).verdict == UNDECIDED
    assert check(given(at_least=2.0), found).evidence.endswith("(1 run)")
    exact = check(given(at_least=2.0, exact=True), found)
    assert exact.verdict == (CONFIRMED if value > 2 else REFUTED)
    assert exact.evidence.endswith("(exact)")


@pytest.mark.parametrize("value", [1.0, 3.0])
def test_runs_of_less_than_the_thesis_epochs_decide_nothing(value):
    found = check(given(at_least=2.0), record(("A", value, 0.1), runs=4, scale=SHORT))
    assert found.verdict == UNDECIDED
    assert found.evidence.endswith(f"(4 runs, {SHORT})")


def test_a_setting_that_is_not_the_thesis_refutes_nothing():
    of = given(at_least=2.0, unlike="The thesis gives no step size.")
    assert check(of, record(("A", 1.0, 0.1))).verdict == NOT_REPRODUCED
    assert check(of, record(("A", 2.0, 0.1))).verdict == UNDECIDED
    assert check(of, record(("A", 3.0, 0.1))).verdict == CONFIRMED
    claim = {"checks": [given(at_least=2.0)], "unlike": "The thesis gives no step size."}
    assert judge(claim, record(("A", 1.0, 0.1)))[0] == NOT_REPRODUCED
    claim["checks"].append(given(at_least=0.0))
    assert judge(claim, record(("A", 1.0, 0.1)))[0] == PARTLY


@pytest.mark.parametrize(
    ("unlike", "verdict"),
    [((True, False), REFUTED), ((False, True), REFUTED), ((True, True), NOT_REPRODUCED), ((False, False), REFUTED)],
)
def test_one_part_in_the_setting_of_the_thesis_refutes(unlike, verdict):
    checks = [given(at_least=2.0) | ({"unlike": "no step size"} if is_unlike else {}) for is_unlike in unlike]
    assert judge({"checks": checks}, record(("A", 1.0, 0.1)))[0] == verdict


def test_what_is_not_reproduced_outweighs_what_is_undecided_or_not_run():
    rows = record(("A", 1.0, 0.1), ("U", 2.0, 0.1))
    checks = [given(method=method, at_least=2.0, unlike="no step size") for method in ("A", "U", "C")]
    assert judge({"checks": checks}, rows)[0] == NOT_REPRODUCED
    assert judge({"checks": checks[1:]}, rows)[0] == UNDECIDED


@pytest.mark.parametrize("value", [1.0, 3.0])
def test_a_number_without_an_error_decides_nothing(value):
    found = check(given(at_least=2.0), record(("A", value, None)))
    assert found.verdict == UNDECIDED
    assert found.evidence.endswith("(40 runs, no error)")
    pair = record(("A", value, 0.1), ("B", 0.0, None))
    assert check(given(minus="B", at_least=2.0), pair).verdict == UNDECIDED


def test_a_ratio_may_be_of_two_metrics_of_one_method():
    found = record(("A", 8.0, 0.1), ("A", 2.0, 0.1))
    found["e"]["rows"][1]["metric"] = "size"
    ratio = check(given(over="A", over_metric="size", near=4.0), found)
    assert ratio.verdict == UNDECIDED
    assert "`e`, A, error over size: 4.00 ± 0.21" in ratio.evidence
    assert check(given(over="A", over_metric="size", at_least=2.0), found).verdict == CONFIRMED


def test_parts_of_a_claim():
    rows = record(("A", 3.0, 0.1), ("B", 1.0, 0.1), ("U", 2.0, 0.1))

    def verdict(*methods, **of):
        checks = [given(method=method, at_least=2.0, **of) for method in methods]
        return judge({"checks": checks}, rows)[0]

    assert verdict("A", "A") == CONFIRMED
    assert verdict("A", "B") == PARTLY
    assert verdict("A", "U") == PARTLY
    assert verdict("B", "B") == REFUTED
    assert verdict("B", "U") == REFUTED
    assert verdict("C", "C") == NOT_RUN


def test_a_part_that_was_not_run_keeps_a_claim_from_being_confirmed():
    rows = record(("A", 3.0, 0.1), ("U", 2.0, 0.1))

    def verdict(*methods):
        return judge({"checks": [given(method=method, at_least=2.0) for method in methods]}, rows)[0]

    assert verdict("A", "C") == PARTLY
    assert verdict("U", "C") == UNDECIDED


def test_what_is_no_part_of_a_claim_does_not_count():
    rows = record(("A", 3.0, 0.1), ("B", 1.0, 0.1))
    aside = given(method="B", at_least=2.0, is_part=False)
    assert judge({"checks": [given(at_least=2.0), aside]}, rows)[0] == CONFIRMED
    assert judge({"checks": [given(method="C", at_least=2.0), aside]}, rows)[0] == NOT_RUN
    claim = {"says": "s", "where": "w", "checks": [given(at_least=2.0), aside]}
    assert "B, error: 1.00 ± 0.10 (40 runs) (shown only)" in line_of(claim, rows)


def test_a_missing_row_is_told_from_a_missing_record():
    found = record(("A", 3.0, 0.1))
    assert check(given(experiment="f", at_least=2.0), found).evidence == "`f`: no record"
    missing = check(given(method="A", minus="C", sign="+"), found)
    assert (missing.verdict, missing.evidence) == (NOT_RUN, "`e`: its record has no row of C, error")


@pytest.mark.parametrize(
    ("methods", "verdict"),
    [(("A",), CONFIRMED), (("A", "B"), PARTLY), (("U",), UNDECIDED), (("B",), REFUTED), (("C",), NOT_RUN)],
)
def test_limits_of_the_evidence_are_shown_with_every_verdict(methods, verdict):
    rows = record(("A", 3.0, 0.1), ("B", 1.0, 0.1), ("U", 2.0, 0.1))
    checks = [given(method=method, at_least=2.0) for method in methods]
    claim = {"says": "s", "where": "w", "checks": checks, "remark": "one seed of two", "tuned": ["chosen by its range"]}
    line = line_of(claim, rows)
    assert f"**{verdict}**" in line
    assert line.endswith("<br>*Tuned:* chosen by its range<br>one seed of two |")


def test_settings_are_shown_once():
    unlike = "no step size"
    checks = [given(at_least=2.0, unlike=unlike), given(at_least=1.0, unlike=unlike)]
    line = line_of({"says": "s", "where": "w", "checks": checks}, record(("A", 3.0, 0.1)))
    assert line.count("*Setting:* no step size") == 1


def test_notes_on_chosen_settings_go_to_the_claims_that_rest_on_them(tmp_path):
    (tmp_path / "claims.toml").write_text(
        """
        tuned = [{ experiment = "e", method = "*, tuned *", says = "chosen on other seeds" }]
        [[claim]]
        checks = [{ experiment = "e", method = "A", minus = "B, tuned *" }]
        [[claim]]
        checks = [{ experiment = "e", method = "A" }, { experiment = "f", method = "B, tuned *" }]
        """
    )
    assert [claim["tuned"] for claim in load_claims(tmp_path / "claims.toml")] == [["chosen on other seeds"], []]


def test_claims_on_tuned_rows_say_what_they_were_tuned_on():
    for claim in load_claims():
        names = " ".join(f"{one['experiment']}: {one['method']}" for one in claim["checks"])
        if re.search(r"tuned|mnist-awsgld|ten-functions: \w+, AW", names):
            assert claim["tuned"]


def test_every_check_names_a_row_that_is_there_or_is_marked_as_planned():
    found = evidence()
    for claim in load_claims():
        for one in claim["checks"]:
            assert (check(one, found).verdict == NOT_RUN) == one.get("is_planned", False), (claim["says"], one)


def test_every_part_of_a_claim_has_a_condition():
    for claim in load_claims():
        for one in claim["checks"]:
            assert set(one) & {"sign", "near", "at_least", "at_most"} or not one.get("is_part", True), one


def test_claims_are_many_and_few_were_not_run():
    counts = tally(load_claims(), evidence())
    assert sum(counts.values()) == len(load_claims()) >= 115
    assert counts[NOT_RUN] <= len(load_claims()) / 6


def test_claims_are_in_the_order_of_the_thesis():
    places = [(claim["chapter"], int(re.findall(r"L(\d+)", claim["where"])[0])) for claim in load_claims()]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["claims.toml", "questions.toml", "captions.toml", "remarks.py"])
def test_numbers_with_errors_are_not_typed(name):
    text = (pathlib.Path(tables.__file__).parent / name).read_text()
    assert not re.findall(r".{30}(?:±|\+-).{10}", text)


def test_claims_are_where_the_thesis_has_them():
    claims = load_claims()
    assert {claim["chapter"] for claim in claims} == set(LINES)
    for claim in claims:
        lines = [int(line) for line in re.findall(r"L(\d+)", claim["where"])]
        assert lines
        assert all(any(first <= line <= last for first, last in LINES[claim["chapter"]]) for line in lines)
    assert "Section" not in claims_page(claims, evidence())


def test_findings_have_the_numbers_of_their_records():
    claims = load_claims()
    assert sum("notable" in claim for claim in claims) == 4
    claim = {"checks": [given(at_least=1.0)], "notable": "B has {e: B: error}, A {e: A: error: value}."}
    assert notable_findings([claim], record(("A", 3.0, 0.1), ("B", 1.0, 0.2))) == "- B has 1.00 ± 0.20, A 3."


def test_no_finding_rests_on_a_claim_without_a_number():
    found = evidence()
    for claim in load_claims():
        if "notable" in claim:
            verdict, findings = judge(claim, found)
            assert verdict in VERDICTS
            assert verdict != NOT_RUN
            assert all(finding.number for finding in findings)


def test_remarks_and_settings_take_their_numbers_from_records():
    claim = {"says": "s", "where": "w", "checks": [given(at_least=1.0)], "unlike": "A share {e: A: error}."}
    line = line_of(claim | {"remark": "A less B is {e: A minus B: error}."}, record(("A", 3.0, 0.3), ("B", 1.0, 0.4)))
    assert "*Setting:* A share 3.00 ± 0.30." in line
    assert line.endswith("A less B is 2.00 ± 0.50. |")


def test_quoted_numbers():
    found = record(("A", 3.0, 0.3), ("B", 1.5, 0.1), runs=3)
    found["e"]["rows"][0]["values"], found["e"]["rows"][1]["values"] = [2.0, 3.0, 4.0], [2.5, 1.0, 1.0]
    assert filled("{A: error}, {A: error: lowest} to {A: error: highest}", found, "e") == "3.00 ± 0.30, 2 to 4"
    assert filled("{A minus B: error: positive}", found, "e") == "2 of 3"
    assert filled("{e: A over B: error: value}", found) == "2"
    assert filled("no number", found) == "no number"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{C: error}", "must name a row of e"),
        ("{A minus C: error}", "must name a row of e"),
        ("{f: A: error}", "must name an experiment, a method and a metric"),
        ("{A}", "must name an experiment, a method and a metric"),
        ("{A: error: positive}", "must name a row with the values of its runs"),
    ],
)
def test_quotes_of_what_is_not_there_are_refused(text, match):
    with pytest.raises(ValueError, match=match):
        filled(text, record(("A", 3.0, 0.3)), "e")


def test_cells_give_rows_of_their_own(tmp_path):
    for seed, rates in enumerate(([0.1, 0.3], [0.2, 0.5])):
        cell = tmp_path / "e" / "cells" / f"A-seed{seed}" / "cell.json"
        cell.parent.mkdir(parents=True)
        report = {"acceptance of pairs": rates, "correction over time": {"epoch": [1, 2], "ratio": [0.0, 2e3 + seed]}}
        curves = {"epoch": [1.0, 4.0], "accuracy, single": [10.0, 60.0 + seed]}
        cell.write_text(json.dumps({"method": "A", "epochs": 4, "coupling": report, "curves": curves}))
    (tmp_path / "images").mkdir()
    speed = {"kind": "speed", "network": "resnet20", "method": "SGHMC", "num_chains": 4, "all_rates": [1.0, 2.0, 3.0]}
    (tmp_path / "images" / "record.json").write_text(json.dumps([speed, {"kind": "stops"}]))
    found = with_derived({"e": {"rows": [], "scale": SHORT}}, tmp_path)
    values = {row["metric"]: row["values"] for row in found["e"]["rows"]}
    assert values == {
        "lowest acceptance of a pair": [0.1, 0.2],
        "highest acceptance of a pair": [0.3, 0.5],
        "share of epochs with a correction above 1,000 losses": [0.5, 0.5],
        "largest correction over loss": [2000.0, 2001.0],
        "single accuracy, epochs after 75%": [60.0, 61.0],
    }
    assert found["images"]["rows"][0]["method"] == "resnet20, SGHMC x 4"
    assert found["images"]["rows"][0]["ours"] == 2.0


def test_the_gains_of_interacting_chains_give_the_ratio_of_the_theorem(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "record.json").write_text("[]")
    config = {"num_steps": 10**12, "powers": [0.6], "chains": [8], "gain_scale": 5.0}
    found = with_derived({"i": {"experiment": "interaction", "rows": [], "config": config}}, tmp_path)
    assert found["i"]["rows"][0]["ours"] == pytest.approx(8**0.4, rel=1e-3)


def test_the_page_of_experiments_is_short_enough_to_read():
    page = experiments_page()
    assert page.count("\n") < 900
    assert all(f"\n## {name}\n" in page for name in records())


def test_records_say_how_long_their_runs_are():
    for name, found in records().items():
        fraction = found["config"].get("scale", 1.0)
        assert found["scale"] == ("full" if fraction == 1 else f"{fraction:g} of the thesis' epochs"), name


@pytest.mark.parametrize(
    ("scale", "is_quick", "word"),
    [(1.0, False, "full"), (0.05, False, "0.05 of the thesis' epochs"), (0.05, True, "quick")],
)
def test_a_record_is_full_at_full_length_alone(scale, is_quick, word, tmp_path, monkeypatch):
    stub = types.SimpleNamespace(
        FULL=Setting(methods=("A",)),
        QUICK=Setting(methods=("A",)),
        TITLE="stub",
        ARMS={"A": None},
        run=lambda *_: Outcome([Row("A", "error", 1.0, 1.0, None, 1)], {}),
    )
    monkeypatch.setattr(reproducing.importlib, "import_module", lambda _: stub)
    reproduce("cifar-resghmc", tmp_path, is_quick=is_quick, scale=scale)
    assert json.loads((tmp_path / "result.json").read_text())["scale"] == word


def thesis_rows(*rows):
    """Rows (method, thesis, ours)."""
    return [
        {"method": m, "metric": "best accuracy, logits", "thesis": t, "ours": v, "std_error": None, "runs": 2}
        for m, t, v in rows
    ]


def test_the_readme_shows_the_row_that_is_farthest_from_the_thesis(monkeypatch):
    rows = thesis_rows(("near", 2.0, 2.1), ("half", 2.0, 1.0), ("more", 2.0, 3.5), ("ours alone", None, 9.0))
    found = {"e": {"rows": rows, "scale": "full", "seconds": 90.0, "environment": {"device": "cpu"}}}
    found["own"] = found["e"] | {"rows": rows[-1:]}
    monkeypatch.setattr(tables, "records", lambda: found)
    lines = experiments_table().splitlines()[2:]
    assert lines == ["| `e` | full | 1.5 min, cpu | 3 | 1 | half: best accuracy, logits | 2 | 1 | 2 |"]
    assert distance({"ours": 1.0, "thesis": 2.0}) == pytest.approx(distance({"ours": 4.0, "thesis": 2.0}))
    assert distance({"ours": 1.0, "thesis": 0.0}) == distance({"ours": -1.0, "thesis": 1.0}) == float("inf")


def test_the_readme_counts_what_was_run_of_the_image_tables(monkeypatch):
    def made(scale, *rows):
        config = {"data_set": "cifar100", "network": "resnet20", "scale": scale}
        word = "full" if scale == 1 else "0.2 of the thesis' epochs"
        return {"experiment": "cifar-icsghmc", "scale": word, "config": config, "rows": thesis_rows(*rows)}

    full = made(1.0, ("M-SGD x P4", 75.89, 76.0), ("M-SGD x P4, from 0.8", None, 76.0))
    part = made(0.2, ("M-SGD x P4", 75.89, 72.0), ("ICSGHMC x P4", 76.39, 72.0))
    monkeypatch.setattr(tables, "records", lambda: {"full": full, "part": part})
    lines = lengths_table().splitlines()
    assert lines[-2] == "| 6, L2243: ICSGHMC | 60 | 1 (2 seeds) | 1 (0.2, 2 seeds) | 58 |"
    assert lines[-1] == "| all | 186 | 1 | 1 | 184 |"


def test_of_several_records_the_one_with_the_most_runs_is_counted(monkeypatch):
    def made(runs):
        rows = [row | {"runs": runs} for row in thesis_rows(("SGHMC", 72.49, 64.0))]
        config = {"data_set": "cifar100", "network": "resnet20", "scale": 0.1}
        return {"experiment": "cifar-resghmc", "scale": SHORT, "config": config, "rows": rows}

    for found in ({"a": made(8), "b": made(3)}, {"a": made(3), "b": made(8)}):
        monkeypatch.setattr(tables, "records", lambda found=found: found)
        assert "| 1 (0.1, 8 seeds) |" in lengths_table()
