"""The data sets that `isotherm data get` can download."""

import dataclasses

from isotherm.foundation.errors import check_choice
from isotherm_thesis.data import convert
from isotherm_thesis.data.contents import Contents, Images, Mushrooms, Table
from isotherm_thesis.data.convert import Convert

_TORONTO = "https://www.cs.toronto.edu/~kriz"
_STANFORD = "http://ufldl.stanford.edu/housenumbers"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclasses.dataclass(frozen=True)
class Download:
    """A file of a publisher.

    Attributes:
        url: its address.
        sha256: its checksum in hexadecimal digits; empty where none is known, so that its content alone is checked.
        num_bytes: its size; 0 where it is not known.
    """

    url: str
    sha256: str = ""
    num_bytes: int = 0

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.url.rpartition("/")[2]


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set, which lies in a folder as one file, `NAME.npz`.

    Attributes:
        name: what `load` and `isotherm data get` call it.
        description: one line.
        license: what its publisher allows or asks for.
        downloads: the publisher's files.
        convert: makes the arrays from these files.
        contents: what the arrays must be.
        requires: the package that `convert` needs beyond those of isotherm-thesis.
    """

    name: str
    description: str
    license: str
    downloads: tuple[Download, ...]
    convert: Convert
    contents: Contents
    requires: str = ""


def find(name: str) -> DataSet:
    """The data set of that name."""
    return CATALOG[check_choice("name", name, tuple(CATALOG))]


def _mnist(base: str, facts: tuple[tuple[str, str, int], ...]) -> tuple[Download, ...]:
    return tuple(Download(f"{base}/{name}.gz", sha256, size) for name, sha256, size in facts)


_ENERGY = Table(
    num_rows=768,
    means=(0.764166667, 671.708333, 318.5, 176.604167, 5.25, 3.5, 0.234375, 2.8125, 22.3072005, 24.5877604),
    targets=("targets", "cooling"),
)
_CONCRETE = Table(
    num_rows=1030,
    means=(281.167864, 73.8958252, 54.1883495, 181.567282, 6.20466019, 972.918932, 773.580485, 45.6621359, 35.8179612),
)
_YACHT = Table(
    num_rows=308,
    means=(-2.38181818, 0.564136364, 4.78863636, 3.93681818, 3.20681818, 0.2875, 10.4953571),
)
_WINE = Table(
    num_rows=1599,
    means=(
        *(8.31963727, 0.527820513, 0.27097561, 2.5388055, 0.0874665416, 15.8749218, 46.4677924),
        *(0.996746679, 3.3111132, 0.658148843, 10.4229831, 5.63602251),
    ),
)
_MUSHROOM = Mushrooms(
    num_rows=8124,
    num_poisonous=3916,
    letters=(
        *("bcfksx", "fgsy", "bcegnpruwy", "ft", "acflmnpsy", "af", "cw", "bn", "beghknopruwy", "et", "?bcer"),
        *("fksy", "fksy", "bcegnopwy", "bcegnopwy", "p", "nowy", "not", "eflnp", "bhknoruwy", "acnsvy", "dglmpuw"),
    ),
    sums=(
        *(27200, 14848, 36596, 3376, 33672, 7914, 1312, 2512, 39082, 4608, 9016),
        *(12796, 13028, 47252, 47076, 0, 15968, 8688, 18620, 29220, 29604, 12256),
    ),
)

_ALL = (
    DataSet(
        "cifar10",
        "60,000 color images of 10 classes",
        "none stated; cite Krizhevsky 2009",
        (
            Download(
                f"{_TORONTO}/cifar-10-binary.tar.gz",
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                170_052_171,
            ),
        ),
        convert.cifar(
            [f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)],
            "cifar-10-batches-bin/test_batch.bin",
            1,
        ),
        Images(50_000, 10_000, (32, 32, 3), 10),
    ),
    DataSet(
        "cifar100",
        "60,000 color images of 100 classes",
        "none stated; cite Krizhevsky 2009",
        (
            Download(
                f"{_TORONTO}/cifar-100-binary.tar.gz",
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                168_513_733,
            ),
        ),
        # The coarse label comes first.
        convert.cifar(["cifar-100-binary/train.bin"], "cifar-100-binary/test.bin", 2),
        Images(50_000, 10_000, (32, 32, 3), 100),
    ),
    DataSet(
        "svhn",
        "99,289 color images of digits on houses",
        "for non-commercial use only",
        (
            Download(
                f"{_STANFORD}/train_32x32.mat",
                "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
                182_040_794,
            ),
            Download(
                f"{_STANFORD}/test_32x32.mat",
                "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
                64_275_384,
            ),
        ),
        convert.svhn,
        Images(73_257, 26_032, (32, 32, 3), 10, needs_training=False),
    ),
    DataSet(
        "mnist",
        "70,000 images of handwritten digits",
        "none stated; cite LeCun et al. 1998",
        _mnist(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            (
                (
                    "train-images-idx3-ubyte",
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                    9_912_422,
                ),
                ("train-labels-idx1-ubyte", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28_881),
                (
                    "t10k-images-idx3-ubyte",
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                    1_648_877,
                ),
                ("t10k-labels-idx1-ubyte", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4_542),
            ),
        ),
        convert.mnist,
        Images(60_000, 10_000, (28, 28, 1), 10),
    ),
    DataSet(
        "fashion-mnist",
        "70,000 images of clothes",
        "MIT",
        _mnist(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            (
                (
                    "train-images-idx3-ubyte",
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                    26_421_880,
                ),
                ("train-labels-idx1-ubyte", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 29_515),
                (
                    "t10k-images-idx3-ubyte",
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                    4_422_102,
                ),
                ("t10k-labels-idx1-ubyte", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5_148),
            ),
        ),
        convert.mnist,
        Images(60_000, 10_000, (28, 28, 1), 10),
    ),
    DataSet(
        "energy",
        "768 buildings and their heating and cooling load",
        "CC BY 4.0",
        (Download(f"{_UCI}/00242/ENB2012_data.xlsx"),),
        convert.workbook(_ENERGY),
        _ENERGY,
        requires="openpyxl",
    ),
    DataSet(
        "concrete",
        "1,030 mixtures and their strength",
        "CC BY 4.0",
        (Download(f"{_UCI}/concrete/compressive/Concrete_Data.xls"),),
        convert.old_workbook(_CONCRETE),
        _CONCRETE,
        requires="xlrd",
    ),
    DataSet(
        "yacht",
        "308 hulls and their resistance",
        "CC BY 4.0",
        (Download(f"{_UCI}/00243/yacht_hydrodynamics.data"),),
        convert.text(_YACHT),
        _YACHT,
    ),
    DataSet(
        "wine",
        "1,599 red wines and their quality",
        "CC BY 4.0",
        (
            Download(
                f"{_UCI}/wine-quality/winequality-red.csv",
                "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
                84_199,
            ),
        ),
        convert.text(_WINE, delimiter=";", num_header=1),
        _WINE,
    ),
    DataSet(
        "mushroom",
        "8,124 mushrooms, edible or poisonous",
        "CC BY 4.0",
        (Download(f"{_UCI}/mushroom/agaricus-lepiota.data"),),
        convert.mushrooms(_MUSHROOM),
        _MUSHROOM,
    ),
)
CATALOG = {dataset.name: dataset for dataset in _ALL}
