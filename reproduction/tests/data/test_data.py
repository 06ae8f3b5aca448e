"""Data sets: publishers' files as arrays, downloads, the one file of a data set, and its checks."""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import numpy as np
import pytest
from reproduction.tests.data.publishers import KINDS, TABLE, TABLE_ARRAYS, images, make, serve

from isotherm.cli.main import main
from isotherm_thesis.data import CATALOG, DataSet, check, get, load
from isotherm_thesis.data.contents import ContentError, Images

REAL = os.environ.get("ISOTHERM_DATA")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.mark.parametrize("kind", KINDS)
def test_a_data_set_comes_from_its_publisher(kind, tmp_path):
    dataset, arrays = make(kind, tmp_path / "publisher")
    with serve(tmp_path / "publisher") as (url, seen):
        path = get(dataset, tmp_path / "data", mirror=url)
        assert path == tmp_path / "data" / "tiny.npz"
        number = len(seen)
        assert number == len(dataset.downloads)
        get(dataset, tmp_path / "data", mirror=url)
        assert len(seen) == number
        # A file that was downloaded before is not asked for again.
        path.unlink()
        get(dataset, tmp_path / "data", mirror=url)
        assert len(seen) == number
    found = load(dataset, tmp_path / "data")
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_downloads_are_refused(kind, tmp_path):
    dataset, _ = make(kind, tmp_path / "publisher")
    first = tmp_path / "publisher" / dataset.downloads[0].name
    first.write_bytes(first.read_bytes()[:-20])
    with serve(tmp_path / "publisher") as (url, _):
        with pytest.raises(ValueError, match="must be the publisher's file; got ValueError: SHA256 hash"):
            get(dataset, tmp_path / "data", mirror=url)
        if kind in ("cifar10", "cifar100", "mnist", "svhn"):
            return
        # Where no checksum is known, the content is checked.
        unknown = tuple(dataclasses.replace(file, sha256="") for file in dataset.downloads)
        with pytest.raises(ValueError, match=r"the download in .*tiny` must be .*; got .*Delete"):
            get(dataclasses.replace(dataset, downloads=unknown), tmp_path / "data", mirror=url)
    assert not (tmp_path / "data" / "tiny.npz").exists()


def test_missing_files_servers_and_packages_are_refused(tmp_path):
    dataset, _ = make("mushrooms", tmp_path / "publisher")
    (tmp_path / "publisher" / "mushrooms.data").unlink()
    with (
        serve(tmp_path / "publisher") as (url, _),
        pytest.raises(ValueError, match=r"must be the publisher's file; got HTTPError: 404 .* name a mirror"),
    ):
        get(dataset, tmp_path / "data", mirror=url)
    with pytest.raises(ValueError, match=r"must be the publisher's file; got ConnectionError"):
        get(dataset, tmp_path / "data")
    with pytest.raises(ValueError, match="`nothing_like_it` must be installed to download tiny"):
        get(dataclasses.replace(dataset, requires="nothing_like_it"), tmp_path / "data")
    with pytest.raises(ValueError, match="`mirror` must be an address that starts with http"):
        get(dataset, tmp_path / "data", mirror="file:///x")


def stored(folder: pathlib.Path, arrays, contents=TABLE) -> DataSet:
    np.savez(folder / "tiny.npz", **arrays)
    return DataSet("tiny", "Tiny", "none", (), lambda _: {}, contents)


def test_files_that_are_not_the_data_set_are_refused(tmp_path):
    right, _ = make("text", tmp_path / "publisher")
    for changed, message in (
        ({"inputs": TABLE_ARRAYS["inputs"]}, "no array targets"),
        (TABLE_ARRAYS | {"inputs": TABLE_ARRAYS["inputs"][:2]}, "columns of shapes"),
        (TABLE_ARRAYS | {"targets": TABLE_ARRAYS["targets"] * 1.01}, "a mean of 8.08 in column 3, which should be 8"),
        (TABLE_ARRAYS | {"targets": TABLE_ARRAYS["targets"] * np.nan}, "a mean of nan"),
        (TABLE_ARRAYS | {"targets": np.array([None] * 3)}, "allow_pickle=False"),
    ):
        stored(tmp_path, changed)
        with pytest.raises(
            ValueError, match=rf"tiny.npz` must be 3 rows .*; got .*{message}.*Delete it\. Run `isotherm data"
        ):
            load(right, tmp_path)
    (tmp_path / "tiny.npz").write_bytes(b"PK not a zip")
    with pytest.raises(ValueError, match="must be 3 rows"):
        load(right, tmp_path)
    stored(tmp_path, {name: TABLE_ARRAYS[name] for name in ("inputs", "targets")})
    assert "cooling" not in load(right, tmp_path)


