"""Small files in the formats of the publishers, the data sets they belong to, and a server for them."""

import contextlib
import functools
import gzip
import hashlib
import http.server
import io
import pathlib
import struct
import tarfile
import threading
from typing import Any

import numpy as np
import openpyxl
import scipy.io
import xlwt

from isotherm_thesis.data import DataSet, Download, convert
from isotherm_thesis.data.contents import Arrays, Images, Mushrooms, Table

TABLE = Table(num_rows=3, means=(2.0, 5.0, 8.0, 11.0), targets=("targets", "cooling"))
COLUMNS = np.array([[1.0, 4.0, 7.0, 10.0], [2.0, 5.0, 8.0, 11.0], [3.0, 6.0, 9.0, 12.0]])
TABLE_ARRAYS: Arrays = {"inputs": COLUMNS[:, :2], "targets": COLUMNS[:, 2], "cooling": COLUMNS[:, 3]}
MUSHROOMS = Mushrooms(num_rows=3, num_poisonous=1, letters=("bcx", "p", "?n"), sums=(3, 0, 2))
MUSHROOM_ARRAYS: Arrays = {
    "inputs": np.array([[0, 0, 1, 1, 1, 0], [1, 0, 0, 1, 0, 1], [0, 1, 0, 1, 0, 1]], np.float32),
    "labels": np.array([1, 0, 0], np.int32),
}


def images(num_train: int, num_test: int, shape: tuple[int, int, int], num_classes: int = 10) -> tuple[Images, Arrays]:
    rng, arrays = np.random.default_rng(num_train), {}
    for split, number in (("train", num_train), ("test", num_test)):
        arrays[f"{split}_inputs"] = rng.integers(0, 256, (number, *shape), np.uint8)
        labels = rng.permutation(np.arange(number) % num_classes).astype(np.int32)
        arrays[f"{split}_labels"] = labels
    return Images(num_train, num_test, shape, num_classes), arrays


def make(kind: str, folder: pathlib.Path) -> tuple[DataSet, Arrays]:
    """The publisher's files in `folder`, their data set and its arrays."""
    folder.mkdir(exist_ok=True, parents=True)
    contents, to_arrays, files, arrays = _KINDS[kind](folder)
    downloads = tuple(_download(folder / name) for name in files)
    return DataSet("tiny", "Tiny", "none", downloads, to_arrays, contents), arrays


def _download(path: pathlib.Path) -> Download:
    stored = path.read_bytes()
    return Download(f"http://127.0.0.1:1/{path.name}", hashlib.sha256(stored).hexdigest(), len(stored))


def _cifar(folder: pathlib.Path, num_label_bytes: int) -> Any:
    contents, arrays = images(6, 4, (32, 32, 3))
    with tarfile.open(folder / "cifar.tar.gz", "w:gz") as archive:
        for name, split, rows in (
            ("a.bin", "train", slice(0, 3)),
            ("b.bin", "train", slice(3, 6)),
            ("t.bin", "test", slice(4)),
        ):
            pixels, labels = arrays[f"{split}_inputs"][rows], arrays[f"{split}_labels"][rows]
            stored = b"".join(
                bytes([9] * (num_label_bytes - 1) + [label]) + image.transpose(2, 0, 1).tobytes()
                for image, label in zip(pixels, labels, strict=True)
            )
            entry = tarfile.TarInfo(f"batches/{name}")
            entry.size = len(stored)
            archive.addfile(entry, io.BytesIO(stored))
    to_arrays = convert.cifar(["batches/a.bin", "batches/b.bin"], "batches/t.bin", num_label_bytes)
    return contents, to_arrays, ["cifar.tar.gz"], arrays


def _mnist(folder: pathlib.Path) -> Any:
    contents, arrays = images(6, 3, (5, 4, 1))
    for name, array in arrays.items():
        plain = array[..., 0] if array.ndim == 4 else array
        header = struct.pack(f">{1 + plain.ndim}I", 0x0800 + plain.ndim, *plain.shape)
        (folder / f"{name}.gz").write_bytes(gzip.compress(header + plain.astype(np.uint8).tobytes(), mtime=0))
    return contents, convert.mnist, [f"{name}.gz" for name in arrays], arrays


def _svhn(folder: pathlib.Path) -> Any:
    contents, arrays = images(12, 10, (3, 4, 3))
    for split in ("train", "test"):
        labels = np.where(arrays[f"{split}_labels"] == 0, 10, arrays[f"{split}_labels"])[:, None].astype(np.uint8)
        stored = {"X": arrays[f"{split}_inputs"].transpose(1, 2, 3, 0), "y": labels}
        scipy.io.savemat(folder / f"{split}.mat", stored, do_compression=True)
    return contents, convert.svhn, ["train.mat", "test.mat"], arrays


def _text(folder: pathlib.Path, delimiter: str | None) -> Any:
    lines = [(delimiter or " ").join(map(str, row)) for row in COLUMNS.tolist()]
    header = ['"a";"b";"c";"d"'] if delimiter else []
    (folder / "table.txt").write_text("\n".join([*header, *lines, ""]))
    return TABLE, convert.text(TABLE, delimiter, len(header)), ["table.txt"], TABLE_ARRAYS


def _workbook(folder: pathlib.Path) -> Any:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    # Empty cells beside and below the table, as the publisher's file has them.
    for row in [["a", "b", "c", "d"], *[[*row, None] for row in COLUMNS.tolist()], [None] * 5]:
        sheet.append(row)
    book.save(folder / "table.xlsx")
    return TABLE, convert.workbook(TABLE), ["table.xlsx"], TABLE_ARRAYS


def _old_workbook(folder: pathlib.Path) -> Any:
    book = xlwt.Workbook()
    sheet = book.add_sheet("first")
    for number, row in enumerate([["a", "b", "c", "d"], *COLUMNS.tolist(), ["", "", "", ""]]):
        for place, cell in enumerate(row):
            sheet.write(number, place, cell)
    book.save(str(folder / "table.xls"))
    return TABLE, convert.old_workbook(TABLE), ["table.xls"], TABLE_ARRAYS


def _mushrooms(folder: pathlib.Path) -> Any:
    (folder / "mushrooms.data").write_text("p,x,p,?\ne,b,p,n\ne,c,p,n\n")
    return MUSHROOMS, convert.mushrooms(MUSHROOMS), ["mushrooms.data"], MUSHROOM_ARRAYS


_KINDS: dict[str, Any] = {
    "cifar10": functools.partial(_cifar, num_label_bytes=1),
    "cifar100": functools.partial(_cifar, num_label_bytes=2),
    "mnist": _mnist,
    "svhn": _svhn,
    "text": functools.partial(_text, delimiter=None),
    "csv": functools.partial(_text, delimiter=";"),
    "workbook": _workbook,
    "old workbook": _old_workbook,
    "mushrooms": _mushrooms,
}
KINDS = list(_KINDS)


@contextlib.contextmanager
def serve(folder: pathlib.Path):
    """The address of a server for a folder, and the paths that it was asked for."""
    seen: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format, *args):  # noqa: A002
            seen.append(self.path)

    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
