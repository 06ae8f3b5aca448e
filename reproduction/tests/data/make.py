"""Small files in the formats of the real data sets, and data sets that describe them."""

import dataclasses
import gzip
import hashlib
import io
import pathlib
import struct
import tarfile
from typing import Any

import numpy as np
import openpyxl
import scipy.io
import xlwt

from isotherm_thesis.data import DataSet, File
from isotherm_thesis.data.cifar import Archive, BinaryBatch, PickledBatch
from isotherm_thesis.data.idx import Idx
from isotherm_thesis.data.images import Images
from isotherm_thesis.data.mushrooms import MushroomTable
from isotherm_thesis.data.svhn import Svhn
from isotherm_thesis.data.tables import Spreadsheet, Table, Text

COLOR = {split: Images(split, num, (32, 32, 3), 10) for split, num in (("train", 3), ("test", 2))}
GRAY = {split: Images(split, num, (5, 4, 1), 10) for split, num in (("train", 6), ("test", 3))}
MUSHROOMS = MushroomTable(num_rows=3, num_poisonous=1, letters=("bcx", "p", "?n"), sums=(3, 0, 2))
MUSHROOM_TEXT = "p,x,p,?\ne,b,p,n\ne,c,p,n\n"
MUSHROOM_INPUTS = [[0, 0, 1, 1, 1, 0], [1, 0, 0, 1, 0, 1], [0, 1, 0, 1, 0, 1]]


def images_of(images: Images, seed: int = 0):
    """Random arrays of one split."""
    rng = np.random.default_rng(seed + images.num_images)
    inputs = rng.integers(0, 256, (images.num_images, *images.shape), np.uint8)
    labels = rng.integers(1, images.num_classes, images.num_images, dtype=np.int32)
    labels[0] = 0
    return {f"{images.split}_inputs": inputs, f"{images.split}_labels": labels}


def channels_first(inputs):
    """Rows of a CIFAR batch."""
    return inputs.transpose(0, 3, 1, 2).reshape(len(inputs), -1)


def python2_pickle(inputs, labels, label=b"labels"):
    """The bytes that Python 2 and the NumPy of its time wrote for a CIFAR batch, in protocol 2."""
    rows = channels_first(inputs)
    shape = b"M" + struct.pack("<H", rows.shape[0]) + b"M" + struct.pack("<H", rows.shape[1]) + b"\x86"
    kind = (
        b"cnumpy\ndtype\n" + _short(b"u1") + b"K\x00K\x01\x87R(K\x03" + _short(b"|") + b"NNN" + b"J\xff\xff\xff\xff" * 2
    )
    state = b"(K\x01" + shape + kind + b"K\x00tb\x89T" + struct.pack("<I", rows.nbytes) + rows.tobytes() + b"tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + _short(b"b") + b"\x87R" + state
    numbers = b"](" + b"".join(b"K" + bytes([number]) for number in labels) + b"e"
    extra = _short(b"batch_label") + _short(b"batch 1 of 1")
    return b"\x80\x02}(" + extra + _short(b"data") + array + _short(label) + numbers + b"u."


def binary_batch(inputs, labels, coarse=b""):
    """Rows of a binary CIFAR file."""
    rows = channels_first(inputs)
    return b"".join(coarse + bytes([label]) + row.tobytes() for label, row in zip(labels, rows, strict=True))


def tar_gz(path: pathlib.Path, members):
    """A compressed tar file of bytes by name."""
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def idx(array, magic=None):
    """The bytes of an IDX file."""
    magic = 0x0800 + array.ndim if magic is None else magic
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.astype(np.uint8).tobytes()


def cifar(folder: pathlib.Path, *, is_binary=False, is_archive=True, is_summed=True):
    """A CIFAR-like data set, and its arrays."""
    train, test = images_of(COLOR["train"]), images_of(COLOR["test"])
    members, readers = [], []
    for arrays, images in ((train, COLOR["train"]), (test, COLOR["test"])):
        inputs, labels = arrays.values()
        members.append((f"batches/{images.split}", (binary_batch if is_binary else python2_pickle)(inputs, labels)))
        readers.append((members[-1][0], BinaryBatch(images, 1) if is_binary else PickledBatch(images, "labels")))
    if is_archive:
        tar_gz(folder / "cifar.tar.gz", members)
        files = [File("cifar.tar.gz", Archive(tuple(readers)), url="http://localhost/cifar.tar.gz")]
        files = [summed(file, folder) for file in files] if is_summed else files
    else:
        (folder / "batches").mkdir(exist_ok=True)
        for name, data in members:
            (folder / name).write_bytes(data)
        files = [File(name, reader) for name, reader in readers]
    return DataSet("tiny", "Tiny", "none", (tuple(files),)), train | test


