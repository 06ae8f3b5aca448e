"""Runs that the parent kills: started where the folder holds none, resumed where it does.

For every folder that it reads, a line each, this process forks one that runs, and writes its number. It has imported all there is
to import and has started no thread: a fork then has nothing to lose.
"""

import os
import pathlib
import signal
import sys
from typing import Any

import isotherm as iso
from isotherm.targets import modes25

NUM_STEPS, CHAINS, THINNING = 500_000, 16, 100


def go(folder: pathlib.Path):
    target = modes25()
    potential = iso.with_noise(target.potential, energy_scale=0.5, gradient_scale=0.3)
    sampler = iso.sghmc(step_size=1e-3, box=target.box)
    if (folder / "run.json").exists():
        return iso.resume(folder, potential, sampler, checkpoint_every=0.0)
    settings: dict[str, Any] = {"num_steps": NUM_STEPS, "num_chains": CHAINS, "thinning": THINNING, "seed": 9}
    return iso.sample(potential, sampler, init=target.init, out=folder, checkpoint_every=0.0, **settings)


def ended(folder: pathlib.Path) -> pathlib.Path:
    """A file that is there once the run of a folder came to its end without an error."""
    return folder.with_suffix(".ended")


def main() -> None:
    import orbax.checkpoint  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        assert "Threads:\t1\n" in pathlib.Path("/proc/self/status").read_text()
        number = os.fork()
        if number == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            folder = pathlib.Path(line.strip())
            go(folder)
            ended(folder).touch()
            os._exit(0)
        print(number, flush=True)


if __name__ == "__main__":
    main()
