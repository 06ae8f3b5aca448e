"""Cells of the image experiments: stopped ones end like undisturbed ones, and finished ones are not run again."""

import dataclasses
import functools
import importlib
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest
from reproduction.tests.experiments.tiny_network import TinyNetwork

import isotherm as iso
from isotherm_thesis.experiments import EXPERIMENTS, cifar_deo, cifar_icsghmc, cifar_resghmc
from isotherm_thesis.experiments.images import problem, stages
from isotherm_thesis.experiments.images.cell import Cell, run_cell
from isotherm_thesis.experiments.images.setting import QUICK_SETTINGS, Setting
from isotherm_thesis.experiments.images.study import rows_of
from isotherm_thesis.paths import RESULTS

TINY = Setting(
    methods=(), **{**QUICK_SETTINGS, "num_train": 200, "num_held_out": 40, "num_outside": 50, "scale": 0.012}
)


@pytest.fixture(autouse=True)
def tiny_network(monkeypatch):
    monkeypatch.setitem(problem.NETWORKS, "resnet8", TinyNetwork)


class Clock:
    """Time that passes by one second a look."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1.0
        return self.now

    def perf_counter(self):
        return time.perf_counter()


def without_times(record):
    return json.dumps({name: value for name, value in record.items() if name not in ("cost", "environment")})


@pytest.mark.parametrize(
    ("module", "label"),
    [(cifar_resghmc, "reSGHMC"), (cifar_icsghmc, "ICSGHMC x P2"), (cifar_deo, "DEO*-mSGD x P3")],
    ids=["exchange", "contour", "ladder"],
)
def test_a_cell_that_was_stopped_ends_like_one_that_was_not(module, label, tmp_path, monkeypatch):
    cell = Cell("some", label, module.ARMS[label], TINY, 3)
    undisturbed = run_cell(cell, tmp_path / "whole")
    assert undisturbed["is_finished"]
    with monkeypatch.context() as patch:
        # The time is up after the first block, of two iterations; the contour has no draw by then.
        patch.setattr(iso, "sample", functools.partial(iso.sample, block_length=2))
        clock = Clock()
        patch.setattr(stages, "time", clock)
        patch.setattr("isotherm_thesis.experiments.images.cell.time", clock)
        hasty = dataclasses.replace(cell, setting=dataclasses.replace(TINY, seconds=2.0))
        assert hasty.name == cell.name
        assert not run_cell(hasty, tmp_path / "pieces")["is_finished"]
    record = run_cell(cell, tmp_path / "pieces")
    assert record["is_finished"]
    assert without_times(record) == without_times(undisturbed)
    assert not (tmp_path / "pieces" / cell.name / "run").exists()


def test_a_finished_cell_is_not_run_again(tmp_path):
    cell = Cell("some", "M-SGD", cifar_resghmc.ARMS["M-SGD"], TINY, 0)
    (tmp_path / cell.name).mkdir()
    (tmp_path / cell.name / "cell.json").write_text('{"is_finished": true, "scores": {}}')
    assert run_cell(cell, tmp_path) == {"is_finished": True, "scores": {}}


def test_cells_of_other_settings_have_other_folders():
    cell = Cell("some", "M-SGD", cifar_resghmc.ARMS["M-SGD"], TINY, 0)
    changes = [
        {"seed": 1},
        {"knobs": {"learning_rate": 0.2}},
        {"setting": dataclasses.replace(TINY, scale=0.5)},
        {"setting": dataclasses.replace(TINY, num_held_out=10)},
    ]
    names = {cell.name, *(dataclasses.replace(cell, **change).name for change in changes)}
    assert len(names) == 5
    assert dataclasses.replace(cell, setting=dataclasses.replace(TINY, seconds=5.0, cells="x")).name == cell.name


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tyro", "arviz", "arviz_base", "arviz_stats", "sklearn"):
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
import importlib
from isotherm_thesis.experiments import EXPERIMENTS
from isotherm_thesis.experiments.images import cell
for name in ("cifar-resghmc", "cifar-vr", "ood-svhn", "cifar-deo", "cifar-csghmc", "cifar-icsghmc", "cifar-hmc-reference"):
    importlib.import_module(f"isotherm_thesis.experiments.{EXPERIMENTS[name]}")
"""


def test_cells_need_neither_command_line_nor_small_data():
    subprocess.run([sys.executable, "-c", BLOCKED], check=True, cwd=pathlib.Path(__file__).parents[2])


def test_an_unknown_number_is_refused(tmp_path):
    cell = Cell("some", "M-SGD", cifar_resghmc.ARMS["M-SGD"], TINY, 0, {"zeta": 1.0})
    with pytest.raises(ValueError, match="`set` must be one of learning_rate"):
        run_cell(cell, tmp_path)


def test_parts_of_an_average_are_judged_as_well(tmp_path):
    label = "two chains without swaps"
    record = run_cell(
        Cell("some", label, cifar_resghmc.ARMS[label], dataclasses.replace(TINY, scale=0.02), 0), tmp_path
    )
    number = record["scores"]["num_networks"]
    assert record["coupling"]["swaps"] == 0
    assert {name: part["num_networks"] for name, part in record["parts"].items()} == {
        "chain at 0.1": number // 2,
        "chain at 0.15": number // 2,
        "every second epoch": number // 2,
    }
    assert len({part["NLL, logits"] for part in record["parts"].values()}) == 3
    rows = {(row.method, row.metric): row.ours for row in rows_of({label: [record]}, TINY, {}, "SGHMC")}
    for name, part in record["parts"].items():
        assert rows[f"{label}, {name}", "NLL, logits"] == part["NLL, logits"]


def test_every_second_epoch_holds_the_last_network():
    (part,) = cifar_resghmc.ARMS["SGHMC, twice as long"].parts.values()
    np.testing.assert_array_equal(part(np.full((2, 5), 0.1)), [[0.1, 0.0, 0.1, 0.0, 0.1]] * 2)


CELLS = sorted(RESULTS.glob("cifar-*/cells/*/cell.json"))


def test_recorded_cells_keep_their_names():
    assert len(CELLS) >= 100
    for path in CELLS:
        record = json.loads(path.read_text())
        module = importlib.import_module(f"isotherm_thesis.experiments.{EXPERIMENTS[record['experiment']]}")
        arm = module.ARMS[record["method"]]
        setting = Setting(methods=(), **record["setting"])
        knobs = {name: value for name, value in record["knobs"].items() if name not in arm.knobs}
        cell = Cell(record["experiment"], record["method"], arm, setting, record["seed"], knobs)
        assert cell.name == path.parent.name
        assert {**arm.knobs, **knobs} == record["knobs"]
