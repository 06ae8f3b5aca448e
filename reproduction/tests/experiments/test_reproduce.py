"""Every experiment runs from the command line, in a small version, and leaves its record and its figures."""

import dataclasses
import importlib
import json
import re

import numpy as np
import pytest
from reproduction.tests.experiments.tiny_network import TinyNetwork

from isotherm.cli.main import main
from isotherm_thesis.experiments import EXPERIMENTS
from isotherm_thesis.experiments.images import problem

TINY = {"batch_size": 100, "filters": (2, 2), "hidden": 4, "num_kept": 3, "grid": 2, "num_tuning": 1}
IMAGES = {"num_train": 200, "num_held_out": 40, "num_outside": 50, "scale": 0.008}
# Sizes that run in seconds, and the figures that must be there.
SMALL = {
    "mixture-resgld": ({"num_steps": 400, "methods": ("F = 1",)}, {"mixtures"}),
    "mixture-vr": (
        {
            "num_data": 2_000,
            "batch_size": 50,
            "num_steps": 200,
            "periods": (),
            "step_sizes": (1e-7, 1e-6),
            "batch_sizes": (20, 50),
            "num_study_steps": 80,
        },
        {"variance-reduction"},
    ),
    "round-trips": (
        {
            "num_iterations": 2_000,
            "burn_in": 500,
            "rungs": (4, 6),
            "num_rungs": 6,
            "windows": (1, 3),
            "rejections": (0.4,),
        },
        {"round-trips"},
    ),
    "few-rungs": (
        {
            "num_iterations": 500,
            "burn_in": 50,
            "rungs": (2,),
            "windows": (1, 2),
            "num_steps": 400,
            "noises": (0.0, 2.0),
            "gate_windows": (1, 3),
        },
        {"gate-bias"},
    ),
    "modes25-deo": (
        {"num_steps": 1_000, "num_replicas": 4, "targets": (0.4,), "windows": (1, 8)},
        {"target-rates", "adaptation", "methods"},
    ),
    "mixture-csgld": ({"num_steps": 5_000, "num_path_steps": 2_000}, {"statistics", "paths", "spurious-peak"}),
    "csgld-fields": ({"num_steps": 20_000, "num_large_steps": 2_000}, {"fields"}),
    "modes9": ({"num_steps": 4_000, "burn_in": 100}, {"modes"}),
    "modes25-icsgld": (
        {
            "num_steps": 2_000,
            "burn_in": 100,
            "num_particles": 20,
            "num_points": 200,
            "num_times": 2,
            "methods": ("SVGD x P5", "reSGLD x P5", "ICSGLD x P5"),
            "others": ("ICSGLD x P5, defaults",),
            "num_pilot_steps": 500,
        },
        {"methods", "convergence"},
    ),
    "modes25-resgld": ({"num_steps": 2_000}, {"methods"}),
    "energy-cdf": ({"num_steps": 3_000}, {"energy-cdf"}),
    "landscapes": ({"num_steps": 2_000, "num_points": 81}, {"surfaces"}),
    "rugged-paths": ({"share": 0.01}, {"paths-rugged", "paths-griewank"}),
    "ten-functions": (
        {"num_steps": 1_000, "functions": ("Sphere",)},
        {"hitting-times"},
    ),
    "ten-functions-limits": ({"num_steps": 500}, {"limits"}),
    "interaction": ({"num_steps": 200, "chains": (2,), "powers": (0.6,)}, {"interaction"}),
    "uci": ({"num_epochs": 10, "num_models": 2, "methods": ("SGLD", "CSGLD")}, {"rmse"}),
    "mushroom": (
        {
            "num_steps": 3,
            "num_initial": 64,
            "capacity": 64,
            "batch_size": 16,
            "hidden": (4,),
            "agents": ("EpsGreedy", "pICSGLD"),
            "rules": ("average", "single"),
        },
        {"regret"},
    ),
    "mnist-icsgld": ({**TINY, "num_epochs": 4, "methods": ("SGLD", "ICSGLD")}, {"losses", "paths"}),
    "mnist-awsgld": (
        {
            **TINY,
            "num_epochs": 8,
            "num_path_epochs": 2,
            "methods": ("AWSGLD", "high-tau SGLD"),
            "path_methods": ("AWSGLD",),
        },
        {"exploration", "paths"},
    ),
    "cifar-resghmc": ({**IMAGES, "methods": ("reSGHMC",)}, {"accuracies", "averages", "corrections"}),
    "cifar-vr": ({**IMAGES, "methods": ("VR-reSGHMC",)}, {"averages", "variances"}),
    "ood-svhn": ({**IMAGES, "methods": ("cycSGHMC",)}, {"entropies"}),
    "cifar-deo": ({**IMAGES, "methods": ("DEO*-mSGD x P3",)}, {"averages", "ladder"}),
    "cifar-csghmc": ({**IMAGES, "methods": ("saCSGHMC",)}, {"averages"}),
    "cifar-icsghmc": ({**IMAGES, "methods": ("ICSGHMC x P2",)}, {"averages", "entropies"}),
    "cifar-hmc-reference": ({**IMAGES, "methods": ("reSGHMC x P2",)}, {"averages"}),
}


def test_every_experiment_is_tried():
    assert set(SMALL) == set(EXPERIMENTS)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_small_versions(name, tmp_path, monkeypatch, capsys):
    for network in ("resnet8", "frn-resnet8"):
        monkeypatch.setitem(problem.NETWORKS, network, TinyNetwork)
    sizes, figures = SMALL[name]
    module = importlib.import_module(f"isotherm_thesis.experiments.{EXPERIMENTS[name]}")
    monkeypatch.setattr(module, "QUICK", dataclasses.replace(module.QUICK, **sizes))
    main(["reproduce", name, "--quick", "--seeds", "2", "--out", str(tmp_path / "out")])
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert set(record) == {"experiment", "scale", "rows", "config", "seed", "environment", "seconds"}
    assert (record["experiment"], record["scale"], record["config"]["num_runs"]) == (name, "quick", 2)
    assert str(tmp_path) not in json.dumps(record["config"])
    known = {"method", "metric", "thesis", "ours", "std_error", "runs"}
    assert all(set(row) - {"values"} == known for row in record["rows"])
    assert all(len(row["values"]) == row["runs"] == 2 for row in record["rows"] if "values" in row)
    assert all(np.isfinite(row["ours"]) for row in record["rows"])
    assert {path.stem for path in (tmp_path / "out").glob("*.png")} == figures
    printed = capsys.readouterr().out
    assert "thesis" in printed
    places = [(int(number), int(total)) for number, total in re.findall(r"^(\d+) of (\d+): ", printed, re.MULTILINE)]
    # A bandit says how far each agent is.
    expected = [] if name == "mushroom" else [(number, len(places)) for number in range(1, len(places) + 1)]
    assert places == expected
    assert bool(places) == (name != "mushroom")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["reproduce", "nothing"], "`name` must be one of"),
        (["reproduce", "round-trips", "--seeds", "0"], "`seeds` must be an integer of at least 1"),
        (["reproduce", "round-trips", "--data-dir", "x"], "`data_dir` must be left out for round-trips"),
        (["reproduce", "round-trips", "--scale", "0.1"], "`scale` must be left out for round-trips"),
    ],
)
def test_wrong_input_is_refused(command, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())
