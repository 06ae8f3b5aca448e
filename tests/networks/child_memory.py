"""Trains on a set four times as large as the memory that this process may still take."""

import pathlib
import resource
import sys

import jax.numpy as jnp
import numpy as np

import isotherm as iso

LIMIT = 128 << 20
NUM, WIDTH = 4 * LIMIT // (4 * 64), 64


def log_likelihood(weights, examples):
    return -0.5 * (examples[:, 0] - examples[:, 1:] @ weights) ** 2


def used():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))


def main(kind, path):
    data = np.lib.format.open_memmap(path, "w+", np.float32, (NUM, WIDTH))
    rng = np.random.default_rng(0)
    for start in range(0, NUM, 1 << 16):
        block = rng.standard_normal((min(1 << 16, NUM - start), WIDTH), np.float32)
        block[:, 0] = block[:, 1:].sum(axis=1)
        data[start : start + len(block)] = block
    del data
    data = np.load(path, mmap_mode="r")
    # Compilers take memory too, more or less of it from time to time: they run before the limit is set.
    small = iso.from_likelihood(
        log_likelihood, None, np.zeros((1000, WIDTH), np.float32), batch_size=500, is_streamed=kind == "streamed"
    )
    options = {"thinning": 10, "init": jnp.zeros(WIDTH - 1), "progress": False}
    iso.sample(small, iso.sgd(1e-9), num_steps=300, **options)
    resource.setrlimit(resource.RLIMIT_DATA, (used() + LIMIT, used() + LIMIT))
    potential = iso.from_likelihood(log_likelihood, None, data, batch_size=500, is_streamed=kind == "streamed")
    run = iso.sample(potential, iso.sgd(2e-8), num_steps=300, **options)
    energies = np.asarray(run.energies)[0]
    sys.stdout.write(f"{energies[0]} {energies[-1]}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
