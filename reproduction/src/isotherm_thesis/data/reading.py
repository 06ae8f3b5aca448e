"""Reading files that may be missing, cut or wrong: every fault ends in one error that names the file and the remedy."""

import hashlib
import importlib.util
import pathlib
import shlex

from isotherm.foundation.errors import check_folder, refuse
from isotherm_thesis.data.catalog import find
from isotherm_thesis.data.dataset import Arrays, DamageError, DataSet, File, join


def load(name: str | DataSet, folder: str | pathlib.Path) -> Arrays:
    """Read a data set from a folder, and check it.

    The files are the publisher's (as `get` downloads them), for CIFAR and MNIST also unpacked, or one ``NAME.npz`` that holds the
    arrays below. Files with a known checksum must have it; others must have the known shapes and, for tables, column means.

    Args:
        name: A name of the catalog, or a data set of your own.
        folder: Where the files lie.

    Returns:
        For images, `train_inputs` (uint8, axes image, row, column, channel), `train_labels` (int32), `test_inputs` and
        `test_labels`; `svhn` without its training file gives the last two. For tables, `inputs` of shape (N, D) and `targets` of
        shape (N,), float64; `energy` has the heating load as targets and, where the file has it, `cooling` beside. For
        `mushroom`, `inputs` (float32, one column per category) and `labels` (int32, 1 is poisonous). Where an ``.npz`` holds the
        usual splits, `train_idx` and `test_idx` too.

    Example:
        >>> load("wine", "/x")
        Traceback (most recent call last):
        ...
        isotherm.foundation.errors.InputError: `folder` must be a folder that exists; got /x. Run `isotherm data get wine --dir /x`.
    """
    dataset = find(name) if isinstance(name, str) else name
    folder = check_folder("folder", folder, "Give the folder that holds the files.")
    if not folder.is_dir():
        refuse("folder", "a folder that exists", folder, remedy(dataset, folder))
    files = dataset.layout_in(folder)
    for file in files:
        if not (folder / file.name).is_file():
            refuse(str(folder / file.name), f"there, with {file.expected}", "no such file", remedy(dataset, folder))
    return join([read(dataset, file, folder) for file in files])


def read(dataset: DataSet, file: File, folder: pathlib.Path) -> Arrays:
    """The arrays of one file in `folder`, or the error that says what is wrong with it."""
    require_package(file)
    path = folder / file.name
    try:
        if file.checksum:
            examine(file, path)
        return _parse(file, path)
    except DamageError as damage:
        refuse(str(path), f"the file with {file.expected}", damage, remedy(dataset, folder))


def examine(file: File, path: pathlib.Path) -> None:
    """Raise `DamageError` unless `path` holds `file`, judged by the checksum or, where none is known, by the content."""
    if file.checksum is None:
        _parse(file, path)
        return
    algorithm, digits = file.checksum
    try:
        with path.open("rb") as stream:
            # Against accidents, not attacks: so that systems which forbid MD5 for security allow it here.
            found = hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    except OSError as error:
        raise DamageError(_describe(error)) from error
    if found != digits:
        raise DamageError(f"{algorithm} {found}, {path.stat().st_size:,} bytes")


def require_package(file: File) -> None:
    """Refuse a file whose reader needs a package that is not installed."""
    if is_package_missing(file):
        remedy = f"Run: pip install {file.requires}"
        refuse(file.requires, f"installed to read {file.name}", "no such package", remedy)


def is_package_missing(file: File) -> bool:
    """Whether the file's reader needs a package that is not installed."""
    return bool(file.requires) and importlib.util.find_spec(file.requires) is None


def remedy(dataset: DataSet, folder: pathlib.Path) -> str:
    """The command that mends a missing or damaged file."""
    return f"Run `isotherm data get {dataset.name} --dir {shlex.quote(str(folder))}`."


def _parse(file: File, path: pathlib.Path) -> Arrays:
    try:
        return file.reader(path)
    except DamageError:
        raise
    except Exception as error:
        # Damaged bytes can raise anything: each format has errors of its own, and NumPy and SciPy add theirs.
        raise DamageError(_describe(error)) from error


def _describe(error: Exception) -> str:
    return f"unreadable content ({type(error).__name__}: {str(error)[:200]})".replace("\n", " ")
