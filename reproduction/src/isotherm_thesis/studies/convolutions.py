"""A small convolutional network on a CPU.

`python -m isotherm_thesis.studies.convolutions` writes reproduction/results/convolutions.json.

Milliseconds of a step of momentum SGD on batches of 100 images of 28 x 28 pixels, medians of runs in turns: a jitted step called
from Python, the same step in a loop of JAX, and a run of the library.
"""

import json
import statistics
import time
from collections.abc import Callable

import jax
import numpy as np
from flax import nnx

import isotherm as iso
from isotherm.driver.describe import environment
from isotherm_thesis.paths import RESULTS

NUM_DATA, BATCH, NUM_STEPS, REPEATS = 1_000, 100, 20, 5


class Small(nnx.Module):
    """Three convolutions, 28,000 weights."""

    def __init__(self, rngs):
        self.first = nnx.Conv(1, 32, (3, 3), rngs=rngs)
        self.second, self.third = (nnx.Conv(32, n, (3, 3), strides=2, rngs=rngs) for n in (32, 64))
        self.last = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, images):
        """Logits."""
        for layer in (self.first, self.second, self.third):
            images = nnx.relu(layer(images))
        return self.last(images.mean(axis=(1, 2)))


def main() -> None:
    """The three in turns."""
    rng = np.random.default_rng(0)
    data = (rng.normal(size=(NUM_DATA, 28, 28, 1)).astype(np.float32), np.arange(NUM_DATA, dtype=np.int32) % 10)
    potential = iso.from_nnx(Small, "cross_entropy", data, batch_size=BATCH, weight_decay=1.0)
    start = potential.init(jax.random.key(0))

    def loss(weights, images, labels):
        return NUM_DATA / BATCH * potential.loss(potential.outputs(weights, images, is_training=True), labels).sum()

    def step(carry, images, labels):
        weights, momentum = carry
        gradient = jax.grad(loss)(weights, images, labels)
        momentum = jax.tree.map(lambda m, g: 0.9 * m - 1e-6 * g, momentum, gradient)
        return jax.tree.map(lambda w, m: w + m, weights, momentum), momentum

    batch = tuple(jax.device_put(part[:BATCH]) for part in data)
    one = jax.jit(step)
    loop = jax.jit(lambda carry, *given: jax.lax.fori_loop(0, NUM_STEPS, lambda _, now: step(now, *given), carry))
    zeros = jax.tree.map(np.zeros_like, start)

    def by_hand():
        carry = (start, zeros)
        for _ in range(NUM_STEPS):
            carry = one(carry, *batch)
        jax.block_until_ready(carry)

    settings = {"num_steps": NUM_STEPS, "init": start, "progress": False, "thinning": NUM_STEPS}
    rivals: dict[str, Callable[[], object]] = {
        "jitted step": by_hand,
        "loop of JAX": lambda: jax.block_until_ready(loop((start, zeros), *batch)),
        "isotherm": lambda: iso.sample(potential, iso.msgd(1e-6), **settings),
    }
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for repeat in range(1 + REPEATS):
        for name, run in rivals.items():
            began = time.perf_counter()
            run()
            if repeat > 0:
                times[name].append(1e3 * (time.perf_counter() - began) / NUM_STEPS)
    rows = [{"work": name, "milliseconds": statistics.median(found), "all": found} for name, found in times.items()]
    for row in rows:
        print(row, flush=True)
    record = {"rows": rows, "environment": environment()}
    (RESULTS / "convolutions.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
