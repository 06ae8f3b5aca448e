"""Every sampler through one table: shapes, types, jit and eager, positions of any structure."""

from typing import Any
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.driver.settings import NUM_LADDERS
from isotherm.exchange import Exchange
from isotherm.kernels import SGLD
from isotherm.samplers import METHODS
from isotherm.samplers.sampler import resolved

OPTIONS: dict[str, dict[str, Any]] = {
    "sgd": {},
    "msgd": {},
    "sgld": {},
    "psgld": {"curvature_correction": True},
    "sghmc": {},
    "cycsgld": {"cycle_length": 10, "sampling_from": 0.5},
    "cycsghmc": {"cycle_length": 10, "sampling_from": 0.5},
    "svgd": {},
    "swag": {"cycle_length": 10, "sampling_from": 0.5},
    "mala": {},
    "ghmc": {},
    "reghmc": {"temperatures": (1.0, 2.0, 4.0)},
    "naive_resgld": {},
    "resgld": {"measure_every": 5},
    "resghmc": {"measure_every": 5, "temperatures": (1.0, 2.0, 4.0)},
    "deo_sgd": {"num_replicas": 4, "step_size": (0.01, 0.1)},
    "deo_star_sgd": {"num_replicas": 5, "step_size": (0.01, 0.1)},
    "deo_star_psgd": {"num_replicas": 4, "step_size": (0.01, 0.1)},
    "deo_star_msgd": {"num_replicas": 4, "step_size": (0.01, 0.1)},
    "csgld": {"partition": (1.0, 9.0, 10)},
    "csghmc": {"partition": (1.0, 9.0, 10), "field": "theta^zeta", "slopes": "forward"},
    "ksgld": {"partition": (1.0, 9.0, 5), "theta": (0.4, 0.3, 0.2, 0.05, 0.05)},
    "icsgld": {"partition": (1.0, 9.0, 40)},
    "icsghmc": {"partition": (1.0, 9.0, 40)},
    "picsgld": {"partition": (1.0, 9.0, 40)},
    "awsgld": {"partition": (1.0, 9.0, 40), "max_displacement": 1.0},
}
# These read batches, and are refused without data.
WITH_DATA = {"vr_resgld", "vr_resghmc", "cvr_resghmc"}


def build(name) -> iso.Sampler:
    return resolved(METHODS[name](**{"step_size": 0.05, **OPTIONS[name]}))


CASES = [pytest.param(build(name), id=name) for name in OPTIONS]


def energy(x):
    return 0.5 * sum(jnp.sum((leaf - 1.0) ** 2) for leaf in jax.tree.leaves(x))


def nested(key):
    first, second = jax.random.split(key)
    return {"a": jax.random.normal(first, (2, 3)), "b": [jax.random.normal(second, ()), jnp.zeros((1,))]}


def test_the_table_has_every_method():
    assert set(OPTIONS) | WITH_DATA == set(METHODS)
    assert all(build(name).name == name for name in OPTIONS)
    assert all(hasattr(iso, name) for name in METHODS)


@pytest.mark.parametrize("sampler", CASES)
def test_shapes_and_energies_of_a_nested_position(sampler):
    num_chains = sampler.coupling.traits.num_chains or 2
    run = iso.sample(energy, sampler, num_steps=20, num_chains=num_chains, num_runs=3, init=nested)
    chains = NUM_LADDERS if isinstance(sampler.coupling, Exchange) else num_chains
    count = run.num_draws
    assert run.draws["a"].shape == (3, chains, count, 2, 3)
    assert run.draws["b"][0].shape == (3, chains, count)
    assert run.energies.shape == run.log_weights.shape == (3, chains, count)
    assert run.draws["a"].dtype == np.float32
    assert count == (20 if sampler.window is None else 10)
    np.testing.assert_array_equal(run.stats["diverged_at"], -1)
    assert [one.energies.shape for one in run.split_runs()] == [(chains, count)] * 3
    expected = jax.vmap(jax.vmap(jax.vmap(energy)))(run.draws)
    np.testing.assert_allclose(run.energies, expected, rtol=1e-4)


# Every kernel, and every coupling, once.
@pytest.mark.parametrize(
    "name",
    ["msgd", "psgld", "svgd", "cycsghmc", "mala", "reghmc", "resgld", "deo_star_msgd", "csgld", "picsgld", "awsgld"],
)
def test_a_single_run_in_double_precision(name):
    sampler = build(name)
    with jax.enable_x64(True):
        num_chains = sampler.coupling.traits.num_chains or 2
        start = lambda key: jax.random.normal(key, (3,), jnp.float64)  # noqa: E731
        run = iso.sample(energy, sampler, num_steps=12, num_chains=num_chains, init=start)
        expected = jax.vmap(jax.vmap(energy))(run.draws)
    assert run.draws.dtype == run.energies.dtype == np.float64
    assert np.isfinite(run.draws).all()
    np.testing.assert_allclose(run.energies, expected, rtol=1e-10)