def test_images_are_checked():
    contents, arrays = images(12, 10, (3, 4, 3))
    wrong = {
        "train_inputs of shape": {"train_inputs": arrays["train_inputs"].astype(np.float32)},
        "test_labels of shape": {"test_labels": arrays["test_labels"][:-1]},
        "train_labels from 0 to 10": {"train_labels": arrays["train_labels"] + (arrays["train_labels"] == 9)},
        "no array test_labels": {"test_labels": None},
    }
    for message, change in wrong.items():
        with pytest.raises(ContentError, match=message):
            contents.check({name: array for name, array in {**arrays, **change}.items() if array is not None})
    test = {name: arrays[name] for name in ("test_inputs", "test_labels")}
    with pytest.raises(ContentError, match="no array train_inputs"):
        contents.check(test)
    assert set(Images(12, 10, (3, 4, 3), 10, needs_training=False).check(test)) == set(test)


def test_mushrooms_are_checked(tmp_path):
    dataset, arrays = make("mushrooms", tmp_path)
    swapped = arrays["inputs"].copy()
    swapped[1, :3] = [0, 1, 0]
    for change, message in (
        ({"inputs": swapped}, "other letters in attribute 1"),
        ({"labels": np.array([0, 1, 1])}, "2 of them poisonous"),
        ({"inputs": arrays["inputs"] * 2}, "inputs of shape"),
    ):
        with pytest.raises(ContentError, match=message):
            dataset.contents.check({**arrays, **change})


def test_entries_of_the_catalog_are_well_formed():
    assert list(CATALOG) == [dataset.name for dataset in CATALOG.values()]
    for dataset in CATALOG.values():
        assert "\n" not in dataset.description
        assert dataset.license
        assert dataset.contents.text
        for file in dataset.downloads:
            scheme = urllib.parse.urlsplit(file.url).scheme
            assert re.fullmatch(r"[0-9a-f]{64}|", file.sha256)
            # A checksum that nobody can forge, or a connection that nobody can read along with contents that are known.
            assert file.num_bytes if file.sha256 else scheme == "https"


def test_wrong_names_and_missing_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`name` must be one of 'cifar10', .*; got 'imagenet'"):
        load("imagenet", tmp_path)
    with pytest.raises(
        ValueError, match=r"mnist.npz` must be there; got no such file. Run `isotherm data get mnist --dir "
    ):
        load("mnist", tmp_path)
    with pytest.raises(ValueError, match=r"`folder` must be the path of a folder; got None"):
        load("mushroom", None)  # pyright: ignore[reportArgumentType]


def output(capsys):
    return " ".join(capsys.readouterr().out.split())


def test_the_commands(tmp_path, capsys):
    table = CATALOG["yacht"].contents
    rows = np.tile(table.means, (table.num_rows, 1))  # pyright: ignore[reportAttributeAccessIssue]
    publisher, folder = tmp_path / "publisher", tmp_path / "data"
    publisher.mkdir()
    np.savetxt(publisher / "yacht_hydrodynamics.data", rows)
    with serve(publisher) as (url, _):
        main(["data", "get", "yacht", "--dir", str(folder), "--mirror", url])
    assert "yacht.npz is complete" in output(capsys)
    main(["data", "check", str(folder)])
    assert "yacht is complete" in output(capsys)
    (folder / "yacht.npz").write_bytes(b"")
    with pytest.raises(SystemExit) as stop:
        main(["data", "check", str(folder)])
    assert stop.value.code == 1
    assert "yacht.npz` must be 308 rows" in output(capsys)
    main(["data", "list"])
    shown = output(capsys)
    assert all(name in shown for name in CATALOG)


def test_wrong_input_ends_with_status_2(tmp_path, capsys):
    cases = {
        ("get", "imagenet"): "`name` must be one of",
        ("get", "mnist", "--mirror", "file:///x", "--dir", str(tmp_path)): "`mirror` must be an address",
        ("check", str(tmp_path / "nowhere")): "`folder` must be a folder that exists",
    }
    for command, message in cases.items():
        with pytest.raises(SystemExit) as stop:
            main(["data", *command])
        assert stop.value.code == 2
        assert message in " ".join(capsys.readouterr().err.split())
    assert check(tmp_path) == {}
    main(["data", "check", str(tmp_path)])
    assert "No data set is in" in output(capsys)


def test_reading_needs_no_package_for_downloads():
    code = (
        "import sys; sys.modules |= dict.fromkeys(['pooch', 'requests', 'openpyxl', 'xlrd'])\n"
        "import isotherm_thesis.data, isotherm_thesis.cli.data"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.skipif(REAL is None, reason="ISOTHERM_DATA names no folder of real files")
@pytest.mark.parametrize("name", CATALOG)
def test_real_files_are_read(name):
    folder = pathlib.Path(REAL or "")
    if not (folder / f"{name}.npz").is_file():
        pytest.skip(f"no {name} there")
    assert load(name, folder)
