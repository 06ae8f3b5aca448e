"""Folders of runs that are full, gone, damaged, or have names that other libraries take for patterns."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.cli.main import main
from isotherm.foundation.errors import StorageError


def energy(x):
    return 0.5 * jnp.sum(x**2)


SAMPLER = iso.sgld(step_size=0.1)
SETTINGS: dict[str, Any] = {"num_steps": 200, "num_chains": 2, "seed": 4, "init": np.ones(2, np.float32)}


def run_in(folder, **changes):
    return iso.sample(energy, SAMPLER, **{"out": folder, **SETTINGS, **changes})


@pytest.fixture
def folder(tmp_path):
    """A run that was killed after its last checkpoint."""
    run_in(tmp_path / "run")
    (tmp_path / "run" / "finished.json").unlink()
    return tmp_path / "run"


def resumed_equals_whole(folder, num_steps=200):
    whole = run_in(None, num_steps=num_steps)
    run = iso.resume(folder, energy, SAMPLER, num_steps=num_steps)
    np.testing.assert_array_equal(run.draws[:], whole.draws)
    return run


@pytest.mark.parametrize("name", ["a[x]b", "star*", "what?"] + ["back\\slash"] * (os.name == "posix"))
def test_paths_that_are_patterns_are_refused_before_anything_is_written(tmp_path, name, folder):
    rule = r"`out` must be a folder whose path has none of the characters \* \? \[ \\, which .* got .* with "
    with pytest.raises(ValueError, match=rule):
        run_in(tmp_path / name / "run")
    assert not (tmp_path / name).exists()
    shutil.move(folder, tmp_path / name)
    with pytest.raises(ValueError, match=rule.replace("out", "folder")):
        iso.resume(tmp_path / name, energy, SAMPLER)
    with pytest.raises(ValueError, match=rule.replace("out", "folder")):
        run_in(None).save(tmp_path / name / "saved")


@pytest.mark.parametrize(
    "content", ["[]", "{}", "{", '{"num_steps": 200, "times": 3}', '{"num_steps": null, "times": {}}']
)
def test_a_damaged_progress_file_does_not_stop_a_resume(folder, content):
    (folder / "progress.json").write_text(content)
    with pytest.raises(ValueError, match=r"`folder` must be .*; got .*progress.json"):
        iso.load(folder)
    resumed_equals_whole(folder, 300)
    assert json.loads((folder / "progress.json").read_text())["num_steps"] == 300


@pytest.mark.parametrize("damage", ["structure", "gone", "finished", "not a dict"])
def test_a_damaged_end_does_not_stop_a_resume(tmp_path, damage):
    folder = tmp_path / "run"
    run_in(folder)
    if damage == "structure":
        (folder / "end" / "structure.json").write_text("[")
    elif damage == "gone":
        shutil.rmtree(folder / "end")
    else:
        (folder / "finished.json").write_text("{" if damage == "finished" else "[]")
    resumed_equals_whole(folder)
    assert iso.load(folder).stats["diverged_at"].tolist() == [-1, -1]


def test_an_older_checkpoint_is_told(folder):
    iso.resume(folder, energy, SAMPLER, num_steps=300)
    newest = folder / "checkpoints" / "300"
    for path in newest.rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    (folder / "finished.json").unlink()
    with pytest.warns(UserWarning, match=r"A checkpoint in .* is damaged: .* at iteration 200") as warned:
        resumed_equals_whole(folder, 300)
    assert [each.filename for each in warned] == [__file__]


def test_what_a_kill_left_of_a_checkpoint_is_removed(folder):
    left = folder / "checkpoints" / "250.orbax-checkpoint-tmp"
    left.mkdir()
    (left / "half").write_text("half")
    resumed_equals_whole(folder, 300)
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["200", "300"]


@pytest.mark.parametrize("left", [".zarray.__lock", None])
def test_a_kill_while_arrays_are_created_leaves_a_run_that_resumes(folder, left):
    shutil.rmtree(folder / "checkpoints")
    shutil.rmtree(folder / "records")
    (folder / "records" / "energies").mkdir(parents=True)
    if left:
        (folder / "records" / "energies" / left).touch()
    resumed_equals_whole(folder)


@pytest.mark.parametrize("every", [0.0, 60.0])
def test_a_folder_that_is_deleted_during_a_run_is_noticed_at_once(tmp_path, every):
    seen = []

    def callback(status):
        seen.append(status.iteration)
        if len(seen) == 2:
            (tmp_path / "run").rename(tmp_path / "elsewhere")

    message = r"run was deleted, moved or renamed while a run wrote to it, after 10 iterations"
    with pytest.raises(StorageError, match=message):
        run_in(tmp_path / "run", callback=callback, block_length=5, checkpoint_every=every)
    assert seen == [5, 10]


SCRIPT = """
import resource, sys
import isotherm as iso, numpy as np
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
import jax.numpy as jnp
iso.sample(lambda x: jnp.sum(x**2), iso.sgld(0.1), num_steps=400_000, num_chains=4, init=np.zeros(4), out={out!r})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are POSIX's")
def test_a_file_that_cannot_be_written_is_told_in_words(tmp_path):
    script = SCRIPT.format(limit=1_000_000, out=str(tmp_path / "run"))
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("isotherm.foundation.errors.StorageError: Writing to")
    assert "File too large" in last
    assert "iso.resume(" in last


