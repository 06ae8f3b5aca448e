"""The ledger of claims: what decides a verdict, and that every check can be decided once its experiment has run."""

import json
import types

import pytest

from docs.claims import CONFIRMED, NOT_RUN, PARTLY, REFUTED, UNDECIDED, check, judge, load_claims, tally
from docs.tables import ROOT, records
from isotherm.experiments import reproduce as reproducing
from isotherm.experiments.images.setting import Setting
from isotherm.experiments.reproduce import Outcome, reproduce
from isotherm.experiments.result import Row

# Records of image experiments that are still to be made.
PLANNED = {
    "cifar-resghmc-factors",
    "cifar-resghmc-batches",
    "cifar-resghmc-cifar10",
    "cifar-vr-cifar10",
    "ood-svhn",
    "cifar-deo",
}


def record(*rows, runs=40):
    """A record of rows (method, value, error) of one metric."""
    each = [{"method": m, "metric": "error", "ours": v, "std_error": s, "runs": runs} for m, v, s in rows]
    return {"e": {"rows": each}}


@pytest.mark.parametrize(
    ("given", "rows", "verdict"),
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
        ({"method": "A", "near": 10.0}, [("A", 10.9, None)], CONFIRMED),
        ({"method": "A", "near": 10.0, "rival": 10.4}, [("A", 10.1, 0.01)], CONFIRMED),
        ({"method": "A", "near": 10.0, "rival": 10.4}, [("A", 10.3, 0.01)], REFUTED),
        ({"method": "A", "near": 0.0, "tolerance": 0.1}, [("A", 0.2, 0.01)], REFUTED),
        ({"method": "A", "at_least": 1.0, "at_most": 2.0}, [("A", 1.5, 0.01)], CONFIRMED),
        ({"method": "A", "at_least": 1.0, "at_most": 2.0}, [("A", 0.5, 0.01)], REFUTED),
        ({"method": "A", "at_least": 1.0, "at_most": 2.0}, [("A", 2.5, 0.01)], REFUTED),
        ({"method": "A", "at_least": 2.0}, [("A", 2.5, 0.1)], CONFIRMED),
        ({"method": "A", "at_least": 2.0}, [("A", 2.5, 0.2)], UNDECIDED),
        ({"method": "A", "at_most": 2.0}, [("A", 2.5, None)], REFUTED),
        ({"method": "A", "over": "B", "at_least": 2.0}, [("A", 9.0, 0.1), ("B", 3.0, 0.1)], CONFIRMED),
        ({"method": "A, tuned *", "at_least": 2.0}, [("A, tuned (0.1)", 3.0, 0.1)], CONFIRMED),
        ({"method": "A", "at_least": 2.0}, [("B", 3.0, 0.1)], NOT_RUN),
        ({"method": "A", "over": "C", "at_least": 2.0}, [("A", 3.0, 0.1)], NOT_RUN),
    ],
)
def test_verdicts(given, rows, verdict):
    assert check({"experiment": "e", "metric": "error", **given}, record(*rows)).verdict == verdict


@pytest.mark.parametrize(("runs", "verdict"), [(2, UNDECIDED), (4, UNDECIDED), (10, CONFIRMED), (40, CONFIRMED)])
def test_few_runs_decide_less(runs, verdict):
    given = {"experiment": "e", "metric": "error", "method": "A - B", "sign": "-"}
    assert check(given, record(("A - B", -1.0, 0.2), runs=runs)).verdict == verdict


def test_values_of_runs_are_paired():
    found = record(("A", 3.0, 1.0), ("B", 2.0, 1.0), runs=4)
    given = {"experiment": "e", "metric": "error", "method": "A", "minus": "B", "sign": "+"}
    assert check(given, found).verdict == UNDECIDED
    assert check(given, found).evidence.endswith("unpaired")
    found["e"]["rows"][0]["values"], found["e"]["rows"][1]["values"] = [1.0, 2.0, 4.0, 5.0], [0.0, 1.0, 3.01, 3.99]
    assert check(given, found).verdict == CONFIRMED
    ratio = {"experiment": "e", "metric": "error", "method": "A", "over": "B"}
    assert check(ratio | {"at_least": 1.0}, found).verdict == UNDECIDED
    found["e"]["rows"][1]["values"] = [0.66, 1.34, 2.67, 3.33]
    assert check(ratio | {"at_least": 1.4, "at_most": 1.6}, found).verdict == CONFIRMED


def test_a_number_may_be_shown_that_decides_nothing():
    given = {"experiment": "e", "metric": "error", "method": "A", "at_least": 2.0}
    assert check(given, record(("A", 1.0, None))).verdict == REFUTED
    assert check(given | {"decides": False}, record(("A", 1.0, None))).verdict == UNDECIDED


def test_parts_of_a_claim():
    rows = record(("A", 3.0, 0.1), ("B", 1.0, 0.1))

    def verdict(*methods):
        checks = [{"experiment": "e", "method": method, "metric": "error", "at_least": 2.0} for method in methods]
        return judge({"checks": checks}, rows)[0]

    assert verdict("A", "A") == CONFIRMED
    assert verdict("A", "B") == PARTLY
    assert verdict("B", "B") == REFUTED
    assert verdict("A", "C") == CONFIRMED
    assert verdict("C", "C") == NOT_RUN


def test_every_check_names_a_row_or_an_experiment_that_is_still_to_run():
    found, claims = records(), load_claims(ROOT)
    assert len(claims) >= 40
    assert sum(tally(claims, found).values()) == len(claims)
    assert sum("instructive" in claim for claim in claims) == 3
    for claim in claims:
        verdict, findings = judge(claim, found)
        assert verdict in (REFUTED, PARTLY) or "instructive" not in claim
        for given, finding in zip(claim["checks"], findings, strict=True):
            if given["experiment"] not in found:
                assert given["experiment"] in PLANNED
                assert finding.verdict == NOT_RUN


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
