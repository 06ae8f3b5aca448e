"""The format of folders of runs. Folders of older formats can be read; only those of the current one can be resumed."""

import pathlib
from typing import Any

from isotherm.foundation import checks
from isotherm.foundation.checks import StoredChecks
from isotherm.foundation.errors import refuse
from isotherm.run.storage.json_files import read_json, verified

FORMAT = 6
# Version 0.1.0 wrote format 3. Up to 5, no file has a checksum; up to 4, no check of a part is stored.
_READABLE = (3, 4, 5, FORMAT)
_WITHOUT_CHECKSUMS = (3, 4, 5)
_WITHOUT_FACTS = (3, 4)


def read_run_file(folder: pathlib.Path, *, is_resumed: bool = False) -> dict[str, Any]:
    """The `run.json` of a folder, or a refusal of one that is damaged, or of a format that cannot be read or resumed."""
    stored = read_json(folder / "run.json")
    check_format(stored, folder, is_resumed=is_resumed)
    # A format that was damaged may look like an older one.
    return stored if is_old(stored) and "crc32" not in stored else verified(stored, folder / "run.json")


def is_old(stored: dict[str, Any]) -> bool:
    """Whether files of the run carry no checksums."""
    return stored["format"] in _WITHOUT_CHECKSUMS


def check_format(stored: Any, folder: pathlib.Path, *, is_resumed: bool = False) -> None:
    """Refuse a `run.json` that is damaged, or of a format that cannot be read or resumed."""
    found = stored.get("format") if isinstance(stored, dict) else None
    if found not in _READABLE or "config" not in stored:
        remedy = "It is damaged, or a newer version of isotherm wrote it: upgrade isotherm, or start a new run."
        formats = " or ".join(map(str, _READABLE))
        refuse("folder", f"a run of format {formats}", f"{folder}, of format {found}", remedy)
    if is_resumed and found != FORMAT:
        remedy = "Read its draws with `iso.load`, and start a new run to continue, or resume it with the version that wrote it."
        refuse("folder", f"a run of format {FORMAT} to be resumed", f"{folder}, of format {found}", remedy)


def current_config(stored: dict[str, Any]) -> dict[str, Any]:
    """The configuration in a `run.json`, with the entries that runs of older formats lack."""
    config = stored["config"]
    if stored["format"] not in _WITHOUT_FACTS:
        return config
    # Older formats name the classes of parts and nothing else about them.
    potential, coupling = _innermost(config), config["sampler"].get("coupling") or {}
    is_descent = config.get("temperature") == 0.0 or "Deterministic" in _classes(coupling.get("rule"))
    partition, edges = coupling.get("partition") or {}, None
    if "low" in partition and coupling.get("weight_rule") is None:
        edges = [partition["low"], partition["width"], "Cumulative" in _classes(coupling.get("field"))]
    read = ("batch_size", "batching", "is_batch_shared", "is_streamed")
    added = {
        "claims_distribution": not is_descent,
        "weight_edges": edges,
        "is_network": "NetworkPotential" in _classes(potential),
        "reads_whole_energy": potential.get("coupling_includes_prior", True),
        **{name: potential[name] for name in read if name in potential},
    }
    return {**added, **config}


def unknown_checks(stored: dict[str, Any]) -> StoredChecks:
    """The checks of the parts of a run of an older format, which stored none."""
    message = f"This run has format {stored['format']}, which does not store the checks of its sampler and potential."
    return StoredChecks((checks.OLD_FORMAT.found(message, "Sample again to see them."),))


def _innermost(config: dict[str, Any]) -> dict[str, Any]:
    potential = config.get("potential") or {}
    while isinstance(potential.get("inner"), dict):
        potential = potential["inner"]
    return potential


def _classes(part: Any) -> list[Any]:
    return [part.get("class"), *part.get("extends", ())] if isinstance(part, dict) else []
