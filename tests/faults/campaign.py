"""Faults at random moments: every run ends with the bytes of an undisturbed one, or is refused with a message of isotherm.

`python -m tests.faults.campaign` applies 200 faults and prints a table. The kinds of faults:

- kill, terminate: SIGKILL and SIGTERM at any moment, from the start of the process on.
- kill in a checkpoint: SIGKILL while Orbax writes one.
- disk full: on a file system of a random size, which is then made larger; a limit on the size of files where none can be mounted.
- cut, flip: a file of any kind in the folder of a run, finished or killed, is truncated, or has one bit flipped.

After each of them the run is resumed. One that was killed must resume from the last checkpoint that is whole, one with a damaged
checkpoint from the one before, with a warning.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.faults.nursery import INTERVAL, NUM_STEPS

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_SECONDS = 60.0
SHARES = {"kill": 50, "terminate": 25, "kill in a checkpoint": 25, "disk full": 20, "cut": 30, "flip": 50}
KINDS = (
    "run.json",
    "progress.json",
    "finished.json",
    "zarr.json",
    "log.jsonl",
    "records/structure.json",
    "records/*/zarr.json",
    "records/*/[0-9]*",
    "start/structure.json",
    "start/*/zarr.json",
    "start/*/[0-9]*",
    "end/structure.json",
    "end/*/zarr.json",
    "end/*/[0-9]*",
    "checkpoints/NEWEST/**/*",
    "checkpoints/*/**/*",
)
OWN = "isotherm.foundation.errors."


class Nursery:
    """Starts runs in processes of their own."""

    def __init__(self, folder: pathlib.Path):
        command = [sys.executable, "-m", "tests.faults.nursery"]
        environment = {"JAX_COMPILATION_CACHE_DIR": str(folder / "programs"), **os.environ, "OPENBLAS_NUM_THREADS": "1"}
        environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        environment |= {"JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process: Any = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes)
        self.folder, self._number = folder, 0

    def start(self, folder: pathlib.Path, **task: Any) -> tuple[int, pathlib.Path]:
        """The number of a new process, and the file that will hold its outcome."""
        self._number += 1
        outcome = self.folder / f"outcome-{self._number}"
        self._process.stdin.write(json.dumps({"folder": str(folder), "outcome": str(outcome), **task}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline()), outcome

    def outcome(self, folder: pathlib.Path, **task: Any) -> dict[str, Any]:
        """What a process found, at its end."""
        return self.wait(*self.start(folder, **task))

    def wait(self, process: int, outcome: pathlib.Path) -> dict[str, Any]:
        """The outcome of a process, "gone" if it ended without one."""
        since = time.time()
        while is_alive(process):
            if time.time() - since > MAX_SECONDS:
                os.kill(process, signal.SIGKILL)
                return {"error": "hung"}
            time.sleep(0.005)
        return json.loads(outcome.read_text()) if outcome.exists() else {"error": "gone"}

    def close(self) -> None:
        """End the process from which others are forked."""
        with self._process:
            self._process.stdin.close()


class Campaign:
    """Runs to disturb, and what an undisturbed one holds."""

    def __init__(self, nursery: Nursery, seed: int):
        self.nursery, self.random, self._number = nursery, random.Random(seed), 0
        self.finished = self._new()
        self.digest = nursery.outcome(self.finished)["digest"]
        self.killed = self._new()
        process, _ = nursery.start(self.killed)
        while is_alive(process) and newest_checkpoint(self.killed) < NUM_STEPS // 2:
            time.sleep(0.002)
        end(process, signal.SIGKILL)
        self.faults: dict[str, Callable[[], str]] = {
            "kill": lambda: self._kill(signal.SIGKILL),
            "terminate": lambda: self._kill(signal.SIGTERM),
            "kill in a checkpoint": self._kill_in_checkpoint,
            "disk full": self._fill,
            "cut": lambda: self._damage(cut),
            "flip": lambda: self._damage(flip),
        }

    def _new(self) -> pathlib.Path:
        self._number += 1
        return self.nursery.folder / f"run-{self._number}"

    def _ends(self, folder: pathlib.Path, lost: int = 0) -> str:
        """The verdict on a run that is resumed; it may lose `lost` iterations that have a checkpoint."""
        before, num_lines = newest_checkpoint(folder), len(log_of(folder))
        found = self.nursery.outcome(folder)
        verdict = self._judged(found)
        # A finished run is read and not resumed.
        resumed = [line["iteration"] for line in log_of(folder)[num_lines:] if line["event"] in ("start", "resume")]
        num_lost = max(before, 0) - resumed[0] if resumed else 0
        if verdict == "equal" and num_lost > lost:
            return f"LOST {num_lost:,} iterations"
        if verdict == "equal" and num_lost and not found["warnings"]:
            return "SILENT about an older checkpoint"
        if verdict == "equal":
            shutil.rmtree(folder)
        return verdict

    def _judged(self, found: dict[str, Any]) -> str:
        if "digest" in found:
            return "equal" if found["digest"] == self.digest else "WRONG DRAWS"
        if found.get("error", "").startswith(OWN):
            return "refused"
        return f"FOREIGN {found}"

    def _kill(self, number: signal.Signals) -> str:
        folder = self._new()
        process, _ = self.nursery.start(folder)
        # Half of the processes are ended while they sample, the others at any moment, such as while they start.
        while self.random.random() < 0.5 and is_alive(process) and newest_checkpoint(folder) < 0:
            time.sleep(0.01)
        time.sleep(self.random.uniform(0.0, 1.5))
        end(process, number)
        return self._ends(folder)

    def _kill_in_checkpoint(self) -> str:
        folder = self._new()
        process, _ = self.nursery.start(folder)
        wanted = self.random.randrange(0, NUM_STEPS, INTERVAL)
        while is_alive(process):
            if newest_checkpoint(folder) >= wanted and any((folder / "checkpoints").glob("*tmp*")):
                time.sleep(self.random.uniform(0.0, 0.02))
                break
        end(process, signal.SIGKILL)
        return self._ends(folder)

    def _fill(self) -> str:
        room = self.random.randrange(60_000, 2_500_000)
        with small_disk(self._new(), room) as (disk, enlarge):
            folder = disk / "run"
            # Where nothing can be mounted, files of more than some bytes are refused.
            limit = {} if enlarge is not None else {"limit": room // 4}
            found = self.nursery.outcome(folder, **limit)
            if not found.get("error", "").startswith(OWN + "StorageError") and "digest" not in found:
                is_start = found.get("error", "").startswith(OWN) and not (folder / "run.json").exists()
                return "refused" if is_start else f"FOREIGN {found}"
            if enlarge is not None:
                enlarge()
            return self._ends(folder)

    def _damage(self, damage: Callable[[pathlib.Path, random.Random], None]) -> str:
        is_finished = self.random.random() < 0.5
        folder = self._new()
        shutil.copytree(self.finished if is_finished else self.killed, folder)
        newest = str(newest_checkpoint(folder))
        kinds = [[p for p in folder.glob(kind.replace("NEWEST", newest)) if p.is_file()] for kind in KINDS]
        path = self.random.choice(sorted(self.random.choice([files for files in kinds if any(map(_size, files))])))
        damage(path, self.random)
        loaded = self._judged(self.nursery.outcome(folder, is_loaded=True)) if is_finished else "refused"
        verdict = self._ends(folder, INTERVAL if path.is_relative_to(folder / "checkpoints") else 0)
        if loaded not in ("equal", "refused") or verdict not in ("equal", "refused"):
            return f"{verdict}, loaded {loaded}: {path.relative_to(folder)}"
        return verdict


def _size(path: pathlib.Path) -> int:
    return path.stat().st_size


def cut(path: pathlib.Path, moments: random.Random) -> None:
    """Keep the beginning of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: moments.randrange(max(len(content), 1))])


