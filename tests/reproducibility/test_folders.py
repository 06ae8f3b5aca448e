"""What lies in a folder is neither deleted, nor read as something else."""

import os
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso


def energy(x):
    return 0.5 * jnp.sum(x**2)


def far_off(x):
    """The same energy near the start, and another one elsewhere."""
    return jnp.where(jnp.abs(x) < 1e-3, 0.5 * x**2, 0.5 * x**2 + jnp.abs(x)).sum()


def run_in(folder, **changes):
    settings = {"num_steps": 300, "num_chains": 2, "init": jnp.zeros(2), "out": folder, "measure_bias": False}
    return iso.sample(energy, iso.sgld(0.1), **{**settings, **changes})


@pytest.mark.parametrize("name", ["checkpoints", "records", "start", "notes"])
@pytest.mark.parametrize("steps", [300, 0])
def test_files_of_the_user_stay(tmp_path, name, steps):
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").write_text("precious")
    with pytest.raises(ValueError, match=r"`out` must be a new or empty folder; got .*|`num_steps` must be"):
        run_in(tmp_path, num_steps=steps)
    assert (tmp_path / name / "mine").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_refused_run_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="`init` must be where the energy is finite"):
        iso.sample(lambda x: jnp.log(x).sum(), iso.sgld(0.1), num_steps=10, init=-jnp.ones(1), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("left", ["all", "partial", "folder"])
def test_a_start_that_was_cut_short_is_no_obstacle(tmp_path, left):
    run_in(tmp_path / "run")
    if left != "all":
        shutil.rmtree(tmp_path / "run" / "start")
        (tmp_path / "run" / "start").mkdir()
    if left == "partial":
        (tmp_path / "run" / "start" / "structure.partial").write_text("{")
        (tmp_path / "run" / "run.partial").write_text("{")
    for name in ("records", "checkpoints", "end"):
        shutil.rmtree(tmp_path / "run" / name)
    for name in ("run.json", "finished.json", "progress.json", "zarr.json", "log.jsonl"):
        (tmp_path / "run" / name).unlink()
    np.testing.assert_array_equal(run_in(tmp_path / "run").draws[:], run_in(None).draws)


def test_the_empty_path_is_no_folder():
    with pytest.raises(ValueError, match="`out` must be the path of a folder; got ''"):
        run_in("")


def test_a_saved_run_does_not_go_into_a_folder_with_other_files(tmp_path):
    run = run_in(None)
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "draws").write_text("precious")
    with pytest.raises(ValueError, match="`folder` must be a new or empty folder"):
        run.save(tmp_path)
    assert (tmp_path / "records" / "draws").read_text() == "precious"


def test_a_relative_folder_holds_when_the_working_directory_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = run_in("run")
    mean = run.mean()
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    np.testing.assert_array_equal(run.mean(), mean)
    assert np.all(mean != 0)


@pytest.mark.parametrize("lost", ["folder", "array", "chunk"])
def test_lost_draws_are_refused_and_not_read_as_zeros(tmp_path, lost):
    run = run_in(tmp_path / "run")
    path = tmp_path / "run" / "records" / "draws"
    if lost == "folder":
        (tmp_path / "run").rename(tmp_path / "other")
    elif lost == "array":
        shutil.rmtree(path)
    else:
        (path / "0.0.0").unlink()
    for read in (run.mean, lambda: run.draws[0], lambda: run.draws[0, 5], lambda: run.draws[:, np.arange(3)]):
        with pytest.raises(ValueError, match=r"`folder` must be complete; got no .*0\.0\. Files were removed"):
            read()


def test_chunks_of_zeros_are_written(tmp_path):
    run = run_in(tmp_path / "run")
    assert np.all(run.log_weights[:] == 0)
    assert (tmp_path / "run" / "records" / "log_weights" / "0.0").exists()


@pytest.mark.parametrize("lost", ["records", "records/draws", "records/draws/0.0.0"])
def test_a_run_does_not_go_on_without_its_draws(tmp_path, lost):
    run_in(tmp_path / "run")
    path = tmp_path / "run" / lost
    path.unlink() if path.is_file() else shutil.rmtree(path)
    with pytest.raises(ValueError, match=r"`folder` must be"):
        iso.resume(tmp_path / "run", energy, iso.sgld(0.1), num_steps=600)


@pytest.mark.parametrize("num_steps", [300, 600])
def test_another_energy_that_is_equal_at_the_start_is_refused(tmp_path, num_steps):
    run_in(tmp_path / "run")
    disguised = far_off
    disguised.__qualname__ = energy.__qualname__
    with pytest.raises(ValueError, match=r"`potential` must be the one of this run, whose energy is .*; got"):
        iso.resume(tmp_path / "run", disguised, iso.sgld(0.1), num_steps=num_steps)
    assert iso.resume(tmp_path / "run", energy, iso.sgld(0.1), num_steps=num_steps).num_steps == num_steps


def test_a_ladder_that_a_pilot_found_is_kept_when_a_run_goes_on(tmp_path, monkeypatch):
    ladder = iso.resgld(0.02, ladder=iso.exchange.LadderSearch(200))
    first = iso.sample(energy, ladder, num_steps=300, init=jnp.zeros(2), out=tmp_path / "run")
    monkeypatch.setattr("isotherm.pilots.ladder.find_ladder", None)
    longer = iso.resume(tmp_path / "run", energy, ladder, num_steps=600)
    np.testing.assert_array_equal(longer.draws[:, :300], first.draws[:])
    with pytest.raises(ValueError, match=r"`sampler.step_size` must be 0.02"):
        iso.resume(tmp_path / "run", energy, iso.resgld(0.01, ladder=iso.exchange.LadderSearch(200)), num_steps=900)
