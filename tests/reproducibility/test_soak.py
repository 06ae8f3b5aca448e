"""Long runs: flat memory, and no drift of theta, counters or time."""

import gc
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.targets import modes25
from tests.reproducibility.child_devices import NETWORK, WEIGHTS

# Megabytes; allocators and caches take a few.
ROOM = 40.0


def resident():
    """Megabytes of this process."""
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


class Watch:
    """A callback that notes iterations, memory and time."""

    def __init__(self):
        self.seen: list[tuple[int, float]] = []

    def __call__(self, status: Any) -> None:
        self.seen.append((status.iteration, resident()))

    def growth(self) -> float:
        """Megabytes from the end of the first tenth to the end."""
        last = self.seen[-1][0]
        early = [memory for iteration, memory in self.seen if iteration > 0.1 * last]
        return self.seen[-1][1] - early[0]


@pytest.mark.long
def test_a_hundred_million_iterations_of_a_contour_sampler():
    target, watch = modes25(), Watch()
    potential = iso.with_noise(target.potential, energy_scale=0.5, gradient_scale=0.3)
    sampler = iso.icsgld(1e-3, partition=(0.0, 20.0, 100), box=target.box)
    given: dict[str, Any] = {"num_chains": 4, "init": target.init, "progress": False, "measure_bias": False}
    run = iso.sample(potential, sampler, num_steps=100_000_000, thinning=50_000, callback=watch, **given)
    assert run.num_steps == 100_000_000
    assert int(np.asarray(run.iterations)[-1]) == 99_950_000
    assert watch.growth() < ROOM
    # Weights of the first and the last quarter agree on the energy.
    quarter = run.num_draws // 4
    first, last = (
        run.select(part).estimate(lambda x: jnp.sum(x**2)) for part in (slice(quarter), slice(-quarter, None))
    )
    assert abs(first.mean - last.mean) < 5.0 * np.hypot(first.std_error, last.std_error)
    assert np.isfinite(np.asarray(run.stats["theta"])).all()


@pytest.mark.long
def test_a_million_iterations_of_a_perceptron():
    watch = Watch()
    sampler, given = iso.sghmc(1e-6), {"init": WEIGHTS, "progress": False, "measure_bias": False}
    run = iso.sample(NETWORK, sampler, num_steps=1_000_000, thinning=2_000, num_chains=2, callback=watch, **given)
    assert run.num_steps == 1_000_000
    assert watch.growth() < ROOM
    half = run.num_draws // 2
    energies = np.asarray(run.energies)
    assert abs(energies[:, half:].mean() - energies[:, half // 2 : half].mean()) < 0.2 * energies.std()


@pytest.mark.long
def test_a_thousand_runs_in_one_process():
    sampler, memory = iso.sgld(0.1), []
    for seed in range(1_000):
        # A new function each time, which is compiled anew.
        scale = 1.0 + seed
        run = iso.sample(
            lambda x, scale=scale: 0.5 * scale * jnp.sum(x**2),
            sampler,
            num_steps=20,
            init=jnp.zeros(2),
            seed=seed,
            progress=False,
            measure_bias=False,
        )
        assert run.num_draws == 20
        if seed % 100 == 99:
            jax.clear_caches()
            memory.append(resident())
    assert memory[-1] - memory[1] < ROOM
