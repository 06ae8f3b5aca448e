"""Peers in processes of their own: as their users run them, and with the option that `import isotherm` asks of XLA.

    python -m isotherm_thesis.bench.peers MODULE FUNCTION ARGUMENTS

builds a rival, and runs it once for every line that it reads.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax

from isotherm.engine.whole_loops import MAX_WHOLE_LOOP, whole_loops_flag
from isotherm_thesis.bench.timing import Measurement, rates

# XLA's default.
_LIMIT_OF_XLA = 1_024
_LIMITS = {"": _LIMIT_OF_XLA, ", with our XLA option": MAX_WHOLE_LOOP}


class Peer:
    """A rival in another process, called like one in this."""

    def __init__(self, builder: Callable[..., Any], arguments: tuple[Any, ...], largest_whole_loop: int):
        command = [sys.executable, "-m", "isotherm_thesis.bench.peers", builder.__module__, builder.__name__]
        environment = {**os.environ, "XLA_FLAGS": whole_loops_flag(largest_whole_loop)}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([*command, json.dumps(arguments)], env=environment, text=True, **pipes)

    def __call__(self) -> None:
        process: Any = self._process
        process.stdin.write("run\n")
        process.stdin.flush()
        if process.stdout.readline() != "done\n":
            raise RuntimeError(f"A peer's process ended early: {process.args}")

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


def rows_beside(
    work: str,
    ours: tuple[float, Callable[[], Any]],
    peer: str,
    builder: Callable[..., Any],
    forms: dict[str, tuple[Any, ...]],
    amount: float | None = None,
) -> list[Measurement]:
    """Rows for the forms of a peer, the fastest first: as its users run it, then with our XLA option.

    `ours` is an amount of work and what does it; a form is the arguments of a builder, whose rival does as much, or `amount`.
    """
    done, mine = ours
    rows = []
    for note, limit in _LIMITS.items():
        with contextlib.ExitStack() as stack:
            started = [Peer(builder, arguments, limit) for arguments in forms.values()]
            for one in started:
                stack.callback(one.close)
            rate, *theirs = rates(done, mine, *started)
        found = [
            Measurement(work, f"{peer}, {form}{note}", rate, their * (amount or done) / done)
            for form, their in zip(forms, theirs, strict=True)
        ]
        rows += sorted(found, key=lambda row: -row.theirs)
    return rows


def main() -> None:
    """The other process."""
    module, function, arguments = sys.argv[1:]
    rival = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    for _ in sys.stdin:
        jax.block_until_ready(rival())
        print("done", flush=True)


if __name__ == "__main__":
    main()
