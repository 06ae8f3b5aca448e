"""JSON files of a run. Those that are read again carry a checksum of their content."""

import json
import pathlib
import zlib
from typing import Any, NoReturn

from isotherm.foundation.errors import refuse

_CHECKSUM = "crc32"


def write_json(path: pathlib.Path, value: Any) -> None:
    """JSON that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".partial")
    scratch.write_text(json.dumps(value, indent=1, allow_nan=True))
    scratch.replace(path)


def write_checked(path: pathlib.Path, value: dict[str, Any]) -> None:
    """`write_json` of a dict with its checksum."""
    value = json.loads(json.dumps(value))
    write_json(path, {**value, _CHECKSUM: checksum(value)})


def read_json(path: pathlib.Path) -> Any:
    """JSON from a folder of a run, or the reason why not."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        refuse(
            "folder", "a folder that isotherm wrote", f"no readable {path}", f"{type(error).__name__}: check the path."
        )


def read_checked(path: pathlib.Path) -> dict[str, Any]:
    """What `write_checked` wrote, or a refusal of what has changed since."""
    return verified(read_json(path), path)


def verified(value: Any, path: pathlib.Path) -> dict[str, Any]:
    """The content of a file with a checksum, without it, if both agree."""
    if not isinstance(value, dict):
        damaged(path)
    content = {name: item for name, item in value.items() if name != _CHECKSUM}
    if value.get(_CHECKSUM) != checksum(content):
        damaged(path)
    return content


def checksum(value: Any) -> int:
    """The CRC-32 of what JSON holds. Spaces and the order of names do not count."""
    return zlib.crc32(json.dumps(value, sort_keys=True).encode())


def damaged(path: pathlib.Path) -> NoReturn:
    """Refuse a file that has changed since it was written."""
    remedy = "It was damaged or edited: restore it from a copy."
    if path.name == "finished.json" or path.parent.name == "end":
        remedy = "It was damaged or edited: `iso.resume` writes it again, if the run has checkpoints."
    refuse("folder", "undamaged", f"{path}, which does not match its checksum", remedy)


def check_json(name: str, value: Any) -> Any:
    """Return what JSON can hold, or refuse it before anything is written that could not be read."""
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        remedy = "Take out what is none of these: JSON cannot hold it."
        refuse(name, "made of numbers, words, lists and dicts", str(error), remedy)
    return value
