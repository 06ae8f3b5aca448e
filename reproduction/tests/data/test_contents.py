"""What the readers say of content that is whole but wrong."""

import numpy as np
import pytest
import scipy.io
from reproduction.tests.data import make

from isotherm_thesis.data import DataSet, File, load
from isotherm_thesis.data.idx import Idx
from isotherm_thesis.data.svhn import Svhn

PIXELS = np.zeros((3, 5, 4), np.uint8)


def refused(folder, reader, message):
    with pytest.raises(ValueError, match="must be the file with") as refusal:
        load(DataSet("tiny", "Tiny", "none", ((File("file", reader),),)), folder)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (make.idx(PIXELS, magic=2049), "the magic number 2049 where 2051 belongs"),
        (make.idx(PIXELS[:2]), "sizes (2, 5, 4) where (3, 5, 4) belong"),
        (make.idx(PIXELS) + b"\0", "more bytes than its sizes say"),
        (make.idx(PIXELS)[:-1], "fewer bytes than its sizes say"),
        (b"", "only 0 bytes"),
    ],
)
def test_idx(tmp_path, data, message):
    (tmp_path / "file").write_bytes(data)
    refused(tmp_path, Idx(make.GRAY["test"], is_labels=False), message)


def test_idx_labels_must_be_classes(tmp_path):
    (tmp_path / "file").write_bytes(make.idx(np.array([0, 3, 10])))
    refused(tmp_path, Idx(make.GRAY["test"], is_labels=True), "labels from 0 to 10")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "a MATLAB file without y"),
        ({"X": np.zeros((32, 32, 3))}, "images of shape (32, 32, 3)"),
        ({"X": np.zeros((32, 32, 3, 1), np.uint8)}, "images of shape (1, 32, 32, 3)"),
        ({"X": np.zeros((32, 32, 3, 2))}, "type float64"),
        ({"y": np.array([[0], [1]], np.uint8)}, "the label 0 where 1 to 10 belong"),
        ({"y": np.array([[11], [1]], np.uint8)}, "labels from 1 to 11"),
        ({"y": np.array([[1.0], [1.0]])}, "labels of type float64"),
    ],
)
def test_svhn(tmp_path, change, message):
    whole = {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[10], [1]], np.uint8)} | change
    variables = {name: value for name, value in whole.items() if value is not None}
    scipy.io.savemat(tmp_path / "file", variables, appendmat=False)
    refused(tmp_path, Svhn(make.COLOR["test"]), message)


def test_svhn_without_its_training_file_gives_the_test_digits(tmp_path):
    dataset, arrays = make.svhn(tmp_path)
    (tmp_path / "train.mat").unlink()
    found = load(dataset, tmp_path)
    assert list(found) == ["test_inputs", "test_labels"]
    np.testing.assert_array_equal(found["test_labels"], arrays["test_labels"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\n", " 3.0\n", "6 columns in row 1 where 5 belong"),
        (" ", " nan ", "6 columns"),
        (".", "..", "could not convert string to float"),
        ("\n", "\n1 2 3 4 5\n", "a table of 8 rows and 5 columns"),
    ],
)
def test_text_tables(tmp_path, old, new, message):
    dataset, _ = make.table(tmp_path, "data")
    path = tmp_path / dataset.files[0].name
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match="must be the file with 7 rows of 3 inputs and 2 targets") as refusal:
        load(dataset, tmp_path)
    assert message in str(refusal.value)


def test_a_number_that_is_none_is_refused(tmp_path):
    dataset, _ = make.table(tmp_path, "data")
    path = tmp_path / dataset.files[0].name
    first = path.read_text().split()[0]
    path.write_text(path.read_text().replace(first, "nan", 1))
    with pytest.raises(ValueError, match="a mean of nan in column 1"):
        load(dataset, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("p,x", "q,x", "'q,x,p,?' in row 1"),
        ("b,p", "z,p", "'z' in row 2 where one of 'bcx' belongs"),
        ("b,p", ",p", "'' in row 2"),
        ("b,p", "c,p", "other letters in attribute 1"),
        ("p,x", "e,x", "0 poisonous mushrooms"),
        ("e,c,p,n\n", "", "codes of shape (2, 3)"),
        (",n\n", "\n", "'e,b,p' in row 2"),
    ],
)
def test_mushrooms(tmp_path, old, new, message):
    dataset, _ = make.mushrooms(tmp_path)
    assert old in make.MUSHROOM_TEXT
    (tmp_path / "mushrooms.data").write_text(make.MUSHROOM_TEXT.replace(old, new, 1))
    with pytest.raises(
        ValueError, match="must be the file with 3 mushrooms of 3 attributes, 1 of them poisonous"
    ) as refusal:
        load(dataset, tmp_path)
    assert message in str(refusal.value)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    dataset, _ = make.table(tmp_path, "xls")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"`xlrd` must be installed to read table.xls; .* Run: pip install xlrd"):
        load(dataset, tmp_path)