def mnist(folder: pathlib.Path, *, is_compressed=True, is_summed=True):
    """An MNIST-like data set, and its arrays."""
    train, test = images_of(GRAY["train"]), images_of(GRAY["test"])
    files = []
    for arrays, images in ((train, GRAY["train"]), (test, GRAY["test"])):
        for is_labels, array in enumerate(arrays.values()):
            data = idx(array if is_labels else array[..., 0])
            name = f"{images.split}-{is_labels}" + ".gz" * is_compressed
            (folder / name).write_bytes(gzip.compress(data, mtime=0) if is_compressed else data)
            files.append(File(name, Idx(images, bool(is_labels)), url=f"http://localhost/{name}"))
    files = [summed(file, folder) for file in files] if is_summed else files
    return DataSet("tiny", "Tiny", "none", (tuple(files),)), train | test


def svhn(folder: pathlib.Path, *, is_summed=True):
    """An SVHN-like data set, whose training file may be left out, and its arrays."""
    arrays, files = {}, []
    for images in COLOR.values():
        arrays |= (part := images_of(images))
        inputs, labels = part.values()
        variables = {
            "X": inputs.transpose(1, 2, 3, 0),
            "y": np.where(labels == 0, 10, labels)[:, None].astype(np.uint8),
        }
        scipy.io.savemat(folder / f"{images.split}.mat", variables, do_compression=True)
        files.append(File(f"{images.split}.mat", Svhn(images)))
    files = [summed(file, folder) for file in files] if is_summed else files
    return DataSet("tiny", "Tiny", "none", (tuple(files), (files[1],))), arrays


def table(folder: pathlib.Path, form: str):
    """A table with two targets, as text, `.xlsx` or `.xls`, and its arrays."""
    rows = np.round(np.random.default_rng(5).normal(3.0, 1.0, (7, 5)), 3)
    content = Table(7, tuple(rows.mean(axis=0)), ("targets", "cooling"))
    heads, name, package = [f"X{i}" for i in range(5)], f"table.{form}", ""
    if form == "xlsx":
        workbook = openpyxl.Workbook()
        sheet = workbook.worksheets[0]
        for row in [heads, *rows.tolist()]:
            sheet.append(row)
        sheet.cell(12, 8, " ").value = None
        workbook.save(folder / name)
        reader, package = Spreadsheet(content), "openpyxl"
    elif form == "xls":
        book = xlwt.Workbook()
        page = book.add_sheet("first")
        for i, row in enumerate([heads, *rows.tolist()]):
            for j, cell in enumerate(row):
                page.write(i, j, cell)
        book.save(str(folder / name))
        reader, package = Spreadsheet(content, is_old=True), "xlrd"
    elif form == "csv":
        lines = ['"' + '";"'.join(heads) + '"', *(";".join(map(str, row)) for row in rows.tolist())]
        (folder / name).write_text("\r\n".join(lines) + "\r\n")
        reader = Text(content, separator=";", num_header=1)
    else:
        (folder / name).write_text("\n".join("  ".join(map(str, row)) + " " for row in rows.tolist()) + "\n \n")
        reader = Text(content)
    arrays = {"inputs": rows[:, :3], "targets": rows[:, 3], "cooling": rows[:, 4]}
    return DataSet(
        "tiny", "Tiny", "none", ((File(name, reader, url=f"http://localhost/{name}", requires=package),),)
    ), arrays


def mushrooms(folder: pathlib.Path):
    """Three mushrooms."""
    (folder / "mushrooms.data").write_text(MUSHROOM_TEXT)
    arrays = {"inputs": np.array(MUSHROOM_INPUTS, np.float32), "labels": np.array([1, 0, 0], np.int32)}
    return DataSet("tiny", "Tiny", "none", ((File("mushrooms.data", MUSHROOMS),),)), arrays


def npz(path: pathlib.Path, arrays: dict[str, Any], *, is_compressed=False):
    """An archive of arrays."""
    (np.savez_compressed if is_compressed else np.savez)(path, **arrays)


def summed(file: File, folder: pathlib.Path, algorithm: str = "md5") -> File:
    """The file with the checksum that it has now."""
    digits = hashlib.new(algorithm, (folder / file.name).read_bytes()).hexdigest()
    return dataclasses.replace(file, **{algorithm: digits})


def _short(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text
