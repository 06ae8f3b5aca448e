"""Every format: what was written is read, and what is cut or flipped is refused with one message."""

import functools
import re
import struct

import numpy as np
import pytest
from reproduction.tests.data import make

from isotherm_thesis.data import load

FORMATS = {
    "cifar-pickle-archive": make.cifar,
    "cifar-pickle-archive-unsummed": functools.partial(make.cifar, is_summed=False),
    "cifar-pickle-folder": functools.partial(make.cifar, is_archive=False),
    "cifar-binary-archive": functools.partial(make.cifar, is_binary=True),
    "cifar-binary-folder": functools.partial(make.cifar, is_binary=True, is_archive=False),
    "idx-gz": make.mnist,
    "idx-gz-unsummed": functools.partial(make.mnist, is_summed=False),
    "idx": functools.partial(make.mnist, is_compressed=False, is_summed=False),
    "mat": make.svhn,
    "mat-unsummed": functools.partial(make.svhn, is_summed=False),
    "xlsx": functools.partial(make.table, form="xlsx"),
    "xls": functools.partial(make.table, form="xls"),
    "csv": functools.partial(make.table, form="csv"),
    "blanks": functools.partial(make.table, form="data"),
    "mushrooms": make.mushrooms,
}
REFUSAL = r"^`.*{name}` must be the file with .+; got .+\. Run `isotherm data get tiny --dir .+`\.$"


@pytest.fixture(params=FORMATS)
def made(request, tmp_path):
    dataset, arrays = FORMATS[request.param](tmp_path)
    return dataset, arrays, tmp_path


def refusal_of(name):
    return REFUSAL.format(name=re.escape(name))


def outcome(dataset, folder):
    try:
        return load(dataset, folder), ""
    except ValueError as error:
        return None, str(error)


def test_what_was_written_is_read(made):
    dataset, arrays, folder = made
    found = load(dataset, folder)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
        assert found[name].flags.writeable


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_cut_file_is_refused(made, share):
    dataset, _, folder = made
    for file in dataset.files:
        data = (folder / file.name).read_bytes()
        (folder / file.name).write_bytes(data[: int(share * len(data))])
        with pytest.raises(ValueError, match=refusal_of(file.name)):
            load(dataset, folder)
        (folder / file.name).write_bytes(data)


def test_a_flipped_first_byte_is_refused(made):
    dataset, _, folder = made
    for file in dataset.files:
        data = bytearray((folder / file.name).read_bytes())
        # A MATLAB file begins with a comment: 128 is the first byte of content.
        place = 130 if file.name.endswith(".mat") else 0
        data[place] ^= 0x80
        (folder / file.name).write_bytes(data)
        with pytest.raises(ValueError, match=refusal_of(file.name)):
            load(dataset, folder)
        data[place] ^= 0x80
        (folder / file.name).write_bytes(data)


def test_any_flipped_bit_is_refused_or_leaves_the_shapes(made):
    dataset, arrays, folder = made
    rng = np.random.default_rng(0)
    file = dataset.files[0]
    data = (folder / file.name).read_bytes()
    for place in rng.integers(0, len(data), 60):
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(rng.integers(8))
        (folder / file.name).write_bytes(flipped)
        found, message = outcome(dataset, folder)
        if found is None:
            assert re.search(refusal_of(file.name), message)
            continue
        # With a checksum nothing slips through. Without one, a wrong pixel is as good as a right one.
        assert file.checksum is None
        assert {name: array.shape for name, array in found.items()} == {n: a.shape for n, a in arrays.items()}


def test_compressed_content_has_a_checksum_of_its_own(tmp_path):
    for maker, name in ((make.cifar, "cifar.tar.gz"), (make.mnist, "train-0.gz")):
        dataset, _ = maker(tmp_path, is_summed=False)
        data = bytearray((tmp_path / name).read_bytes())
        data[-6] ^= 1  # In the checksum that gzip writes after the content.
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match="BadGzipFile: CRC check failed"):
            load(dataset, tmp_path)


def test_a_flipped_number_in_a_spreadsheet_is_refused(tmp_path):
    dataset, arrays = make.table(tmp_path, "xls")
    data = (tmp_path / "table.xls").read_bytes()
    number = struct.pack("<d", arrays["inputs"][2, 1])
    assert data.count(number) == 1
    flipped = data.replace(number, bytes([*number[:6], number[6] ^ 0x10, number[7]]))
    (tmp_path / "table.xls").write_bytes(flipped)
    with pytest.raises(ValueError, match=r"got a mean of .+ in column 2 where .+ belongs"):
        load(dataset, tmp_path)
