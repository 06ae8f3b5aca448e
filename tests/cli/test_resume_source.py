"""`isotherm resume` runs the file that a folder names: which one, and only if it is the one of the run."""

import hashlib
import os
import py_compile

import pytest

import isotherm as iso
from isotherm.cli.main import main
from isotherm.run.storage.json_files import read_checked, write_checked

FILE = "def energy(x):\n    return (x**2).sum()\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The folder of a run, and the file that it was started with."""
    monkeypatch.setenv("COLUMNS", "400")
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    options = ["--method", "sgld", "--step-size", "0.1", "--num-steps", "20", "--init", "0", "0", "--num-chains", "2"]
    main(["sample", f"{file}:energy", *options, "--out", str(tmp_path / "run")])
    return tmp_path / "run", file


def changed_source(folder, **changes):
    stored = read_checked(folder / "run.json")
    stored["config"]["source"] |= changes
    write_checked(folder / "run.json", stored)


def refused(capsys, folder):
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["resume", str(folder), "--num-steps", "40"])
    assert stop.value.code == 2
    return capsys.readouterr()


def test_a_file_that_has_changed_does_not_run(run, capsys):
    folder, file = run
    mark = folder.parent / "it-ran"
    file.write_text(f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n{FILE}")
    assert "The file has changed since the run was started" in refused(capsys, folder).err
    assert not mark.exists()


def test_the_file_is_named_before_it_runs(run, capsys):
    folder, _ = run
    file = folder.parent / "other.py"
    file.write_text(f"print('this is the file')\n{FILE}")
    options = ["--method", "sgld", "--step-size", "0.1", "--num-steps", "20", "--init", "0", "0"]
    main(["sample", f"{file}:energy", *options, "--out", str(folder.parent / "second")])
    capsys.readouterr()
    main(["resume", str(folder.parent / "second"), "--num-steps", "40"])
    told = capsys.readouterr().out
    name = f"Running {file} for `energy`, as {folder.parent / 'second' / 'run.json'} says."
    assert told.index(name) < told.index("this is the file")
    assert iso.load(folder.parent / "second").num_steps == 40


def test_what_runs_is_what_was_compared(run, tmp_path):
    folder, file = run
    mark = tmp_path / "it-ran"
    # Other code of the same age and size, compiled where an import would look for it.
    other = f"open({str(mark)!r}, 'w')\n{FILE}"
    padded = FILE + "#" * (len(other) - len(FILE))
    file.write_text(other)
    os.utime(file, (1, 1))
    py_compile.compile(str(file))
    file.write_text(padded)
    os.utime(file, (1, 1))
    changed_source(folder, sha256=hashlib.sha256(padded.encode()).hexdigest())
    main(["resume", str(folder), "--num-steps", "40"])
    assert iso.load(folder).num_steps == 40
    assert not mark.exists()


@pytest.mark.parametrize("source", [{"file": 3}, {"options": None}, {"sha256": None}, {"name": ["energy"]}])
def test_a_source_that_was_tampered_with_is_refused(run, capsys, source):
    folder, _ = run
    changed_source(folder, **source)
    assert "`folder` must be a run of `isotherm sample`" in refused(capsys, folder).err