def test_a_loop_by_hand_takes_batches_and_follows_the_law():
    data = np.arange(10.0, dtype=np.float32)
    potential = iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, None, data, batch_size=4)
    sampler = iso.sgd(step_size=0.05)
    state = sampler.init(potential, jnp.array(0.0))
    state, info = jax.jit(sampler.step)(jax.random.key(0), state, data[:4])
    # U = (10 / 4) * sum of (x - m)^2 / 2, so the gradient at 0 is -(10 / 4) * 6.
    assert float(info.energy[0]) == pytest.approx(2.5 * 0.5 * 14.0)
    assert float(state.position[0]) == pytest.approx(0.05 * 15.0)


def test_steps_by_hand_use_each_key_for_one_thing():
    sampler = iso.sgld(step_size=0.5)
    state = sampler.init(lambda x: 0.0 * jnp.sum(x), jnp.zeros(1000), num_chains=4)
    state, _ = sampler.step(jax.random.key(3), state)
    # Of 23 bits, so that a few of 4000 numbers coincide; a stream used twice would leave 3000 at most.
    assert len(np.unique(np.asarray(state.position))) > 3_980


def test_one_program_for_a_whole_run():
    calls = Mock()  # Not a list: a program is compiled anew where one that its function reads has grown.

    def counted(x):
        calls()
        return jnp.sum(x**2)

    sampler = iso.sgld(step_size=0.1)
    iso.sample(counted, sampler, num_steps=500, block_length=7, init=jnp.ones(2))
    traced = calls.call_count
    iso.sample(counted, sampler, num_steps=450, seed=3, burn_in=10, block_length=9, init=jnp.zeros(2))
    # Everything was traced for the first run; only the check of the start looks at the function again.
    assert calls.call_count - traced <= 1


def test_samplers_with_the_same_structure_share_a_program():
    calls = Mock()  # Not a list: a program is compiled anew where one that its function reads has grown.

    def counted(x):
        calls()
        return jnp.sum(x**2)

    def traces(sampler):
        before = calls.call_count
        iso.sample(counted, sampler, num_steps=50, num_chains=2, init=jnp.ones(2))
        return calls.call_count - before

    def contour(zeta=0.5, theta=(0.5, 0.3, 0.2)):
        return iso.ksgld(0.1, partition=(1.0, 9.0, len(theta)), theta=theta, zeta=zeta)

    assert traces(contour()) > 1
    # Only the check of the start looks at the function again.
    assert traces(contour()) <= 1
    assert traces(contour(zeta=0.6)) <= 1
    assert traces(contour(theta=(0.5, 0.2, 0.3))) <= 1
    assert traces(contour(theta=(0.5, 0.2, 0.2, 0.1))) > 1
    assert traces(iso.sgld(0.1)) > 1
    assert traces(iso.sgld(0.2)) <= 1
    decaying = lambda iteration: 0.1 / (1 + iteration)  # noqa: E731
    assert traces(iso.sgld(decaying)) > 1
    assert traces(iso.sgld(decaying)) <= 1
    assert traces(iso.sgld(lambda iteration: 0.2 / (1 + iteration))) > 1

    class Scaled(SGLD):
        def __init__(self, scale):
            super().__init__()
            object.__setattr__(self, "scale", scale)

    # These hold more than their fields, which do not tell two of them apart.
    first, second = (iso.Sampler(Scaled(scale), 0.1) for scale in (1.0, 2.0))
    assert traces(first) > 1
    assert traces(second) > 1


@pytest.mark.parametrize("name", sorted(WITH_DATA))
def test_samplers_that_need_data(name):
    data = np.random.default_rng(0).standard_normal(60).astype(np.float32)
    potential = iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, lambda m: -0.5 * m**2, data, batch_size=10)
    options: dict[str, Any] = {"cycle_length": 40, "sampling_from": 0.5} if name.startswith("c") else {}
    sampler = METHODS[name](0.001, refresh_every=8, temperatures=(1.0, 4.0), **options)
    run = iso.sample(potential, sampler, num_steps=400, num_runs=2, init=jnp.zeros(()))
    assert np.isfinite(run.draws).all()
    assert np.isfinite(run.energies).all()
    assert run.num_draws == (200 if name.startswith("c") else 400)
    assert run.stats["num_swaps"].min() > 0
    full = np.asarray(jax.vmap(potential.full_energy)(run.draws[0, 0]))
    plain = iso.sample(potential, iso.sgld(step_size=0.001), num_steps=400, init=jnp.zeros(()))
    plain_full = np.asarray(jax.vmap(potential.full_energy)(plain.draws[0]))
    assert np.std(run.energies[0, 0] - full) < 0.5 * np.std(plain.energies[0] - plain_full)
