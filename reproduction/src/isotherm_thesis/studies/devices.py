"""Chains over one and two virtual devices of a CPU, and the time of an exchange of energies between devices and processes.

`python -m isotherm_thesis.studies.devices` writes reproduction/results/devices.json. `isotherm launch -n 2 -- python -m
isotherm_thesis.studies.devices --processes` adds the time of an iteration of two processes.
"""

import argparse
import json
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm_thesis.paths import RESULTS

RECORD = RESULTS / "devices.json"
TOYS, NETWORKS, RUNGS = (1, 16, 256, 4_096, 65_536), (1, 4, 16, 64), (4, 64, 1_000)
_SECONDS, _REPEATS = 1.0, 3


def energy(x: jax.Array) -> jax.Array:
    """A two-dimensional landscape with many wells."""
    return 0.2 * jnp.sum(x**2) - 2.0 * jnp.sum(jnp.cos(2.0 * jnp.pi * x))


def network() -> tuple[Any, Any]:
    """A perceptron of 26,000 weights on 1,000 rows in batches of 100, and its start."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1_000, 51)).astype(np.float32)

    def likelihood(weights, row):
        hidden = jnp.tanh(jnp.tanh(row[:, :50] @ weights["first"]) @ weights["second"])
        return -0.5 * (hidden @ weights["last"] - row[:, 50]) ** 2

    start = {"first": rng.normal(size=(50, 128)), "second": 0.1 * rng.normal(size=(128, 128)), "last": np.zeros(128)}
    prior = lambda weights: -0.5 * sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(weights)), jnp.zeros(()))  # noqa: E731
    return iso.from_likelihood(likelihood, prior, rows, batch_size=100), jax.tree.map(jnp.float32, start)


def rate(potential: Any, sampler: Any, start: Any, num_chains: int, **given: Any) -> float:
    """Iterations per second: the best of a few runs."""
    options: dict[str, Any] = {"init": start, "progress": False, "measure_bias": False, "track_best": False, **given}
    options |= {"num_chains": num_chains} if not sampler.coupling.traits.num_chains else {"num_ladders": 1}
    number, found = 64, []
    while len(found) < _REPEATS:
        began = time.perf_counter()
        run = iso.sample(potential, sampler, num_steps=number, thinning=number, **options)
        if run.seconds < 0.5 * _SECONDS and not found:
            number = int(number * min(max(_SECONDS / max(run.seconds, 1e-3), 1.5), 30.0))
            continue
        found.append(number / (time.perf_counter() - began - run.compile_seconds))
    return max(found)


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", action="store_true", help="the time of an iteration of several processes")
    given = parser.parse_args()
    ladder = lambda rungs: iso.naive_resgld((1e-3, 1e-3), temperatures=(1.0, 10.0), num_replicas=rungs)  # noqa: E731
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if given.processes:
        iso.distributed.initialize()
        start = jnp.zeros(2)
        found = {rungs: 1e6 / rate(energy, ladder(rungs), start, rungs) for rungs in RUNGS}
        record["microseconds of an iteration, two processes, by rungs"] = found
        if iso.distributed.process_index() == 0:
            RECORD.write_text(json.dumps(record, indent=1) + "\n")
            print(json.dumps(found))
        return
    jax.config.update("jax_num_cpu_devices", 2)
    start, (potential, weights) = jnp.zeros(2), network()
    for devices in (1, 2):
        toys = {n: n * rate(energy, iso.sgld(1e-3), start, n, devices=devices) for n in TOYS}
        nets = {n: n * rate(potential, iso.sghmc(1e-6), weights, n, devices=devices) for n in NETWORKS}
        rungs = {n: 1e6 / rate(energy, ladder(n), start, n, devices=devices) for n in RUNGS}
        record[f"toy chain-steps per second, {devices} devices"] = toys
        record[f"perceptron chain-steps per second, {devices} devices"] = nets
        record[f"microseconds of an iteration, {devices} devices, by rungs"] = rungs
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
