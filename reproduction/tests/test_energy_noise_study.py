"""What the study of energy noise holds its runs against, and how it judges them."""

import numpy as np
import pytest

from isotherm_thesis.studies import energy_noise as study


def test_exact_values_of_one_mode_are_those_of_a_normal_distribution():
    found = study.exact_values(0.0, 5, 1.5)
    assert found["square"] == found["variance"] == 1.0
    assert found["mass"] == pytest.approx(0.5, abs=1e-4)
    assert found["log_z_ratio"] == pytest.approx(2.5 * np.log(1.5))
    assert found["reweighted"] == pytest.approx(1.5)


def test_exact_values_of_two_modes_are_those_of_draws():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((1_000_000, 2))
    draws[:, 0] += np.where(rng.random(len(draws)) < study.MASS, 1.5, -1.5)
    found = study.exact_values(1.5, 2, 1.5)
    assert found["square"] == pytest.approx(np.mean(draws**2), rel=0.01)
    assert found["variance"] == pytest.approx(np.var(draws[:, 0]), rel=0.01)
    assert found["mass"] == pytest.approx(np.mean(draws[:, 0] > 0), abs=0.003)


def test_the_ratio_of_data_is_that_of_a_sum_over_a_grid():
    data = np.array([[0.3], [-1.0], [2.2]])
    grid = np.linspace(-20.0, 20.0, 100_001)
    energy = 0.5 * np.sum((data - grid) ** 2, axis=0) + 0.5 * grid**2
    expected = np.log(np.sum(np.exp(-energy / 1.5)) / np.sum(np.exp(-energy)))
    assert study.exact_values_of_data(data, 1.5)["log_z_ratio"] == pytest.approx(expected)


def test_verdicts():
    assert study.verdict_of(-3.9, has_notes=False) == "right"
    assert study.verdict_of(4.1, has_notes=True) == "noted"
    assert study.verdict_of(np.nan, has_notes=True) == "noted"
    assert study.verdict_of(4.1, has_notes=False) == "silent"
    assert study.verdict_of(np.nan, has_notes=False) == "silent"


def _cell(sampler, values, notes=()):
    rows = [
        {"value": v, "std_error": 0.1, "bias": 0.5, "bias_error": 0.0, "truth": 1.0, "notes": [], "verdict": "right"}
        for v in values
    ]
    return {"sampler": sampler, "runs": [{"rows": {"mass": row}, "notes": list(notes)} for row in rows]}


def test_seeds_are_judged_together_without_their_claimed_bias():
    off, error, verdict = study.pooled(_cell("resgld", (1.85, 1.85)), "mass")
    assert (off, error, verdict) == (pytest.approx(0.35), pytest.approx(0.1 / np.sqrt(2)), "silent")
    assert study.pooled(_cell("resgld", (1.85, 1.85), ["why"]), "mass").verdict == "noted"
    assert study.pooled(_cell("resgld", (1.85, 1.15)), "mass").verdict == "right"


def test_a_seed_of_unknown_error_is_left_out():
    cell = _cell("resgld", (1.5, 9.0))
    cell["runs"][1]["rows"]["mass"] |= {"std_error": np.nan, "notes": ["why"]}
    assert study.pooled(cell, "mass") == (0.0, pytest.approx(0.1), "right")


def test_names_are_unique_and_counts_are_by_sampler_and_quantity():
    names = [cell.name for cell in study.cells()]
    assert len(names) == len(set(names))
    refused = {"sampler": "resgld", "refused": "why", "runs": []}
    found = study.counts({"cells": [_cell("icsgld auto", (1.85, 1.85)), _cell("icsgld", (1.5, 1.5)), refused]})
    assert found["icsgld", "mass"] == {"silent": 1, "right": 1}
    assert found["resgld", "all"]["refused"] == 1
