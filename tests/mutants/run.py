"""Puts deliberate faults into copies of the source, one at a time, and checks that the tests notice: `make mutants`.

Faults are in `faults.toml`: a file below `src/isotherm`, or of `isotherm_thesis`, a text that occurs there exactly once, what to
put in its place, and the tests that should fail. Results are kept in `mutants.json` by the contents of fault, source and tests,
so that a run that was stopped goes on where it was, and a fault is tried again only when something has changed.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The package that a path is in by its first folder; the library's is left out.
THESIS = "isotherm_thesis"
SOURCES = {"isotherm": ROOT / "src" / "isotherm", THESIS: ROOT / "reproduction" / "src" / THESIS}
TESTS = (ROOT / "tests", ROOT / "reproduction" / "tests")
FAULTS = pathlib.Path(__file__).with_name("faults.toml")
MAX_SECONDS = 400


@dataclasses.dataclass(frozen=True)
class Fault:
    """One deliberate fault.

    Attributes:
        name: what is wrong.
        file: below `src/isotherm`.
        old: a text that occurs in it exactly once.
        new: what is put in its place.
        tests: what should fail, as pytest takes it.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def key(self) -> str:
        """What the result depends on."""
        seen = [json.dumps(dataclasses.asdict(self))]
        folders = (*SOURCES.values(), *TESTS)
        seen += [path.read_text() for folder in folders for path in sorted(folder.rglob("*.py"))]
        return hashlib.sha256("\0".join(seen).encode()).hexdigest()

    def apply(self, source: pathlib.Path) -> None:
        """Put the fault into copies of the packages below a folder."""
        path = source / self.place
        path.write_text(path.read_text().replace(self.old, self.new))

    @property
    def place(self) -> pathlib.Path:
        """The file with its package."""
        path = pathlib.Path(self.file)
        return path if path.parts[0] == THESIS else "isotherm" / path

    def obsolete(self) -> list[str]:
        """What of it the source and the tests no longer have."""
        number = (SOURCES[self.place.parts[0]].parent / self.place).read_text().count(self.old)
        gone = [] if number == 1 else [f"{self.name}: its text occurs {number} times in {self.file}, and must once"]
        for test in self.tests:
            path, _, function = test.partition("::")
            text = (ROOT / path).read_text() if path.endswith(".py") else ""
            if not (ROOT / path).exists() or f"def {function.partition('[')[0]}" not in text + "def ":
                gone.append(f"{self.name}: there is no test {test}")
        return gone


def read_faults() -> list[Fault]:
    """All faults, each with a name of its own and in the source as it is."""
    stored = tomllib.loads(FAULTS.read_text())["fault"]
    faults = [Fault(**{**one, "tests": tuple(one["tests"])}) for one in stored]
    names = [fault.name for fault in faults]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"Faults with the same name: {repeated}.")
    gone = [text for fault in faults for text in fault.obsolete()]
    if gone:
        raise ValueError("; ".join(gone))
    return faults


def run_tests(tests: tuple[str, ...], source: str, cache: str, limit: float = MAX_SECONDS) -> tuple[int, float, str]:
    """Exit status of pytest, seconds, and the end of its output, with packages from the folders of the path `source`."""
    environment = {
        **os.environ,
        "PYTHONPATH": source,
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not long", *tests]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
        return done.returncode, time.perf_counter() - began, done.stdout[-2_000:]
    except subprocess.TimeoutExpired:
        return -1, time.perf_counter() - began, "It timed out."


def judge(fault: Fault, cache: str) -> dict[str, Any]:
    """What the tests say of a fault."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = pathlib.Path(folder)
        for name, package in SOURCES.items():
            shutil.copytree(package, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        fault.apply(source)
        status, seconds, output = run_tests(fault.tests, folder, cache)
    verdict = {0: "missed", 1: "caught"}.get(status, "error")
    return {"verdict": verdict, "seconds": round(seconds, 1), "output": "" if verdict == "caught" else output}


def main() -> int:
    """Try all faults that have no result yet; print the table. Fails unless all are caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "mutants.json")
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    faults = [fault for fault in read_faults() if given.only in fault.name]
    known: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
    keys = {fault.name: fault.key() for fault in faults}
    waiting = [fault for fault in faults if known.get(fault.name, {}).get("key") != keys[fault.name]]
    cache = os.environ.get("JAX_COMPILATION_CACHE_DIR") or tempfile.mkdtemp(prefix="programs-")
    if waiting:
        tests = tuple(sorted({test for fault in waiting for test in fault.tests}))
        print(f"{len(waiting)} faults to try; first the tests without any fault.", flush=True)
        status, seconds, output = run_tests_in_parts(tests, cache, given.workers)
        if status != 0:
            print(f"The tests fail without any fault:\n{output}")
            return 2
        print(f"They pass in {seconds:.0f} s.", flush=True)
    with concurrent.futures.ThreadPoolExecutor(given.workers) as pool:
        pending = {pool.submit(judge, fault, cache): fault for fault in waiting}
        for done in concurrent.futures.as_completed(pending):
            fault = pending[done]
            known[fault.name] = {"key": keys[fault.name], "file": fault.file, **done.result()}
            scratch = given.out.with_suffix(".partial")
            scratch.write_text(json.dumps(known, indent=1))
            scratch.replace(given.out)
            found = known[fault.name]
            print(f"{found['verdict']:7} {found['seconds']:6.1f} s  {fault.name}", flush=True)
    results = [known[fault.name] for fault in faults]
    for fault, found in zip(faults, results, strict=True):
        if found["verdict"] != "caught":
            print(
                f"\n{found['verdict'].upper()}: {fault.name} ({fault.file}), by {', '.join(fault.tests)}\n{found['output']}"
            )
    counts = {
        verdict: sum(found["verdict"] == verdict for found in results) for verdict in ("caught", "missed", "error")
    }
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 0 if counts["caught"] == len(faults) else 1


def run_tests_in_parts(tests: tuple[str, ...], cache: str, workers: int) -> tuple[int, float, str]:
    """The tests on the source as it is, in as many processes."""
    source = os.pathsep.join(str(package.parent) for package in SOURCES.values())
    parts = [tests[number::workers] for number in range(workers) if tests[number::workers]]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(lambda part: run_tests(part, source, cache, limit=3_600.0), parts))
    worst = max(found, key=lambda one: one[0])
    return worst[0], max(seconds for _, seconds, _ in found), worst[2]


if __name__ == "__main__":
    sys.exit(main())
