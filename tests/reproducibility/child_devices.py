"""Runs on several virtual devices, whose bytes the parent compares: writes draws, energies and weights of every case to a file."""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm.targets import modes25

TARGET = modes25()
NOISY = iso.with_noise(TARGET.potential, energy_scale=0.5, gradient_scale=0.3)
DATA = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
LIKELIHOOD = iso.from_likelihood(
    lambda x, rows: -0.5 * jnp.sum((rows - x) ** 2, axis=-1), lambda x: -0.005 * jnp.sum(x**2), DATA, batch_size=20
)
BOX: Any = {"box": TARGET.box}
BINS: Any = {"partition": (0.0, 20.0, 40), **BOX}


def perceptron(weights, rows):
    inputs, outputs = rows[:, :8], rows[:, 8]
    hidden = jnp.tanh(inputs @ weights["first"] + weights["bias"])
    return -0.5 * (hidden @ weights["last"] - outputs) ** 2


ROWS = np.random.default_rng(1).normal(size=(256, 9)).astype(np.float32)
NETWORK = iso.from_likelihood(perceptron, lambda w: -0.5 * jnp.sum(w["first"] ** 2), ROWS, batch_size=64)
WEIGHTS = {"first": jnp.full((8, 32), 0.1), "bias": jnp.zeros(32), "last": jnp.full(32, 0.1)}
LADDER: Any = {"temperatures": (1.0, 2.0, 4.0, 8.0, 16.0)}
ANCHORED: Any = {"num_replicas": 4, "refresh_every": 50}

# Potential, start, sampler, and settings; five chains or rungs, which no number of devices divides.
CASES: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "sgld": (NOISY, TARGET.init, iso.sgld(1e-3, **BOX), {"num_chains": 5}),
    "sgld in runs": (NOISY, TARGET.init, iso.sgld(1e-3, **BOX), {"num_chains": 3, "num_runs": 5}),
    "resgld": (NOISY, TARGET.init, iso.resgld(1e-3, **LADDER, **BOX), {"num_ladders": 1}),
    "ladders": (NOISY, TARGET.init, iso.resgld(1e-3, **LADDER, **BOX), {"num_ladders": 3}),
    "deo star": (NOISY, TARGET.init, iso.deo_star_sgd((0.003, 0.6), num_replicas=6, **BOX), {"num_ladders": 1}),
    "icsgld": (NOISY, TARGET.init, iso.icsgld(1e-3, **BINS), {"num_chains": 5}),
    "csgld": (NOISY, TARGET.init, iso.csgld(1e-3, **BINS), {"num_chains": 5}),
    "batches": (LIKELIHOOD, jnp.zeros(2), iso.resgld(1e-4, **LADDER), {"num_ladders": 1}),
    "vr_resghmc": (
        LIKELIHOOD,
        jnp.zeros(2),
        iso.vr_resghmc((1e-4, 1e-3), temperatures=(1.0, 3.0), **ANCHORED),
        {"num_ladders": 1},
    ),
    "perceptron sgld": (NETWORK, WEIGHTS, iso.sgld(1e-5), {"num_chains": 8, "chain_mode": "map"}),
    "perceptron resgld": (
        NETWORK,
        WEIGHTS,
        iso.resghmc(1e-5, **LADDER),
        {"num_ladders": 1, "chain_mode": "map"},
    ),
    "perceptron icsgld": (
        NETWORK,
        WEIGHTS,
        iso.icsgld(1e-5, partition=(100.0, 400.0, 30)),
        {"num_chains": 5, "chain_mode": "map"},
    ),
    "perceptron vr": (
        NETWORK,
        WEIGHTS,
        iso.vr_resghmc((1e-5, 1e-4), temperatures=(1.0, 3.0), **ANCHORED),
        {"num_ladders": 1, "chain_mode": "map"},
    ),
}
QUICK = ("resgld", "icsgld", "vr_resghmc")


def run_of(name: str, **changes: Any) -> iso.Run:
    """The run of a case."""
    potential, start, sampler, settings = CASES[name]
    given: dict[str, Any] = {"num_steps": 300, "thinning": 3, "seed": 5, "init": start, "block_length": 90}
    given |= {"progress": False, "measure_bias": False, **settings, **changes}
    return iso.sample(potential, sampler, **given)


def main(path: str, counts: list[int], names: list[str]) -> None:
    """Write the runs of cases on the first devices."""
    found = {}
    for name in names:
        for count in counts:
            run = run_of(name, devices=count)
            for place, leaf in enumerate(jax.tree.leaves((run.draws, run.energies, run.log_weights))):
                found[f"{name}/{count}/{place}"] = np.asarray(leaf)
    np.savez(path, **found)


if __name__ == "__main__":
    main(sys.argv[1], [int(count) for count in sys.argv[2].split(",")], sys.argv[3].split(","))
