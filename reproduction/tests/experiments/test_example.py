"""The worked example of the README, at a small size."""

import json

import numpy as np
from examples.digits import main


def test_four_ensembles_side_by_side(tmp_path):
    rows = main(100, tmp_path / "result.json")
    assert {row.method for row in rows} == {"M-SGD", "SGHMC", "reSGHMC", "ICSGHMC"}
    assert {row.metric for row in rows} == {"accuracy", "nll", "brier", "ece", "auroc"}
    assert all(np.isfinite(row.ours) for row in rows)
    assert json.loads((tmp_path / "result.json").read_text())["experiment"] == "digits-example"
