"""A run that the parent kills: started where the folder holds none, resumed where it does."""

import pathlib
import sys
from typing import Any

import isotherm as iso
from isotherm.targets import modes25

NUM_STEPS, CHAINS, THINNING = 3_000_000, 16, 100


def go(folder: pathlib.Path):
    target = modes25()
    potential = iso.with_noise(target.potential, energy_scale=0.5, gradient_scale=0.3)
    sampler = iso.sghmc(step_size=1e-3, box=target.box)
    if (folder / "run.json").exists():
        return iso.resume(folder, potential, sampler, checkpoint_every=0.0)
    settings: dict[str, Any] = {"num_steps": NUM_STEPS, "num_chains": CHAINS, "thinning": THINNING, "seed": 9}
    return iso.sample(potential, sampler, init=target.init, out=folder, checkpoint_every=0.0, **settings)


if __name__ == "__main__":
    go(pathlib.Path(sys.argv[1]))