def test_a_home_may_be_written_as_a_tilde(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run = run_in("~/runs/a")
    assert (tmp_path / "runs" / "a" / "run.json").exists()
    run.save("~/runs/b")
    np.testing.assert_array_equal(iso.load("~/runs/b").draws[:], run.draws[:])
    assert iso.resume("~/runs/a", energy, SAMPLER).num_steps == 200
    assert run_in("~/runs/a", resume=True).num_steps == 200
    main(["show", "~/runs/a"])
    assert "2 chains x 200 draws" in capsys.readouterr().out
    assert not pathlib.Path("~").exists()
    with pytest.raises(ValueError, match=r"`out` must be a path whose `~` is the home of a user; got '~nobody-here/x'"):
        run_in("~nobody-here/x")


def from_the_shell(folder, out, **variables):
    (folder / "mine.py").write_text("def energy(x):\n    return (x**2).sum()\n")
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME", "LANG")}
    environment |= {"LC_ALL": "C", "JAX_COMPILATION_CACHE_DIR": "", "COLUMNS": "400", **variables}
    script = "from isotherm.cli.main import main; main()"
    options = ["--method", "sgld", "--step-size", "0.1", "--num-steps", "200", "--init", "0", "0", "--num-chains", "4"]
    command = [sys.executable, "-c", script, "sample", f"{folder}/mine.py:energy", *options, "--out", os.fsencode(out)]
    return subprocess.run(command, capture_output=True, check=False, env=environment)


def test_the_shell_runs_without_a_home_in_the_locale_c(tmp_path):
    done = from_the_shell(tmp_path, tmp_path / "l\xe4ufe")
    assert done.returncode == 0, done.stderr.decode()
    assert iso.load(tmp_path / "l\xe4ufe").num_steps == 200


def test_paths_that_are_no_text_in_the_locale_are_refused(tmp_path):
    done = from_the_shell(tmp_path, tmp_path / "l\xe4ufe", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 2
    assert b"`out` must be a folder whose path is text in UTF-8" in done.stderr
    assert b"PYTHONUTF8=1" in done.stderr


def test_a_user_without_a_home_has_no_cache_and_no_error(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    script = (
        "import pathlib, jax, isotherm as iso; jax.config.update('jax_compilation_cache_dir', None);"
        "import pwd; pwd.getpwuid = lambda number: {}[number]; print(iso.use_compilation_cache())"
    )
    environment = {key: value for key, value in os.environ.items() if key != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "None\n", done.stderr
