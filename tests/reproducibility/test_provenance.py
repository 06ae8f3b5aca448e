"""What a folder says about where a run came from, and how other libraries open it."""

import datetime
import json
import os
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import isotherm as iso
from isotherm.driver import provenance
from isotherm.run.storage.json_files import read_checked


def energy(x):
    return 0.5 * jnp.sum(x["a"] ** 2) + x["b"] ** 2


START = {"a": jnp.ones(3), "b": jnp.ones(())}
SETTINGS: dict[str, Any] = {"num_steps": 200, "seed": 4, "init": START, "block_length": 20, "checkpoint_every": 0.0}
SETTINGS["measure_bias"] = False


def log_of(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def git(folder, *arguments):
    names = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", folder, *names, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "model.py").write_text("x = 1\n")
    git(folder, "init")
    git(folder, "add", "model.py")
    git(folder, "commit", "-m", "first")
    monkeypatch.chdir(folder)
    return folder


def test_the_folder_says_where_a_run_came_from(tmp_path, checkout, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    iso.sample(energy, iso.sgld(0.1), num_chains=2, out=tmp_path / "run", **SETTINGS)
    stored = read_checked(tmp_path / "run" / "run.json")
    found = stored["environment"]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert found["git"] == {"commit": commit, "is_dirty": False}
    assert found["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"
    assert found["NPROC"] == os.environ.get("NPROC")
    assert found["jax"] == jax.__version__
    assert found["isotherm"] is not None
    assert (found["device"], found["num_devices"]) == (jax.devices()[0].device_kind, jax.device_count())
    assert (stored["config"]["settings"]["seed"], stored["config"]["thread_pool_size"] > 0) == (4, True)
    assert iso.load(tmp_path / "run").environment == found


def test_changed_files_of_the_checkout_are_noticed(checkout):
    (checkout / "notes").write_text("not tracked")
    before = provenance.git_state()
    (checkout / "model.py").write_text("x = 2\n")
    after = provenance.git_state()
    assert before is not None
    assert after == {**before, "is_dirty": True}
    assert not before["is_dirty"]


@pytest.mark.parametrize("where", ["nowhere", "no git", "slow", "gone"])
def test_a_run_needs_no_git(tmp_path, monkeypatch, where):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    if where == "no git":
        monkeypatch.setenv("PATH", "")
    elif where == "slow":
        monkeypatch.setattr(provenance, "_GIT", ("sleep",))
        monkeypatch.setattr(provenance, "_asked", lambda *_: subprocess.run(["sleep", "9"], timeout=0.1, check=True))
    elif where == "gone":
        (tmp_path / "here").rmdir()
    assert provenance.git_state() is None


def test_the_log_has_a_line_for_every_start_and_end(tmp_path):
    folder = tmp_path / "run"
    stopped = lambda status: status.iteration == 60  # noqa: E731
    iso.sample(energy, iso.sgld(0.1), out=folder, callback=stopped, **SETTINGS)
    # A crash may cut a line.
    (folder / "log.jsonl").write_text((folder / "log.jsonl").read_text() + '{"event": "sta')

    def failing(status):
        raise KeyError

    with pytest.raises(KeyError):
        iso.resume(folder, energy, iso.sgld(0.1), callback=failing, checkpoint_every=0.0)
    iso.resume(folder, energy, iso.sgld(0.1), measure_bias=False)
    text = (folder / "log.jsonl").read_text().splitlines()
    assert text.pop(2) == '{"event": "sta'
    lines = [json.loads(line) for line in text]
    events = [(line["event"], line["iteration"], line.get("error")) for line in lines]
    started = [("start", 0, None), ("end", 60, None), ("resume", 60, None), ("end", 200, "KeyError")]
    assert events == [*started, ("resume", 200, None), ("end", 200, None)]
    times = [datetime.datetime.fromisoformat(line["time"]) for line in lines]
    assert times == sorted(times)
    assert all(line["environment"]["jax"] == jax.__version__ for line in lines if line["event"] != "end")
    assert lines[1]["seconds"] > 0
    assert lines[0]["process"] == os.getpid()


def test_a_log_that_cannot_be_written_stops_no_run(tmp_path):
    iso.sample(energy, iso.sgld(0.1), out=tmp_path / "run", **SETTINGS)
    (tmp_path / "run" / "log.jsonl").unlink()
    (tmp_path / "run" / "log.jsonl").mkdir()
    assert iso.resume(tmp_path / "run", energy, iso.sgld(0.1), num_steps=300, measure_bias=False).num_steps == 300


@pytest.mark.parametrize("num_runs", [None, 2])
def test_xarray_opens_a_folder_with_names_of_axes(tmp_path, num_runs):
    ladder = iso.resgld(0.1, temperatures=(1.0, 2.0, 4.0))
    run = iso.sample(energy, ladder, out=tmp_path / "run", num_runs=num_runs, **SETTINGS)
    tree = xarray.open_datatree(tmp_path / "run", engine="zarr")
    found = tree["records"].dataset
    lead = ("chain", "draw") if num_runs is None else ("run", "chain", "draw")
    assert found["draws-a"].dims == (*lead, "draws-a_dim_0")
    assert found["draws-b"].dims == found["energies"].dims == found["log_weights"].dims == lead
    assert found["observed-rung"].dims == (*lead, "observed-rung_dim_0")
    np.testing.assert_array_equal(found["draws-a"].values, run.draws["a"][:])
    np.testing.assert_array_equal(found["observed-rung"].values, run.observed["rung"][:])
    mean = found["draws-b"].mean([*lead]).item()
    assert mean == pytest.approx(float(np.mean(run.draws["b"][:])), rel=1e-5)
    run.save(tmp_path / "saved")
    again = xarray.open_datatree(tmp_path / "saved", engine="zarr")
    np.testing.assert_array_equal(again["records"].dataset["draws-a"].values, run.draws["a"][:])


def test_names_of_leaves_may_have_slashes(tmp_path):
    well = lambda x: jnp.sum(x["layer/~/w"] ** 2) + jnp.sum(x["b"] ** 2)  # noqa: E731
    start = {"layer/~/w": jnp.ones(3), "b": jnp.ones(2)}
    run = iso.sample(well, iso.sgld(0.1), out=tmp_path / "run", **{**SETTINGS, "init": start})
    tree = xarray.open_datatree(tmp_path / "run", engine="zarr")
    np.testing.assert_array_equal(tree["records/draws-layer/~"].dataset["w"].values, run.draws["layer/~/w"][:])
    np.testing.assert_array_equal(tree["records"].dataset["draws-b"].values, run.draws["b"][:])


@pytest.mark.parametrize("name", ["..", "../../x", "/x"])
def test_names_of_leaves_do_not_lead_out_of_the_folder(tmp_path, name):
    (tmp_path / "precious").touch()
    well = lambda x: jnp.sum(x[name] ** 2)  # noqa: E731
    with pytest.raises(ValueError, match="`init` must be a position whose names can be those of files; got"):
        iso.sample(well, iso.sgld(0.1), out=tmp_path / "run", **{**SETTINGS, "init": {name: jnp.ones(3)}})
    assert (tmp_path / "precious").exists()
    assert not (tmp_path / "x").exists()


def test_xarray_opens_a_run_that_is_going_on(tmp_path):
    folder, seen = tmp_path / "run", []

    def callback(status):
        with xarray.open_datatree(folder, engine="zarr") as tree:
            draws = tree["records"].dataset["draws-b"].values
        seen.append(int(np.isfinite(draws).all(axis=0).sum()))
        assert draws.shape == (2, 200)

    iso.sample(energy, iso.sgld(0.1), num_chains=2, out=folder, callback=callback, **SETTINGS)
    # Draws that are not yet made are NaN.
    assert seen == list(range(20, 201, 20))
    iso.resume(folder, energy, iso.sgld(0.1), num_steps=300, measure_bias=False)
    assert xarray.open_datatree(folder, engine="zarr")["records"].dataset["draws-b"].shape == (2, 300)


def test_other_readers_see_damage_too(tmp_path):
    iso.sample(energy, iso.sgld(0.1), out=tmp_path / "run", **SETTINGS)
    chunk = tmp_path / "run" / "records" / "energies" / "0.0"
    content = bytearray(chunk.read_bytes())
    content[5] ^= 1
    chunk.write_bytes(content)
    tree = xarray.open_datatree(tmp_path / "run", engine="zarr")
    with pytest.raises(ValueError, match=r"(?i)checksum"):
        tree["records/energies"].load()
