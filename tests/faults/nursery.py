"""Runs in processes of their own, as `tests/reproducibility/child.py` starts them: forked from one that has imported everything.

Every line read is a task in JSON: a folder, a file for the outcome, and whether the run in the folder is loaded or run to its end.
"""

import hashlib
import json
import os
import pathlib
import resource
import signal
import sys
import warnings
from typing import Any

import jax
import numpy as np

import isotherm as iso
from isotherm.targets import modes25

NUM_STEPS, INTERVAL, CHAINS, THINNING = 30_000, 3_000, 16, 10


def go(folder: pathlib.Path) -> iso.Run:
    """A run with a checkpoint every `INTERVAL` iterations, started or resumed."""
    target = modes25()
    potential = iso.with_noise(target.potential, energy_scale=0.5, gradient_scale=0.3)
    sampler = iso.sghmc(step_size=1e-3, box=target.box)
    options: dict[str, Any] = {"checkpoint_every": 0.0, "measure_bias": False}
    settings = {"num_steps": NUM_STEPS, "num_chains": CHAINS, "thinning": THINNING, "seed": 9}
    is_there = (folder / "run.json").exists()
    given: dict[str, Any] = {"out": folder, "block_length": INTERVAL, "resume": is_there, **options, **settings}
    return iso.sample(potential, sampler, init=target.init, **given)


def digest(run: iso.Run) -> str:
    """Of all that a run holds, read from the disk."""
    found = hashlib.sha256()
    tree = (run.draws, run.energies, run.log_weights, run.observed, run.stats, np.asarray(run.iterations))
    for leaf in jax.tree.leaves(tree, is_leaf=lambda node: hasattr(node, "shape")):
        found.update(np.ascontiguousarray(leaf).tobytes())
    return found.hexdigest()


def outcome_of(task: dict[str, Any]) -> dict[str, Any]:
    """The digest of the run, or the error, with the warnings that were given."""
    folder = pathlib.Path(task["folder"])
    if "limit" in task:
        resource.setrlimit(resource.RLIMIT_FSIZE, (task["limit"], resource.RLIM_INFINITY))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            if not task.get("is_loaded"):
                go(folder)
            found = {"digest": digest(iso.load(folder))}
        except Exception as error:
            found = {"error": f"{type(error).__module__}.{type(error).__name__}", "message": str(error)}
    return found | {"warnings": [str(one.message) for one in warned]}


def main() -> None:
    import orbax.checkpoint  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        assert "Threads:\t1\n" in pathlib.Path("/proc/self/status").read_text()
        number = os.fork()
        if number == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            task, status = json.loads(line), 0
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            try:
                found = outcome_of(task)
            except SystemExit as end:
                found, status = {"exit": end.code}, 1
            path = pathlib.Path(task["outcome"])
            path.with_suffix(".new").write_text(json.dumps(found))
            path.with_suffix(".new").replace(path)
            os._exit(status)
        print(number, flush=True)


if __name__ == "__main__":
    main()
