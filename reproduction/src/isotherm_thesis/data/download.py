"""Downloads that resume, and that give a file its name only when its content is right."""

import http.client
import itertools
import os
import pathlib
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import NoReturn

from isotherm.foundation.errors import check_folder, refuse
from isotherm_thesis.data.catalog import find
from isotherm_thesis.data.dataset import DamageError, DataSet, File
from isotherm_thesis.data.reading import examine, remedy, require_package

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes that are there, and the bytes of the whole where the server says so."""

# Of files whose size is not known, such as the UCI tables, which have less than one of these.
MAX_BYTES = 64 << 20
_TIMEOUT_SECONDS = 30.0
_CHUNK_BYTES = 1 << 18
_HANDLERS = (
    urllib.request.ProxyHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPRedirectHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.UnknownHandler,
)


def get(
    name: str | DataSet,
    folder: str | pathlib.Path,
    *,
    urls: str | Mapping[str, str] | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] | None = None,
) -> tuple[pathlib.Path, ...]:
    """Download the files of a data set that are not there yet, and check every one.

    A download goes to ``FILE.part``. If it breaks off, the next call asks for the rest only. The file gets its name when its
    checksum is right or, for tables without a known one, when it has been read and checked. What turns out wrong is kept as
    ``FILE.damaged``.

    Args:
        name: A name of the catalog, or a data set of your own.
        folder: Where the files go; made if it is not there.
        urls: A mirror: an address that holds files of the same names, or one address for each name. By default the publisher's.
        progress: Called as bytes arrive.
        log: Called with one line per file on what was done.

    Returns:
        The paths of the files, all present and right.
    """
    dataset = find(name) if isinstance(name, str) else name
    folder = check_folder("folder", folder, "Give the folder for the files.")
    addresses = {file.name: _address(file, urls) for file in dataset.files}
    for file in dataset.files:
        require_package(file)
    for file in dataset.files:
        try:
            line = _get_file(dataset, file, folder, addresses[file.name], progress or (lambda *_: None))
        except OSError as error:
            refuse("folder", "one that can be written to", f"{type(error).__name__}: {error}", "Choose another --dir.")
        if log is not None:
            log(line)
    return tuple(folder / file.name for file in dataset.files)


def _get_file(dataset: DataSet, file: File, folder: pathlib.Path, url: str, progress: Progress) -> str:
    path = folder / file.name
    aside = ""
    if path.is_file():
        try:
            examine(file, path)
        except DamageError:
            aside = f" The damaged one that was there is now {_set_aside(path, path)}."
        else:
            return f"{path} is there already and right."
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"no right to write to {path.parent}")
    part = path.with_name(path.name + ".part")
    try:
        had = _fetch(url, part, file.num_bytes or MAX_BYTES, lambda done, total: progress(file.name, done, total))
    except urllib.error.HTTPError as error:
        error.close()
        there = "Try again later, or name a mirror with --mirror URL."
        refuse(f"the answer of {url}", "the file", f"status {error.code} ({error.reason})", there)
    except DamageError as damage:
        _refuse_download(file, url, damage, part, path)
    except (OSError, http.client.HTTPException) as error:
        size = part.stat().st_size if part.exists() else 0
        found = f"{type(error).__name__}: {error}, after {size:,} bytes"
        again = remedy(dataset, folder)[:-1] + " again: it goes on where it stopped."
        refuse(f"the connection to {url}", "open until the end", found, again)
    try:
        examine(file, part)
    except DamageError as damage:
        _refuse_download(file, url, damage, part, path)
    part.replace(path)
    return f"{path} is downloaded and right." + (f" {had:,} bytes were there before." if had else "") + aside


def _refuse_download(file: File, url: str, damage: DamageError, part: pathlib.Path, path: pathlib.Path) -> NoReturn:
    kept = f"What came is kept as {_set_aside(part, path)}. Run the command again, or name a mirror with --mirror URL."
    refuse(f"the download of {url}", f"the file with {file.expected}", damage, kept)


def _fetch(url: str, part: pathlib.Path, max_bytes: int, progress: Callable[[int, int | None], None]) -> int:
    """Bring `part` to its full length, `max_bytes` at most. Returns how many bytes of an earlier download were used."""
    size = part.stat().st_size if part.exists() else 0
    try:
        response = _open(url, size)
    except urllib.error.HTTPError as error:
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        whole = re.fullmatch(r"bytes \*/(\d+)", error.headers.get("Content-Range", ""))
        if whole and int(whole[1]) == size:
            return size
        response, size = _open(url, 0), 0
    if size and (response.status != http.HTTPStatus.PARTIAL_CONTENT or not _continues(response, size)):
        # A server that does not know ranges sends the whole file with status 200, which can be used as it is.
        if response.status == http.HTTPStatus.PARTIAL_CONTENT:
            response.close()
            response = _open(url, 0)
        size = 0
    with response, part.open("ab" if size else "wb") as stream:
        length = response.headers.get("Content-Length")
        done, total = size, size + int(length) if length and length.isdigit() else None
        progress(done, total)
        if total is not None and total > max_bytes:
            raise DamageError(f"{total:,} bytes announced, where {max_bytes:,} are the most")
        while chunk := response.read(_CHUNK_BYTES):
            stream.write(chunk)
            done += len(chunk)
            if done > max_bytes:
                raise DamageError(f"more than {max_bytes:,} bytes, which are the most")
            progress(done, total)
    if total is not None and done != total:
        raise ConnectionError(f"it ended {total - done:,} bytes early")
    return size


def _open(url: str, start: int) -> http.client.HTTPResponse:
    # Built by hand, because urllib's usual opener also follows addresses of files on this computer.
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    headers = {"User-Agent": "isotherm", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    return opener.open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_SECONDS)


def _continues(response: http.client.HTTPResponse, start: int) -> bool:
    found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", response.headers.get("Content-Range", ""))
    return bool(found) and int(found[1]) == start and found[3] in ("*", str(int(found[2]) + 1))


def _set_aside(path: pathlib.Path, final: pathlib.Path) -> pathlib.Path:
    """Rename a damaged file, so that nothing takes it for the right one and nothing is lost."""
    names = (final.with_name(f"{final.name}.damaged{number or ''}") for number in itertools.count())
    return path.replace(next(name for name in names if not name.exists()))


def _address(file: File, urls: str | Mapping[str, str] | None) -> str:
    mirrored = {file.name: f"{urls.rstrip('/')}/{file.name.rpartition('/')[2]}"} if isinstance(urls, str) else urls
    url = (mirrored or {}).get(file.name, file.url)
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        refuse("url", "an address that starts with http:// or https://", repr(url), "Correct the address.")
    return url
