"""Specifications: every way to run one completes it first, after all that can be refused was refused."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.exchange import Exchange, LadderSearch
from isotherm.pilots import ladder as ladder_pilot
from isotherm.pilots import partition as partition_pilot

START = jnp.full(2, 1.0)
SEARCHED = {
    "ladder": iso.resgld(0.05, ladder=LadderSearch(200)),
    "partition": iso.icsgld(0.05, partition=iso.contour.PartitionSearch(100)),
}


def wells(x):
    return jnp.sum(0.5 * x**2 + 2.0 * jnp.cos(3.0 * x))


def forbid_pilots(monkeypatch):
    def watch(*_, **__):
        raise AssertionError("a pilot ran")

    monkeypatch.setattr(ladder_pilot, "watch", watch)
    monkeypatch.setattr(partition_pilot, "watch", watch)


@pytest.fixture
def no_pilots(monkeypatch):
    forbid_pilots(monkeypatch)


def found(run) -> Any:
    (choice,) = run.choices
    return choice["value"]


@pytest.mark.parametrize("name", SEARCHED)
def test_sample_and_sweep_complete_a_specification_alike(name):
    settings: dict[str, Any] = {"num_steps": 20, "init": START, "progress": False}
    alone = iso.sample(wells, SEARCHED[name], **settings)
    swept = iso.sweep(wells, {"one": SEARCHED[name]}, **settings)["one"]
    assert found(swept) == found(alone)
    np.testing.assert_array_equal(swept.draws, alone.draws)
    resolved = iso.resolve(wells, SEARCHED[name], init=START, progress=False)
    np.testing.assert_array_equal(iso.sample(wells, resolved.sampler, **settings).draws, alone.draws)


def test_a_ladder_for_blackjax_is_found():
    pytest.importorskip("blackjax")
    algorithm = iso.to_blackjax(SEARCHED["ladder"], wells, pilot_init=START)
    coupling: Any = iso.resolve(wells, SEARCHED["ladder"], init=START, progress=False).sampler.coupling
    state = algorithm.init(START, jax.random.key(0))
    assert state.position.shape == (coupling.ladder.num_rungs, 2)


@pytest.mark.parametrize("name", SEARCHED)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_steps": 0}, "`num_steps` must be an integer of at least 1"),
        ({"thinning": 0}, "`thinning` must be"),
        ({"init": lambda key: "nothing"}, "`init` must"),
        ({"collect": 3}, "`collect` must be"),
    ],
)
def test_wrong_settings_are_refused_before_a_pilot(name, wrong, message, no_pilots):
    settings: dict[str, Any] = {"num_steps": 20, "init": START, **wrong}
    with pytest.raises(ValueError, match=message):
        iso.sample(wells, SEARCHED[name], **settings)


@pytest.mark.parametrize("name", SEARCHED)
def test_a_folder_in_use_is_refused_before_a_pilot(name, tmp_path, no_pilots):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="`out` must be"):
        iso.sample(wells, SEARCHED[name], num_steps=20, init=START, out=tmp_path)


@pytest.mark.parametrize("name", SEARCHED)
def test_a_finished_run_is_returned_without_a_pilot(name, tmp_path, monkeypatch):
    run = iso.sample(wells, SEARCHED[name], num_steps=20, init=START, out=tmp_path / "run", progress=False)
    forbid_pilots(monkeypatch)
    again = iso.resume(tmp_path / "run", wells, SEARCHED[name], progress=False)
    np.testing.assert_array_equal(again.draws[:], run.draws[:])
    assert found(again) == found(run)


class Swaps(Exchange):
    """A user's kind of replica exchange, under another name."""


def test_a_subclass_keeps_the_checks_of_its_part():
    given = iso.resgld(1e-3, temperatures=(1.0, 2.0, 4_000.0))
    coupling: Any = given.coupling
    fields = {field.name: getattr(coupling, field.name) for field in dataclasses.fields(coupling)}
    own = dataclasses.replace(given, coupling=Swaps(**fields))
    runs = [
        iso.sample(lambda x: 50.0 * jnp.sum(x**2), sampler, num_steps=300, init=jnp.ones(20), progress=False)
        for sampler in (given, own)
    ]
    names = [[check.name for check in run.checks] for run in runs]
    assert "no-round-trips" in names[0]
    assert names[0] == names[1]