def flip(path: pathlib.Path, moments: random.Random) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes() or b"\0")
    content[moments.randrange(len(content))] ^= 1 << moments.randrange(8)
    path.write_bytes(content)


@contextlib.contextmanager
def small_disk(place: pathlib.Path, room: int) -> Iterator[tuple[pathlib.Path, Callable[[], None] | None]]:
    """A file system of `room` bytes and what makes it larger; a folder and None where none can be mounted."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={room}", "isotherm-faults", str(place)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        yield place, None
        return
    try:
        yield place, lambda: subprocess.run(["mount", "-o", "remount,size=64m", str(place)], check=True) and None
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def is_alive(process: int) -> bool:
    """Whether a process runs."""
    return pathlib.Path(f"/proc/{process}").exists()


def end(process: int, number: signal.Signals) -> None:
    """Send a signal to a process, if it runs, and wait for its end."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
    while is_alive(process):
        time.sleep(0.002)


def newest_checkpoint(folder: pathlib.Path) -> int:
    """The iteration of the newest complete checkpoint; -1 without one."""
    place = folder / "checkpoints"
    with contextlib.suppress(FileNotFoundError):
        return max((int(path.name) for path in place.iterdir() if path.name.isdigit()), default=-1)
    return -1


def log_of(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of a log that can be read."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for line in (folder / "log.jsonl").read_bytes().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return found


def run(number: int, seed: int, folder: pathlib.Path) -> dict[str, collections.Counter[str]]:
    """Apply `number` faults, of each kind its share; how often each ended in which way."""
    nursery = Nursery(folder)
    try:
        campaign = Campaign(nursery, seed)
        every = [kind for kind, share in SHARES.items() for _ in range(round(share * number / sum(SHARES.values())))]
        campaign.random.shuffle(every)
        found: dict[str, collections.Counter[str]] = {kind: collections.Counter() for kind in SHARES}
        for kind in every:
            verdict = campaign.faults[kind]()
            found[kind][verdict] += 1
        return found
    finally:
        nursery.close()


def failures(found: dict[str, collections.Counter[str]]) -> list[str]:
    """Ends that are neither equal nor refused."""
    return [
        f"{kind}: {verdict}" for kind, ends in found.items() for verdict in ends if verdict not in ("equal", "refused")
    ]


def table(found: dict[str, collections.Counter[str]]) -> str:
    """Faults by kind and end."""
    rows = ["| fault | number | equal | refused | other |", "|---|---|---|---|---|"]
    for kind, ends in found.items():
        good = [ends["equal"], ends["refused"]]
        rows.append(f"| {kind} | {ends.total()} | {good[0]} | {good[1]} | {ends.total() - sum(good)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        found = run(given.number, given.seed, pathlib.Path(folder))
    print(table(found))
    print(f"{time.time() - began:.0f} s, seed {given.seed}")
    wrong = failures(found)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
