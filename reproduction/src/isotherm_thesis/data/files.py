"""Data sets in a folder: downloaded from their publishers, read and checked."""

import importlib.util
import pathlib
import shlex
import zipfile
from typing import Any

import numpy as np

from isotherm.foundation.errors import check_folder, refuse
from isotherm_thesis.data.catalog import CATALOG, DataSet, Download, find
from isotherm_thesis.data.contents import Arrays


def get(
    name: str | DataSet, folder: str | pathlib.Path, *, mirror: str | None = None, progress: Any = False
) -> pathlib.Path:
    """Download a data set, check it, and write it to `folder` as `NAME.npz`.

    The publisher's files stay in `folder/downloads/NAME`; those that are there already are not downloaded again.

    Args:
        name: a name of the catalog, or a data set of your own.
        folder: made if it does not exist.
        mirror: an address that holds files of the same names; None for the publisher's.
        progress: whether to show progress; or what `pooch` takes for a progress bar.

    Returns:
        The path of the `.npz`.
    """
    dataset = find(name) if isinstance(name, str) else name
    folder = check_folder("folder", folder, "Give the folder for the files.")
    for package in filter(None, ("pooch", dataset.requires)):
        if importlib.util.find_spec(package) is None:
            refuse(package, f"installed to download {dataset.name}", "no such package", f"Run: pip install {package}")
    path = folder / f"{dataset.name}.npz"
    if path.is_file():
        load(dataset, folder)
        return path
    downloads = folder / "downloads" / dataset.name
    paths = [_download(file, downloads, mirror, progress) for file in dataset.downloads]
    try:
        arrays = dataset.contents.check(dataset.convert(paths))
    except Exception as error:  # Damaged bytes can raise anything: each format has errors of its own.
        remedy = f"Delete {downloads} and run the command again, or name a mirror with --mirror URL."
        refuse(f"the download in {downloads}", dataset.contents.text, _short(error), remedy)
    scratch = path.with_suffix(".partial")
    with scratch.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
    scratch.replace(path)
    return path


def load(name: str | DataSet, folder: str | pathlib.Path) -> Arrays:
    """Read a data set from `NAME.npz` in a folder, and check it.

    Args:
        name: a name of the catalog, or a data set of your own.
        folder: where the file lies.

    Returns:
        For images, `train_inputs` (uint8; image, row, column, channel), `train_labels` (int32), `test_inputs` and `test_labels`;
        `svhn` may have the last two alone. For tables, `inputs` of shape (N, D) and `targets` of shape (N,), float64; for `energy`
        the heating load as targets and `cooling` beside, where the file has it. For `mushroom`, `inputs` (float32, one column for
        each letter) and `labels` (int32, 1 is poisonous).

    Example:
        >>> load("wine", "/x")
        Traceback (most recent call last):
        ...
        isotherm.foundation.errors.InputError: `/x/wine.npz` must be there; got no such file. Run `isotherm data get wine --dir /x`.
    """
    dataset = find(name) if isinstance(name, str) else name
    folder = check_folder("folder", folder, "Give the folder that holds the files.")
    path = folder / f"{dataset.name}.npz"
    if not path.is_file():
        refuse(str(path), "there", "no such file", _command(dataset, folder))
    try:
        with np.load(path, allow_pickle=False) as stored:
            return dataset.contents.check({array: stored[array] for array in stored.files})
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        remedy = f"Delete it. {_command(dataset, folder)}"
        refuse(str(path), dataset.contents.text, _short(error), remedy)


def check(folder: str | pathlib.Path) -> dict[str, str]:
    """What is wrong with each data set of the catalog that is in a folder, by name; an empty text where nothing is."""
    folder = check_folder("folder", folder, "Give the folder that holds the files.")
    if not folder.is_dir():
        refuse("folder", "a folder that exists", folder, "Run `isotherm data get NAME` first, or correct the path.")
    found = {}
    for name in CATALOG:
        if (folder / f"{name}.npz").is_file():
            try:
                load(name, folder)
                found[name] = ""
            except ValueError as error:
                found[name] = str(error)
    return found


def _download(file: Download, folder: pathlib.Path, mirror: str | None, progress: Any) -> pathlib.Path:
    import pooch

    url = file.url if mirror is None else f"{mirror.rstrip('/')}/{file.name}"
    if not url.startswith(("http://", "https://")):
        refuse("mirror", "an address that starts with http:// or https://", repr(mirror), "Correct the address.")
    known = f"sha256:{file.sha256}" if file.sha256 else None
    pooch.get_logger().setLevel("WARNING")
    # Pooch's annotation of `downloader` does not fit its own downloaders.
    retrieve: Any = pooch.retrieve
    downloader = pooch.HTTPDownloader(progressbar=progress, headers={"User-Agent": "isotherm"}, timeout=30)
    try:
        return pathlib.Path(retrieve(url, known, fname=file.name, path=folder, downloader=downloader))
    except (OSError, ValueError) as error:  # Those of requests are OSErrors; a wrong checksum is a ValueError.
        refuse(
            f"the download of {url}",
            "the publisher's file",
            _short(error),
            "Try again, or name a mirror with --mirror URL.",
        )


def _command(dataset: DataSet, folder: pathlib.Path) -> str:
    return f"Run `isotherm data get {dataset.name} --dir {shlex.quote(str(folder))}`."


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
