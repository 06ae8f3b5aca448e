"""CIFAR batches: layouts of the pickles, hostile pickles and archives."""

import os
import pickle

import numpy as np
import pytest
from reproduction.tests.data import make

from isotherm_thesis.data import DataSet, File, load
from isotherm_thesis.data.cifar import Archive, BinaryBatch, PickledBatch
from isotherm_thesis.data.images import Images
from isotherm_thesis.data.unpickle import unpickle

TRAIN = make.COLOR["train"]
BATCH = PickledBatch(TRAIN, "labels")


class Hostile:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def one_file(name, reader):
    return DataSet("tiny", "Tiny", "none", ((File(name, reader),),))


def arrays():
    made = make.images_of(TRAIN)
    return made["train_inputs"], made["train_labels"]


@pytest.mark.parametrize("protocol", [0, 2, 3, 4])
@pytest.mark.parametrize("is_text", [True, False])
def test_pickles_of_python_3_are_read(protocol, is_text):
    inputs, labels = arrays()
    batch = {"data": make.channels_first(inputs), "labels": labels.tolist()}
    batch = batch if is_text else {name.encode(): value for name, value in batch.items()}
    found = BATCH.parse(pickle.dumps(batch, protocol=protocol))
    np.testing.assert_array_equal(found["train_inputs"], inputs)
    np.testing.assert_array_equal(found["train_labels"], labels)


def test_fine_labels_are_read(tmp_path):
    inputs, labels = arrays()
    (tmp_path / "train").write_bytes(make.python2_pickle(inputs, labels, b"fine_labels"))
    found = load(one_file("train", PickledBatch(TRAIN, "fine_labels")), tmp_path)
    np.testing.assert_array_equal(found["train_labels"], labels)
    (tmp_path / "train.bin").write_bytes(make.binary_batch(inputs, labels, coarse=b"\x05"))
    found = load(one_file("train.bin", BinaryBatch(TRAIN, 2)), tmp_path)
    np.testing.assert_array_equal(found["train_labels"], labels)
    np.testing.assert_array_equal(found["train_inputs"], inputs)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_hostile_pickle_is_refused_and_not_run(tmp_path, protocol):
    marker = tmp_path / "marker"
    data = pickle.dumps({"data": Hostile(marker), "labels": [1]}, protocol=protocol)
    (tmp_path / "batch").write_bytes(data)
    with pytest.raises(
        ValueError, match=r"got a pickle that names '(posix|nt)', 'system', which is refused and was not run"
    ):
        load(one_file("batch", BATCH), tmp_path)
    assert not marker.exists()
    make.tar_gz(tmp_path / "batch.tar.gz", [("batch", data)])
    with pytest.raises(ValueError, match="which is refused and was not run"):
        load(one_file("batch.tar.gz", Archive((("batch", BATCH),))), tmp_path)
    assert not marker.exists()
    # The control: the pickle does what it says when nothing holds it back.
    pickle.loads(data)
    assert marker.exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"cbuiltins\neval\n(S'1'\ntR.", "names 'builtins', 'eval'"),
        (b"cnumpy\nload\n.", "names 'numpy', 'load'"),
        (b"(ios\nsystem\n.", "names 'os', 'system'"),
        (b"cnumpy\nndarray\n(I4\ntR.", "builds an array in an unknown way"),
        (b"cnumpy\ndtype\n(S'O'\nI0\nI1\ntR.", "an array of type 'O'"),
        (b"c_codecs\nencode\n(Vx\nS'rot13'\ntR.", "encodes text in an unknown way"),
        (b"cnumpy.core.multiarray\n_reconstruct\n}b.", "changes a function"),
    ],
)
def test_names_in_a_pickle_do_only_what_cifar_needs(data, message):
    with pytest.raises(Exception, match=message):
        unpickle(data)


def test_wrong_arrays_in_a_pickle_are_refused(tmp_path):
    inputs, labels = arrays()
    rows = make.channels_first(inputs)
    # The number of rows is what follows the first `M`, and the number of columns the second.
    lying = make.python2_pickle(inputs, labels).replace(b"M\x03\x00M", b"M\xff\xffM", 1)
    cases = {
        "an array of shape (65535, 3072) in 9,216 bytes": lying,
        "a pickled list, not a dictionary": pickle.dumps([1]),
        "a pickle without 'labels'": pickle.dumps({"data": rows}, 2),
        "a list for the images": pickle.dumps({"data": [1], "labels": [1]}),
        "labels that are not integers": pickle.dumps({"data": rows, "labels": ["1", 2, 3]}, 2),
        "labels of shape (2,)": pickle.dumps({"data": rows, "labels": [1, 2]}, 2),
        "labels from 1 to 10": pickle.dumps({"data": rows, "labels": [1, 2, 10]}, 2),
        "images in an array of shape (3, 3071)": pickle.dumps({"data": rows[:, 1:], "labels": [1, 2, 3]}, 2),
        "images of shape (2, 32, 32, 3)": pickle.dumps({"data": rows[1:], "labels": [1, 2, 3]}, 2),
        "and type int64": pickle.dumps({"data": rows.astype(np.int64), "labels": [1, 2, 3]}, 2),
        "an array of type 'f8'": pickle.dumps({"data": rows.astype(float), "labels": [1, 2, 3]}, 2),
    }
    for message, data in cases.items():
        (tmp_path / "batch").write_bytes(data)
        with pytest.raises(ValueError, match="must be the file with a pickle of 3 train images") as refusal:
            load(one_file("batch", BATCH), tmp_path)
        assert message in str(refusal.value)


def test_archives_are_read_in_place(tmp_path):
    inputs, labels = arrays()
    folder = tmp_path / "inner"
    folder.mkdir()
    good = make.python2_pickle(inputs, labels)
    reader = Archive((("batches/train", BATCH),))
    make.tar_gz(folder / "a.tar.gz", [("../escaped", b"x"), ("/escaped", b"x"), ("batches/train", good)])
    np.testing.assert_array_equal(load(one_file("a.tar.gz", reader), folder)["train_inputs"], inputs)
    assert [path.name for path in tmp_path.rglob("*")] == ["inner", "a.tar.gz"]
    make.tar_gz(folder / "a.tar.gz", [("../batches/train", good)])
    with pytest.raises(ValueError, match="got an archive without batches/train"):
        load(one_file("a.tar.gz", reader), folder)


def test_batches_are_put_one_after_another(tmp_path):
    inputs, labels = arrays()
    reader = BinaryBatch(Images("train", 1, (32, 32, 3), 10), 1)
    for number in range(3):
        (tmp_path / f"{number}").write_bytes(make.binary_batch(inputs[[number]], labels[[number]]))
    files = tuple(File(str(number), reader) for number in range(3))
    found = load(DataSet("tiny", "Tiny", "none", (files,)), tmp_path)
    np.testing.assert_array_equal(found["train_inputs"], inputs)
    np.testing.assert_array_equal(found["train_labels"], labels)
