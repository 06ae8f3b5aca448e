"""`isotherm data` as a user meets it, and the check behind it."""

import subprocess
import sys

import numpy as np
import pytest
from reproduction.tests.data import make
from reproduction.tests.data.server import Behavior, serve

from isotherm.cli.main import main
from isotherm_thesis.data import CATALOG, check
from isotherm_thesis.data.contents import YACHT


@pytest.fixture
def yacht():
    """A table that has the means of the real one."""
    rows = np.tile(YACHT.means, (YACHT.num_rows, 1))
    return "\n".join(" ".join(map(str, row)) for row in rows.tolist()).encode()


def output(capsys):
    return " ".join(capsys.readouterr().out.split())


def test_list_shows_the_catalog(capsys):
    main(["data", "list"])
    shown = output(capsys)
    assert all(name in shown for name in CATALOG)


def test_get_and_check(tmp_path, capsys, monkeypatch, yacht):
    monkeypatch.setenv("no_proxy", "*")
    folder = tmp_path / "data"
    behavior = Behavior({"yacht_hydrodynamics.data": yacht})
    with serve(behavior) as url:
        main(["data", "get", "yacht", "--dir", str(folder), "--mirror", url])
        assert "is downloaded and right" in output(capsys)
        main(["data", "get", "yacht", "--dir", str(folder), "--mirror", url])
        assert "is there already and right" in output(capsys)
    assert len(behavior.seen) == 1
    main(["data", "check", str(folder)])
    assert "right" in output(capsys)
    (folder / "yacht_hydrodynamics.data").write_bytes(yacht[:-100])
    with pytest.raises(SystemExit) as stop:
        main(["data", "check", str(folder)])
    assert stop.value.code == 1
    assert "damaged" in output(capsys)


def test_a_stopped_download_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("isotherm_thesis.data.download.get", stop)
    with pytest.raises(SystemExit) as exit_:
        main(["data", "get", "yacht", "--dir", str(tmp_path)])
    assert exit_.value.code == 130
    assert "The same command goes on where it stopped" in output(capsys)


def test_wrong_input_ends_with_status_2(tmp_path, capsys):
    cases = {
        ("get", "imagenet"): "`name` must be one of",
        ("get", "mnist", "--mirror", "file:///x", "--dir", str(tmp_path)): "`url` must be an address",
        ("check", str(tmp_path / "nowhere")): "`folder` must be a folder that exists",
    }
    for command, message in cases.items():
        with pytest.raises(SystemExit) as stop:
            main(["data", *command])
        assert stop.value.code == 2
        assert message in " ".join(capsys.readouterr().err.split())
    main(["data", "check", str(tmp_path)])
    assert "No data set is in" in output(capsys)


def test_check_tells_right_damaged_and_missing_files(tmp_path, monkeypatch):
    dataset, _ = make.mnist(tmp_path)
    assert [status.state for status in check(tmp_path, [dataset])] == ["right"] * 4
    data = (tmp_path / "train-1.gz").read_bytes()
    (tmp_path / "train-1.gz").write_bytes(data[:-1])
    (tmp_path / "test-0.gz").unlink()
    (tmp_path / "test-1.gz").rename(tmp_path / "test-1.gz.part")
    found = {status.file: status for status in check(tmp_path, [dataset])}
    states = {"train-0.gz": "right", "train-1.gz": "damaged", "test-0.gz": "missing", "test-1.gz": "missing"}
    assert {name: status.state for name, status in found.items()} == states
    assert f"Must have md5 {dataset.files[1].md5}; has md5 " in found["train-1.gz"].detail
    assert "bytes are downloaded. Run `isotherm data get tiny" in found["test-1.gz"].detail
    assert check(tmp_path, []) == ()
    table, _ = make.table(tmp_path, "xls")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (status,) = check(tmp_path, [table])
    assert (status.state, status.detail) == ("not checked", "Run: pip install xlrd")


def test_the_spreadsheet_packages_are_not_needed_to_import():
    code = "import sys; sys.modules['openpyxl'] = sys.modules['xlrd'] = None; import isotherm_thesis.data"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
