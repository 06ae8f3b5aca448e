"""The data sets that isotherm can download, check and read."""

from isotherm.data import contents
from isotherm.data.cifar import Archive, BinaryBatch, PickledBatch
from isotherm.data.dataset import DataSet, File, Reader
from isotherm.data.idx import Idx
from isotherm.data.images import Images
from isotherm.data.npz import ImageArchive, MushroomArchive, TableArchive
from isotherm.data.svhn import Svhn
from isotherm.data.tables import Spreadsheet, Table, Text
from isotherm.foundation.errors import check_choice

_TORONTO = "https://www.cs.toronto.edu/~kriz"
_STANFORD = "http://ufldl.stanford.edu/housenumbers"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


def find(name: str) -> DataSet:
    """The data set of that name."""
    return CATALOG[check_choice("name", name, tuple(CATALOG))]


def _cifar10() -> DataSet:
    names = tuple(f"data_batch_{number}" for number in range(1, 6))
    batch, test = Images("train", 10_000, (32, 32, 3), 10), Images("test", 10_000, (32, 32, 3), 10)
    pickled = tuple((f"cifar-10-batches-py/{name}", PickledBatch(batch, "labels")) for name in names)
    pickled += (("cifar-10-batches-py/test_batch", PickledBatch(test, "labels")),)
    binary = tuple((f"cifar-10-batches-bin/{name}.bin", BinaryBatch(batch, 1)) for name in names)
    binary += (("cifar-10-batches-bin/test_batch.bin", BinaryBatch(test, 1)),)
    python_md5, binary_md5 = "c58f30108f718f92721af3b95e74349a", "c32a1d4ab5d03f1284b67883e8d87530"
    layouts = (
        (_download(f"{_TORONTO}/cifar-10-python.tar.gz", Archive(pickled), 170_498_071, python_md5),),
        tuple(File(name, reader) for name, reader in pickled),
        (_download(f"{_TORONTO}/cifar-10-binary.tar.gz", Archive(binary), 170_052_171, binary_md5),),
        tuple(File(name, reader) for name, reader in binary),
        (File("cifar10.npz", ImageArchive((Images("train", 50_000, (32, 32, 3), 10), test))),),
    )
    return DataSet("cifar10", "60,000 color images of 10 classes", "none stated; cite Krizhevsky 2009", layouts)


def _cifar100() -> DataSet:
    train, test = Images("train", 50_000, (32, 32, 3), 100), Images("test", 10_000, (32, 32, 3), 100)
    splits = (train, test)
    pickled = tuple((f"cifar-100-python/{images.split}", PickledBatch(images, "fine_labels")) for images in splits)
    binary = tuple((f"cifar-100-binary/{images.split}.bin", BinaryBatch(images, 2)) for images in splits)
    python_md5, binary_md5 = "eb9058c3a382ffc7106e4002c42a8d85", "03b5dce01913d631647c71ecec9e9cb8"
    layouts = (
        (_download(f"{_TORONTO}/cifar-100-python.tar.gz", Archive(pickled), 169_001_437, python_md5),),
        tuple(File(name, reader) for name, reader in pickled),
        (_download(f"{_TORONTO}/cifar-100-binary.tar.gz", Archive(binary), 168_513_733, binary_md5),),
        tuple(File(name, reader) for name, reader in binary),
        (File("cifar100.npz", ImageArchive(splits)),),
    )
    return DataSet("cifar100", "60,000 color images of 100 classes", "none stated; cite Krizhevsky 2009", layouts)


def _svhn() -> DataSet:
    train, test = Images("train", 73_257, (32, 32, 3), 10), Images("test", 26_032, (32, 32, 3), 10)
    train_md5, test_md5 = "e26dedcc434d2e4c54c9b2d4a06d8373", "eb5a983be6a315427106f1b164d9cef3"
    train_file = _download(f"{_STANFORD}/train_32x32.mat", Svhn(train), 182_040_794, train_md5)
    test_file = _download(f"{_STANFORD}/test_32x32.mat", Svhn(test), 64_275_384, test_md5)
    archive = File("svhn.npz", ImageArchive((train, test), optional=("train",)))
    description = "99,289 color images of digits on houses"
    return DataSet(
        "svhn", description, "for non-commercial use only", ((train_file, test_file), (test_file,), (archive,))
    )


