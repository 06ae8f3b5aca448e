"""The data sets that isotherm can download, check and read."""

from isotherm.foundation.errors import check_choice
from isotherm_thesis.data import contents
from isotherm_thesis.data.cifar import Archive, BinaryBatch, PickledBatch
from isotherm_thesis.data.dataset import DataSet, File, Reader
from isotherm_thesis.data.idx import Idx
from isotherm_thesis.data.images import Images
from isotherm_thesis.data.npz import ImageArchive, MushroomArchive, TableArchive
from isotherm_thesis.data.svhn import Svhn
from isotherm_thesis.data.tables import Spreadsheet, Table, Text

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
    python_sha256, binary_sha256 = (
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    )
    layouts = (
        (_download(f"{_TORONTO}/cifar-10-python.tar.gz", Archive(pickled), 170_498_071, python_sha256),),
        tuple(File(name, reader) for name, reader in pickled),
        (_download(f"{_TORONTO}/cifar-10-binary.tar.gz", Archive(binary), 170_052_171, binary_sha256),),
        tuple(File(name, reader) for name, reader in binary),
        (File("cifar10.npz", ImageArchive((Images("train", 50_000, (32, 32, 3), 10), test))),),
    )
    return DataSet("cifar10", "60,000 color images of 10 classes", "none stated; cite Krizhevsky 2009", layouts)


def _cifar100() -> DataSet:
    train, test = Images("train", 50_000, (32, 32, 3), 100), Images("test", 10_000, (32, 32, 3), 100)
    splits = (train, test)
    pickled = tuple((f"cifar-100-python/{images.split}", PickledBatch(images, "fine_labels")) for images in splits)
    binary = tuple((f"cifar-100-binary/{images.split}.bin", BinaryBatch(images, 2)) for images in splits)
    python_sha256, binary_sha256 = (
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    )
    layouts = (
        (_download(f"{_TORONTO}/cifar-100-python.tar.gz", Archive(pickled), 169_001_437, python_sha256),),
        tuple(File(name, reader) for name, reader in pickled),
        (_download(f"{_TORONTO}/cifar-100-binary.tar.gz", Archive(binary), 168_513_733, binary_sha256),),
        tuple(File(name, reader) for name, reader in binary),
        (File("cifar100.npz", ImageArchive(splits)),),
    )
    return DataSet("cifar100", "60,000 color images of 100 classes", "none stated; cite Krizhevsky 2009", layouts)


def _svhn() -> DataSet:
    train, test = Images("train", 73_257, (32, 32, 3), 10), Images("test", 26_032, (32, 32, 3), 10)
    train_sha256, test_sha256 = (
        "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
        "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
    )
    train_file = _download(f"{_STANFORD}/train_32x32.mat", Svhn(train), 182_040_794, train_sha256)
    test_file = _download(f"{_STANFORD}/test_32x32.mat", Svhn(test), 64_275_384, test_sha256)
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
            _download(f"{base}/{stem}.gz", reader, num_bytes, sha256, folder)
            for (stem, reader), (num_bytes, sha256) in zip(kinds, facts, strict=True)
        ),
        tuple(File(f"{folder}{stem}", reader) for stem, reader in kinds),
        (File(f"{name}.npz", ImageArchive((train, test))),),
    )
    return DataSet(name, description, terms, layouts)


def _table(name: str, description: str, file: File, table: Table, *others: str) -> DataSet:
    archives = tuple((File(f"{stem}.npz", TableArchive(table)),) for stem in (name, *others))
    return DataSet(name, description, "CC BY 4.0", ((file,), *archives))


def _download(url: str, reader: Reader, num_bytes: int, sha256: str, folder: str = "") -> File:
    return File(folder + url.rpartition("/")[2], reader, url, num_bytes, sha256=sha256)


_MNIST = _mnist_like(
    "mnist",
    "70,000 images of handwritten digits",
    "none stated; cite LeCun et al. 1998",
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "",
    (
        (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
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
        (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
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
