"""The catalog, the choice of files, and the real files where they are at hand."""

import os
import pathlib
import re
import urllib.parse

import numpy as np
import pytest
from reproduction.tests.data import make

from isotherm_thesis.data import CATALOG, DataSet, File, load
from isotherm_thesis.data.images import Images
from isotherm_thesis.data.npz import ImageArchive

REAL = os.environ.get("ISOTHERM_DATA")
FILES = [file for dataset in CATALOG.values() for layout in dataset.layouts for file in layout]


def test_entries_are_well_formed():
    assert list(CATALOG) == [dataset.name for dataset in CATALOG.values()]
    for file in FILES:
        assert re.fullmatch(r"[0-9a-f]{32}|", file.md5)
        assert re.fullmatch(r"[0-9a-f]{64}|", file.sha256)
        assert file.expected
        assert not pathlib.PurePosixPath(file.name).is_absolute()
        assert ".." not in file.name
    for dataset in CATALOG.values():
        assert "\n" not in dataset.description
        assert dataset.license
        for file in dataset.files:
            parts = urllib.parse.urlsplit(file.url)
            assert parts.scheme in ("http", "https")
            assert parts.path.rpartition("/")[2] == file.name.rpartition("/")[2]
            # A checksum that nobody can forge, or a connection that nobody can read along with a content that is known.
            assert file.sha256 or parts.scheme == "https"
            assert not file.md5
            assert file.sha256 == "" or file.num_bytes


def test_no_two_data_sets_share_a_file():
    names = [{file.name for layout in dataset.layouts for file in layout} for dataset in CATALOG.values()]
    assert sum(map(len, names)) == len(set().union(*names))


def test_unknown_names_and_missing_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`name` must be one of 'cifar10', .*; got 'imagenet'"):
        load("imagenet", tmp_path)
    with pytest.raises(
        ValueError, match=r"`folder` must be a folder that exists; got .*nowhere. Run `isotherm data get mnist"
    ):
        load("mnist", tmp_path / "nowhere")
    digits = CATALOG["cifar10"].files[0].sha256
    message = f"cifar-10-python.tar.gz` must be there, with sha256 {digits}; got no such file. Run "
    with pytest.raises(ValueError, match=f"{message}`isotherm data get cifar10 --dir "):
        load("cifar10", tmp_path)
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(b"")
    with pytest.raises(
        ValueError, match="data_batch_2` must be there, with a pickle of 10,000 train images of 32 x 32 x 3"
    ):
        load("cifar10", tmp_path)
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"")
    with pytest.raises(
        ValueError, match=rf"sha256 {digits}; got sha256 e3b0c44298fc1c149afbf4c8996fb924[0-9a-f]{{32}}, 0 by"
    ):
        load("cifar10", tmp_path)


def test_a_folder_must_be_given():
    with pytest.raises(ValueError, match=r"`folder` must be the path of a folder; got None"):
        load("mushroom", None)  # pyright: ignore[reportArgumentType]


def test_complete_files_go_before_incomplete_ones_and_originals_before_archives(tmp_path):
    dataset, arrays = make.mnist(tmp_path)
    splits = (make.GRAY["train"], Images("test", 3, (5, 4, 1), 10))
    both = DataSet("tiny", "Tiny", "none", (*dataset.layouts, (File("tiny.npz", ImageArchive(splits)),)))
    make.npz(tmp_path / "tiny.npz", arrays | {"test_labels": np.array([5, 5, 5])})
    np.testing.assert_array_equal(load(both, tmp_path)["test_labels"], arrays["test_labels"])
    (tmp_path / "train-0.gz").unlink()
    np.testing.assert_array_equal(load(both, tmp_path)["test_labels"], [5, 5, 5])


@pytest.mark.skipif(REAL is None, reason="ISOTHERM_DATA names no folder of real files")
@pytest.mark.parametrize("name", CATALOG)
def test_real_files_are_read(name):
    folder = pathlib.Path(REAL or "")
    if not any(all((folder / file.name).is_file() for file in files) for files in CATALOG[name].layouts):
        pytest.skip(f"no {name} there")
    arrays = load(name, folder)
    if name == "mushroom":
        assert arrays["inputs"].shape == (8124, 117)
        assert arrays["inputs"].dtype == np.float32
        assert arrays["labels"].mean() == pytest.approx(0.482, abs=1e-3)
    elif "inputs" in arrays:
        assert arrays["inputs"].dtype == arrays["targets"].dtype == np.float64
        assert len(arrays["inputs"]) == len(arrays["targets"])
    else:
        assert len(arrays["test_inputs"]) == len(arrays["test_labels"]) == (26_032 if name == "svhn" else 10_000)
        assert arrays["test_inputs"].dtype == np.uint8
        assert arrays["test_labels"].dtype == np.int32
