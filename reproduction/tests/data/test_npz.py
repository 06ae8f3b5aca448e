"""Data sets in one `.npz`."""

import zipfile

import numpy as np
import pytest
from reproduction.tests.data import make

from isotherm_thesis.data import DataSet, File, load
from isotherm_thesis.data.npz import ImageArchive, MushroomArchive, TableArchive
from isotherm_thesis.data.tables import Table

SPLITS = (make.GRAY["train"], make.GRAY["test"])
ROWS = np.random.default_rng(3).normal(2.0, 1.0, (6, 4))
TABLE = Table(6, tuple(ROWS.mean(axis=0)), ("targets", "cooling"))
TRAIN_IDX, TEST_IDX = np.array([[0, 1, 2, 3], [5, 4, 3, 2]]), np.array([[4, 5], [0, 1]])


class Hostile:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (self.marker, "w")


def one_file(reader):
    return DataSet("tiny", "Tiny", "none", ((File("tiny.npz", reader),),))


def images():
    return make.images_of(SPLITS[0]) | make.images_of(SPLITS[1])


def test_images_under_both_sets_of_names(tmp_path):
    arrays = images()
    other = {
        f"{'x' if name.endswith('inputs') else 'y'}_{name.split('_')[0]}": array[..., 0] if array.ndim == 4 else array
        for name, array in arrays.items()
    }
    for given in (arrays, other):
        make.npz(tmp_path / "tiny.npz", given, is_compressed=given is other)
        found = load(one_file(ImageArchive(SPLITS)), tmp_path)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array, strict=True)


def test_a_split_may_be_optional(tmp_path):
    make.npz(tmp_path / "tiny.npz", make.images_of(SPLITS[1]))
    assert list(load(one_file(ImageArchive(SPLITS, ("train",))), tmp_path)) == ["test_inputs", "test_labels"]
    with pytest.raises(ValueError, match="got an archive without the array train_inputs"):
        load(one_file(ImageArchive(SPLITS)), tmp_path)


@pytest.mark.parametrize("names", [("inputs", "targets"), ("x64", "y64"), ("x", "y")])
def test_tables_under_all_names(tmp_path, names):
    given = dict(zip(names, (ROWS[:, :2], ROWS[:, 2]), strict=True))
    make.npz(tmp_path / "tiny.npz", given)
    assert set(load(one_file(TableArchive(TABLE)), tmp_path)) == {"inputs", "targets"}
    more = {"cooling": ROWS[:, 3], "train_idx": TRAIN_IDX, "test_idx": TEST_IDX}
    make.npz(tmp_path / "tiny.npz", given | more)
    found = load(one_file(TableArchive(TABLE)), tmp_path)
    np.testing.assert_array_equal(found["inputs"], ROWS[:, :2], strict=True)
    np.testing.assert_array_equal(found["targets"], ROWS[:, 2], strict=True)
    np.testing.assert_array_equal(found["cooling"], ROWS[:, 3], strict=True)
    np.testing.assert_array_equal(found["test_idx"], TEST_IDX)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": ROWS[:5, :2]}, "inputs of shape (5, 2) and targets of shape (6,)"),
        ({"inputs": ROWS[:, :3]}, "where"),
        ({"targets": ROWS[:, 3]}, "in column 3 where"),
        ({"train_idx": TRAIN_IDX}, "an archive without the array test_idx"),
        ({"train_idx": TRAIN_IDX, "test_idx": TEST_IDX + 1}, "a split that does not hold every row once"),
        ({"train_idx": TRAIN_IDX * 1.0, "test_idx": TEST_IDX}, "splits of shapes"),
        ({"inputs": ROWS[:, :2].astype(object)}, "Object arrays cannot be loaded when allow_pickle=False"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, change, message):
    make.npz(tmp_path / "tiny.npz", {"inputs": ROWS[:, :2], "targets": ROWS[:, 2]} | change)
    with pytest.raises(ValueError, match="must be the file with arrays of 6 rows of 2 inputs and 2 targets") as refusal:
        load(one_file(TableArchive(TABLE)), tmp_path)
    assert message in str(refusal.value)


def test_mushrooms_under_both_sets_of_names(tmp_path):
    inputs, labels = np.array(make.MUSHROOM_INPUTS), np.array([1, 0, 0])
    for names in (("inputs", "labels"), ("x_onehot", "y")):
        make.npz(tmp_path / "tiny.npz", dict(zip(names, (inputs, labels), strict=True)))
        found = load(one_file(MushroomArchive(make.MUSHROOMS)), tmp_path)
        np.testing.assert_array_equal(found["inputs"], inputs.astype(np.float32), strict=True)
        np.testing.assert_array_equal(found["labels"], labels.astype(np.int32), strict=True)
    for wrong in (inputs * 2, inputs[:, 1:], np.zeros_like(inputs), inputs[[0, 1, 1]]):
        np.savez(tmp_path / "tiny.npz", inputs=wrong, labels=labels)
        with pytest.raises(ValueError, match="must be the file with arrays of 3 mushrooms"):
            load(one_file(MushroomArchive(make.MUSHROOMS)), tmp_path)


def test_a_hostile_archive_is_refused_and_not_run(tmp_path):
    marker = tmp_path / "marker"
    inputs = np.empty((1, 1), object)
    inputs[0, 0] = Hostile(str(marker))
    np.savez(tmp_path / "tiny.npz", inputs=inputs, targets=ROWS[:, 2])
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        load(one_file(TableArchive(TABLE)), tmp_path)
    assert not marker.exists()


def test_cut_and_flipped_archives_are_refused(tmp_path):
    path = tmp_path / "tiny.npz"
    make.npz(path, images())
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("train_inputs.npy").header_offset
    for number, damaged in enumerate((b"", data[:100], data[:-30], _flip(data, start + 300), _flip(data, 0))):
        path.write_bytes(damaged)
        message = "Bad CRC-32" if number == 3 else "BadZipFile"
        with pytest.raises(ValueError, match=f"must be the file with arrays of .*{message}.*isotherm data get tiny"):
            load(one_file(ImageArchive(SPLITS)), tmp_path)


def _flip(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_an_array_that_would_fill_the_memory_is_not_unpacked(tmp_path):
    name = "train_inputs.npy"
    with (
        zipfile.ZipFile(tmp_path / "tiny.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        for _ in range(2049):
            member.write(bytes(1 << 20))
    with pytest.raises(
        ValueError, match=r"got an array train_inputs of 2,148,532,224 bytes, where 2,147,483,648 are the most"
    ):
        load(one_file(ImageArchive(SPLITS)), tmp_path)
