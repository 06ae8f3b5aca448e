"""Loops written by hand do what `iso.sample` does: to the bit when called eagerly, to rounding inside a user's own program."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour.energy_noise import noise_correction
from isotherm.samplers import METHODS

STEPS, CHAINS, KEY = 200, 3, 3
LADDER: dict[str, Any] = {"num_replicas": 4, "step_size": (0.001, 0.01)}
CYCLES: dict[str, Any] = {"cycle_length": 50, "sampling_from": 0.5}
BINS: dict[str, Any] = {"partition": (40.0, 90.0, 40)}
OPTIONS: dict[str, dict[str, Any]] = {
    "psgld": {"curvature_correction": True},
    "cycsgld": CYCLES,
    "cycsghmc": CYCLES,
    "swag": CYCLES,
    "resgld": {"variance": "tracked", "measure_every": 5, "temperatures": (1.0, 1.1)},
    "resghmc": {"measure_every": 5, "temperatures": (1.0, 2.0, 4.0)},
    "vr_resgld": {"refresh_every": 7, "temperatures": (1.0, 1.1)},
    "vr_resghmc": {"refresh_every": 7},
    "cvr_resghmc": {"refresh_every": 7, **CYCLES},
    **{name: LADDER for name in METHODS if name.startswith("deo")},
    **{name: BINS for name in ("csgld", "csghmc", "icsgld", "icsghmc", "picsgld", "awsgld")},
    "ksgld": {"partition": (40.0, 90.0, 5), "theta": (0.4, 0.3, 0.2, 0.05, 0.05)},
    "reghmc": {"temperatures": (1.0, 2.0, 4.0)},
}
# Every kernel, estimator and coupling: the others are scanned by `make test-long`.
SCANNED = (
    *(
        "sgld",
        "psgld",
        "sghmc",
        "svgd",
        "ghmc",
        "resgld",
        "vr_resghmc",
        "cvr_resghmc",
        "deo_star_msgd",
        "icsgld",
        "awsgld",
    ),
)
# Metropolis tests need exact energies.
ADJUSTED = ("mala", "ghmc", "reghmc")
# Rules that swap only after the periodic work of the coupling or the estimator.
CORRECTED = ("resgld", "vr_resgld")
DATA = np.random.default_rng(0).normal(size=100).astype(np.float32)
STARTS = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)


def log_likelihood(x, rows):
    return -0.5 * (rows - x[0]) ** 2 - 0.3 * (rows - x[1]) ** 2


def posterior(name):
    size = None if name in ADJUSTED else 10
    return iso.from_likelihood(log_likelihood, lambda x: -0.5 * jnp.sum(x**2), DATA, batch_size=size)


def build(name):
    sampler = METHODS[name](**{"step_size": 0.001, **OPTIONS.get(name, {})})
    return sampler, iso.per_chain(STARTS[: sampler.coupling.traits.num_chains or CHAINS])


def by_hand(sampler, potential, starts, step):
    """Positions, energies, log weights and observations of every iteration."""
    state, seen = sampler.init(potential, starts), []
    for _ in range(STEPS):
        position = np.asarray(state.position)
        state, info = step(jax.random.key(KEY), state)
        seen.append((position, *jax.tree.map(np.asarray, tuple(info))))
    return jax.tree.map(lambda *rows: np.stack(rows), *seen)


@pytest.mark.parametrize("name", METHODS)
def test_steps_by_hand_are_those_of_a_run(name):
    potential, (sampler, starts) = posterior(name), build(name)
    # One ladder: the run and the loop are then the same program.
    run = iso.sample(potential, sampler, num_steps=STEPS, num_ladders=1, init=starts, seed=KEY)
    positions, energies, log_weights, observed = by_hand(sampler, potential, starts, sampler.step)
    at = run.iterations
    if sampler.coupling.traits.num_chains is None:
        np.testing.assert_array_equal(np.moveaxis(positions, 0, 1)[:, at], run.draws)
        np.testing.assert_array_equal(energies.T[:, at], run.energies)
        # What noise adds to weights is known, and taken off, at the end of a run.
        known = noise_correction(np.asarray(run.energies), run.stats, run.config)
        np.testing.assert_array_equal(log_weights.T[:, at] - (0.0 if known is None else known[0]), run.log_weights)
    else:
        np.testing.assert_array_equal(observed["rung"][at], run.observed["rung"][0])
        target = np.argmin(observed["rung"], axis=1)
        np.testing.assert_array_equal(positions[at, target[at]], run.draws[0])
        np.testing.assert_array_equal(energies[at, target[at]], run.energies[0])

    if name in CORRECTED:
        # Without measurements a corrected rule never swaps, and without refreshes a control variate has no energies.
        assert np.isfinite(energies).all()
        assert np.sum(np.diff(observed["rung"][:, 0]) != 0) > 10
    if name in SCANNED:
        compare_inside_a_program(sampler, potential, starts, positions, energies, observed)


def compare_inside_a_program(sampler, potential, starts, positions, energies, observed):
    def body(state, _):
        after, info = sampler.step(jax.random.key(KEY), state)
        return after, (state.position, info.energy, info.observed.get("rung", ()))

    scanned = jax.jit(lambda state: jax.lax.scan(body, state, None, STEPS)[1])(sampler.init(potential, starts))
    np.testing.assert_allclose(scanned[0], positions, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scanned[1], energies, rtol=1e-4)
    np.testing.assert_array_equal(scanned[2], observed.get("rung", ()))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in METHODS if name not in SCANNED])
def test_other_steps_inside_a_program_are_those_by_hand(name):
    potential, (sampler, starts) = posterior(name), build(name)
    positions, energies, _, observed = by_hand(sampler, potential, starts, sampler.step)
    compare_inside_a_program(sampler, potential, starts, positions, energies, observed)


def test_batches_of_the_caller_follow_the_same_law():
    """A run on its own batches and a loop on others: the same posterior, whose mean is known."""
    potential = iso.from_likelihood(
        lambda x, rows: -0.5 * (rows - x) ** 2, None, DATA, batch_size=10, batching="replacement"
    )
    sampler, rng = iso.sgld(2e-3), np.random.default_rng(0)
    batches = jnp.asarray(rng.choice(DATA, (20_000, 10)))

    def body(state, batch):
        after, info = sampler.step(jax.random.key(0), state, batch)
        return after, (state.position, info.energy)

    state = sampler.init(potential, jnp.zeros(()), num_chains=8)
    draws, _ = jax.jit(lambda state: jax.lax.scan(body, state, batches)[1])(state)
    own = iso.sample(potential, sampler, num_steps=20_000, num_chains=8, burn_in=1_000, init=jnp.zeros(()))
    for found in (np.asarray(draws)[1_000:], np.asarray(own.draws)):
        assert abs(found.mean() - DATA.mean()) < 0.01
    assert abs(np.var(np.asarray(draws)[1_000:]) / np.var(own.draws) - 1) < 0.1
    # The control: batches of other data have another mean.
    other, _ = jax.jit(lambda state: jax.lax.scan(body, state, batches + 1.0)[1])(state)
    assert abs(np.asarray(other)[1_000:].mean() - DATA.mean()) > 0.5
