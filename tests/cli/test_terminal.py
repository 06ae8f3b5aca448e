"""What reaches the terminal is what was written: no text is taken for markup, or for a command to the terminal."""

import json
import warnings

import numpy as np
import pytest

import isotherm as iso
from isotherm.cli.main import main
from isotherm.driver.progress import Progress
from isotherm.foundation.terminal import PlainConsole
from isotherm.run.storage.json_files import read_checked, write_checked

FILE = """
import warnings

def energy(x):
    warnings.warn("see [/link] and [red]this[/red] :dog:")
    return (x**2).sum()
"""
# Clears the screen, and renames the window.
ESCAPES = "\x1b[2J\x1b]0;owned\x07"


@pytest.fixture
def shown(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")

    def run(*command, status=None):
        if status is None:
            main([str(part) for part in command])
        else:
            with pytest.raises(SystemExit) as stop:
                main([str(part) for part in command])
            assert stop.value.code == status
        return capsys.readouterr()

    return run


@pytest.fixture(autouse=True)
def usual_warnings(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)


def sample(folder, out):
    (folder / "mine.py").write_text(FILE)
    options = ["--method", "sgld", "--step-size", "0.1", "--num-steps", "50", "--init", "0", "--num-chains", "4"]
    return ["sample", f"{folder / 'mine.py'}:energy", *options, "--out", out]


def test_paths_and_warnings_with_brackets_are_shown_as_they_are(tmp_path, shown):
    folder, out = tmp_path / "[bold]runs[/bold]", tmp_path / ":dog:"
    folder.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        told = shown(*sample(folder, out))
        assert f"Wrote draws and pictures to {out}." in told.out
        assert "Warning: see [/link] and [red]this[/red] :dog:" in told.err
        assert f"Running {folder / 'mine.py'} for" in shown("resume", out, "--num-steps", "60").out
    assert f"got {folder / '[red]out'} with [." in shown(*sample(folder, folder / "[red]out"), status=2).err


def test_errors_and_tables_with_brackets_are_shown_as_they_are(tmp_path, shown):
    missing = tmp_path / "[/red]"
    assert f"got no readable {missing / 'run.json'}." in shown("show", missing, status=2).err
    (tmp_path / "[i]data").mkdir()
    assert f"No data set is in {tmp_path / '[i]data'}." in shown("data", "check", tmp_path / "[i]data").out
    (tmp_path / "[i]data" / "wine.npz").write_text("nonsense")
    told = shown("data", "check", tmp_path / "[i]data", status=1).out
    assert "must be 1,599 rows" in told
    assert "[i]data" in "".join(told.split())
    assert "[red]" not in told


def test_commands_to_the_terminal_in_a_folder_are_written_out(tmp_path, shown):
    folder = tmp_path / "run"
    iso.sample(
        lambda x: (x["a"] ** 2).sum(), iso.sgld(0.1), num_steps=50, num_chains=4, init={"a": np.zeros(2)}, out=folder
    )
    stored = read_checked(folder / "run.json")
    stored["config"]["texts"]["sampler"] = f"sgld{ESCAPES}(step_size=0.1)"
    write_checked(folder / "run.json", stored)
    structure = json.dumps(read_checked(folder / "records" / "structure.json"))
    changed = json.loads(structure.replace('"a"', json.dumps(f"a{ESCAPES}")))
    write_checked(folder / "records" / "structure.json", changed)
    told = shown("show", folder).out
    assert r"sgld\x1b[2J\x1b]0;owned\x07(step_size=0.1)" in told
    assert r"a\x1b[2J" in told
    run = iso.load(folder)
    for text in (told, repr(run), str(run.summary()), run._repr_html_()):
        assert "\x1b" not in text
        assert "\x07" not in text


def test_paths_that_are_no_text_can_be_shown(tmp_path, shown):
    assert r"\udcff" in shown("show", str(tmp_path / "\udcff"), status=2).err


def test_names_of_samplers_are_no_markup(capsys):
    with Progress("[red]mine[/red]\x1b[2J", 0, 10, 1, is_shown=True) as bar:
        bar.update(5, 1.0)
    told = capsys.readouterr().err
    assert "[red]mine[/red]" in told
    assert "\x1b[2J" not in told


def test_tables_of_a_plain_console_are_plain_too(capsys):
    from rich.table import Table

    table = Table("[b]name[/b]")
    table.add_row("[/x] :dog: \x1b[2J")
    PlainConsole(width=100).print(table)
    told = capsys.readouterr().out
    assert "[b]name[/b]" in told
    assert r"[/x] :dog: \x1b[2J" in told