def _mnist_like(
    name: str, description: str, terms: str, base: str, folder: str, facts: tuple[tuple[int, str], ...]
) -> DataSet:
    train, test = Images("train", 60_000, (28, 28, 1), 10), Images("test", 10_000, (28, 28, 1), 10)
    kinds = (
        ("train-images-idx3-ubyte", Idx(train, is_labels=False)),
        ("train-labels-idx1-ubyte", Idx(train, is_labels=True)),
        ("t10k-images-idx3-ubyte", Idx(test, is_labels=False)),
        ("t10k-labels-idx1-ubyte", Idx(test, is_labels=True)),
    )
    layouts = (
        tuple(
            _download(f"{base}/{stem}.gz", reader, num_bytes, md5, folder)
            for (stem, reader), (num_bytes, md5) in zip(kinds, facts, strict=True)
        ),
        tuple(File(f"{folder}{stem}", reader) for stem, reader in kinds),
        (File(f"{name}.npz", ImageArchive((train, test))),),
    )
    return DataSet(name, description, terms, layouts)


def _table(name: str, description: str, file: File, table: Table, *others: str) -> DataSet:
    archives = tuple((File(f"{stem}.npz", TableArchive(table)),) for stem in (name, *others))
    return DataSet(name, description, "CC BY 4.0", ((file,), *archives))


def _download(url: str, reader: Reader, num_bytes: int, md5: str, folder: str = "") -> File:
    return File(folder + url.rpartition("/")[2], reader, url, num_bytes, md5)


_MNIST = _mnist_like(
    "mnist",
    "70,000 images of handwritten digits",
    "none stated; cite LeCun et al. 1998",
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "",
    (
        (9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        (28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
        (1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
        (4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
    ),
)
# Its files have the names of MNIST's, and so a folder of their own.
_FASHION = _mnist_like(
    "fashion-mnist",
    "70,000 images of clothes",
    "MIT",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    "fashion-mnist/",
    (
        (26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        (29_515, "25c81989df183df01b3e8a0aad5dffbe"),
        (4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
        (5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
    ),
)
_ENERGY = File(
    "ENB2012_data.xlsx", Spreadsheet(contents.ENERGY), f"{_UCI}/00242/ENB2012_data.xlsx", requires="openpyxl"
)
_CONCRETE = File(
    "Concrete_Data.xls",
    Spreadsheet(contents.CONCRETE, is_old=True),
    f"{_UCI}/concrete/compressive/Concrete_Data.xls",
    requires="xlrd",
)
_YACHT = File("yacht_hydrodynamics.data", Text(contents.YACHT), f"{_UCI}/00243/yacht_hydrodynamics.data")
_WINE = File(
    "winequality-red.csv",
    Text(contents.WINE, separator=";", num_header=1),
    f"{_UCI}/wine-quality/winequality-red.csv",
    84_199,
    sha256="4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
)
_MUSHROOM = File("agaricus-lepiota.data", contents.MUSHROOM, f"{_UCI}/mushroom/agaricus-lepiota.data")

CATALOG = {
    dataset.name: dataset
    for dataset in (
        _cifar10(),
        _cifar100(),
        _svhn(),
        _MNIST,
        _FASHION,
        _table("energy", "768 buildings and their heating and cooling load", _ENERGY, contents.ENERGY, "uci_energy"),
        _table("concrete", "1,030 mixtures and their strength", _CONCRETE, contents.CONCRETE, "uci_concrete"),
        _table("yacht", "308 hulls and their resistance", _YACHT, contents.YACHT, "uci_yacht"),
        _table("wine", "1,599 red wines and their quality", _WINE, contents.WINE, "uci_wine_red"),
        DataSet(
            "mushroom",
            "8,124 mushrooms, edible or poisonous",
            "CC BY 4.0",
            ((_MUSHROOM,), (File("mushroom.npz", MushroomArchive(contents.MUSHROOM)),)),
        ),
    )
}
