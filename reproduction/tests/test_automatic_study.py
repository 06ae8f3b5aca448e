"""How the study of `iso.sample(problem, budget=...)` judges answers, and keeps its record."""

import json
import multiprocessing

import numpy as np
import pytest

from isotherm_thesis.studies import automatic as study
from isotherm_thesis.studies.automatic_problems import Problem, Quantity, at, normal_prior
from isotherm_thesis.studies.automatic_rivals import Answer, normal_estimate, takes

QUANTITIES = (
    Quantity("mass a", "mass", lambda x: x[0], 0.5, 0.5),
    Quantity("mass b", "mass", lambda x: x[0], 0.3, 0.46),
    Quantity("x", "moment", lambda x: x[0], 1.0, 2.0),
)
PROBLEM = Problem("one", "few modes", 1, lambda x: 0.0 * x[0], normal_prior([0.0], 1.0), at([0.0]), QUANTITIES, -1.0)


def row(values=(0.5, 0.3, 1.0), errors=(0.01, 0.01, 0.02), log_z=(-1.0, 0.01), notes=(), tool="nuts", seed=0):
    names = [quantity.name for quantity in QUANTITIES]
    found = {name: normal_estimate(value, error) for name, value, error in zip(names, values, errors, strict=True)}
    answer = Answer(found, log_z, 1_000, notes)
    estimates = {name: study.estimate_row(one) for name, one in answer.estimates.items()}
    numbers = None if answer.log_z is None else list(answer.log_z)
    kept = {
        "evaluations": 1_000,
        "seconds": 2.0,
        "cpu_seconds": 1.0,
        "log_z": numbers,
        "notes": list(notes),
        "estimates": estimates,
    }
    return {"problem": "one", "tool": tool, "seed": seed, **kept}


def test_a_right_answer():
    found = study.verdict_of(PROBLEM, row())
    assert found == study.Verdict(0.0, 0.0, 0.0, (3, 3), ())


def test_errors_are_total_variation_and_standard_deviations():
    found = study.verdict_of(PROBLEM, row(values=(0.6, 0.3, 1.5), log_z=(-1.3, 0.1)))
    # What the first set has too much, the rest has too little.
    assert found.masses == pytest.approx(0.1)
    assert found.moments == pytest.approx(0.25)
    assert found.log_z == pytest.approx(-0.3)
    assert found.covered == (1, 3)
    assert study.verdict_of(PROBLEM, row(values=(0.6, 0.2, 1.0))).masses == pytest.approx(0.1)


def test_silence():
    silent = lambda **options: study.verdict_of(PROBLEM, row(**options)).silent  # noqa: E731
    assert silent(values=(0.56, 0.3, 1.0)) == ("mass a",)
    assert silent(values=(0.51, 0.3, 1.0), errors=(0.001, 0.01, 0.02)) == ()
    assert silent(values=(0.56, 0.3, 1.0), errors=(0.02, 0.01, 0.02)) == ()
    assert silent(values=(0.56, 0.3, 1.0), notes=("R-hat 1.4",)) == ()
    assert silent(values=(0.5, 0.3, 1.09)) == ()
    assert silent(values=(0.5, 0.3, 1.11)) == ("x",)
    assert silent(values=(1.0, 0.0, 1.0), errors=(0.0, 0.0, 0.02)) == ("mass a", "mass b")
    assert silent(log_z=(-1.3, 0.01)) == ("log Z",)
    assert silent(log_z=(-1.3, 0.1)) == silent(log_z=None) == ()


def test_a_note_of_an_estimate_is_one():
    found = row(values=(0.56, 0.3, 1.0))
    found["estimates"]["mass a"]["notes"] = ["why"]
    assert study.verdict_of(PROBLEM, found).silent == ()


def test_an_unknown_error_does_not_excuse():
    found = row(values=(0.56, 0.3, 1.0), errors=(np.nan, 0.01, 0.02))
    verdict = study.verdict_of(PROBLEM, found)
    assert (verdict.silent, verdict.covered) == (("mass a",), (2, 2))


def test_a_value_that_is_missing_is_no_error():
    verdict = study.verdict_of(PROBLEM, row(values=(np.nan, 0.3, 1.0)))
    assert np.isnan(verdict.masses)
    assert verdict.silent == ()


def test_tables_have_all_tools_and_what_went_wrong(monkeypatch):
    monkeypatch.setattr(study, "builders", lambda: {"one": lambda: PROBLEM})
    failed = {
        "problem": "one",
        "tool": "smc",
        "seed": 0,
        "seconds": 1.0,
        "cpu_seconds": 1.0,
        "failure": ["crashed", "why"],
    }
    rows = [row(), row(values=(0.6, 0.3, 1.0), seed=1), failed]
    found = study.tables(rows)
    assert "| one (few modes) |   | 0.050 0.000 0.000, **silent 1** | crashed 1 |" in found
    assert "| nuts | 2 | 0 | 0 | 0 | 1 | 0 | 0 | 5 of 6 | 2 | 1 | 1e+03 |" in found
    assert "- one, nuts, seed 1: mass a" in found
    assert "- one, smc, seed 0: crashed: why" in found


def test_of_two_rows_on_one_run_the_later_counts(tmp_path):
    path = tmp_path / "record.jsonl"
    assert study.read(path) == []
    path.write_text(
        "".join(json.dumps(row(seed=seed, notes=notes)) + "\n" for seed, notes in ((0, ()), (1, ()), (0, ("b",))))
    )
    assert [one["notes"] for one in study.read(path)] == [["b"], []]


def test_failures_are_told_apart(monkeypatch):
    def refuse(problem, seed):
        raise ValueError("no")

    def crash(problem, seed):
        raise RuntimeError("oh")

    monkeypatch.setitem(study.RIVALS, "nuts", refuse)
    monkeypatch.setitem(study.RIVALS, "smc", crash)
    assert study.row_of(PROBLEM, "nuts", 0)["failure"][0] == "refused"
    assert study.row_of(PROBLEM, "smc", 0)["failure"][0] == "crashed"


def test_nested_samplers_have_few_dimensions():
    assert takes("dynesty", PROBLEM)
    assert not takes("nautilus", PROBLEM)
    assert takes("nuts", PROBLEM)


def test_a_process_that_dies_costs_one_seed(monkeypatch):
    class Dying:
        """A process that answers once, and dies in its second run."""

        num_started, exitcode = 0, -9

        def __init__(self, target, args, daemon):
            self.seeds, self.sender = args[2:]

        def start(self):
            Dying.num_started += 1
            self.sender.send(("began", self.seeds[0]))
            self.sender.send(("row", {"seed": self.seeds[0]}))
            if len(self.seeds) == 1:
                self.sender.send(("done", None))

        def join(self):
            """Nothing runs."""

    context = multiprocessing.get_context("spawn")
    monkeypatch.setattr(context, "Process", Dying, raising=False)
    monkeypatch.setattr(study.multiprocessing, "get_context", lambda kind: context)
    rows = list(study.rows_of("one", "nuts", [0, 1, 2]))
    assert [one["seed"] for one in rows] == [0, 1, 2]
    assert rows[1]["failure"] == ["crashed", "the process ended with exit code -9"]
    assert Dying.num_started == 2
