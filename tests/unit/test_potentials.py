"""Potentials: the N/n convention, full energies, noise, model state."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.estimators import Plain
from isotherm.potentials.batches import Batch
from isotherm.potentials.sums import compensated

DATA = (np.arange(23.0, dtype=np.float32), np.linspace(-1, 1, 23).astype(np.float32))


def log_likelihood(position, examples):
    x, y = examples
    return -0.5 * (y - position * x) ** 2


def log_prior(position):
    return -0.5 * 3.0 * position**2


POTENTIAL = iso.from_likelihood(log_likelihood, log_prior, DATA, batch_size=5)


def exact(position):
    return 1.5 * position**2 + 0.5 * np.sum((DATA[1] - position * DATA[0]) ** 2)


@pytest.mark.parametrize("size", [1, 4, 5, 22, 23, None])
def test_full_energy_in_pieces_of_any_size(size):
    potential = iso.from_likelihood(log_likelihood, log_prior, DATA, batch_size=size)
    assert float(potential.full_energy(jnp.array(0.3))) == pytest.approx(exact(0.3), rel=1e-5)


def test_a_short_last_batch_is_weighted_by_what_it_holds():
    key = jnp.array([1, 2], jnp.uint32)
    batches = [POTENTIAL.batch(key, jnp.asarray(k)) for k in range(5)]
    for batch in batches:
        used = np.asarray(batch.weights) > 0
        x, y = (np.asarray(leaf)[used] for leaf in batch.examples)
        expected = 1.5 * 0.3**2 + 23 / used.sum() * 0.5 * np.sum((y - 0.3 * x) ** 2)
        found = POTENTIAL.evaluate(jnp.array(0.3), batch, (), ())
        assert float(found.energy) == pytest.approx(expected, rel=1e-5)
        assert float(found.prior_energy) == pytest.approx(1.5 * 0.09)
    assert float(batches[-1].weights.sum()) == 3
    # One pass over the data, each batch by its share, is the full energy.
    shares = [float(batch.weights.sum()) / 23 for batch in batches]
    energies = [float(POTENTIAL.evaluate(jnp.array(0.3), batch, (), ()).energy) for batch in batches]
    assert np.dot(shares, energies) == pytest.approx(exact(0.3), rel=1e-5)


def test_number_of_data_may_be_traced():
    energy = jax.jit(lambda n: POTENTIAL.replace_unchecked(num_used=n).full_energy(jnp.array(0.3)))
    part = 1.5 * 0.09 + 0.5 * np.sum((DATA[1][:10] - 0.3 * DATA[0][:10]) ** 2)
    assert float(energy(10)) == pytest.approx(part, rel=1e-5)
    assert float(energy(23)) == pytest.approx(exact(0.3), rel=1e-5)
    assert energy._cache_size() == 1  # pyright: ignore


def test_noise_has_its_law_and_is_shared_when_asked():
    flat = iso.from_energy(lambda x: 0.0 * jnp.sum(x))
    for is_shared in (False, True):
        noisy = iso.with_noise(flat, energy_scale=7.0, gradient_scale=0.5, degrees=10.0, is_shared=is_shared)
        run = iso.sample(noisy, iso.sgd(step_size=1.0), num_steps=20_000, num_chains=2, init=jnp.zeros(2))
        steps = np.diff(run.draws, axis=1)
        assert run.energies.std() == pytest.approx(7.0 * np.sqrt(10 / 8), rel=0.03)
        assert steps.std() == pytest.approx(0.5, rel=0.03)
        correlation = np.corrcoef(run.energies[0], run.energies[1])[0, 1]
        assert correlation == pytest.approx(1.0 if is_shared else 0.0, abs=0.03)
        assert abs(np.corrcoef(run.energies[0, :-1], steps[0, :, 0])[0, 1]) < 0.03
    assert float(noisy.full_energy(jnp.zeros(2))) == 0.0


def test_a_fresh_batch_for_the_energy_is_independent_of_the_gradient():
    data = np.random.default_rng(0).standard_normal(200).astype(np.float32)
    potential = iso.from_likelihood(lambda m, x: x * m, None, data, batch_size=5, batching="replacement")
    correlations = {}
    for kind in ("shared", "fresh"):
        sampler = iso.Sampler(iso.sgd(step_size=1e-12).kernel, 1e-6, 0.0, estimator=Plain(kind))
        # The energy at m = 1 is minus the gradient of the batch, which moves m.
        run = iso.sample(potential, sampler, num_steps=4_000, init=jnp.array(1.0, jnp.float32))
        moved = np.diff(run.draws[0].astype(np.float64))
        correlations[kind] = np.corrcoef(run.energies[0, :-1], moved)[0, 1]
    assert abs(correlations["shared"]) > 0.8
    assert abs(correlations["fresh"]) < 0.08


def test_model_state_belongs_to_its_chain_and_is_recorded():
    data = np.ones(6, np.float32)

    def counting(position, examples, state):
        return -0.5 * (examples - position) ** 2, {"seen": state["seen"] + examples.sum(), "last": position}

    potential = iso.from_likelihood(
        counting, None, data, batch_size=2, model_state={"seen": jnp.zeros(()), "last": jnp.zeros(())}
    )
    starts = iso.per_chain(jnp.array([0.0, 5.0]))
    run = iso.sample(potential, iso.sgd(step_size=0.01), num_steps=6, num_chains=2, init=starts)
    np.testing.assert_array_equal(run.model_state["seen"][0], 2.0 * np.arange(6))
    np.testing.assert_array_equal(run.model_state["last"][:, 1:], run.draws[:, :-1])
    start = {"seen": jnp.zeros(()), "last": jnp.zeros(())}
    found = potential.evaluate(jnp.array(0.0), Batch(data, jnp.ones(6), jnp.asarray(6)), (), start)
    assert float(found.energy) == pytest.approx(3.0)
    assert float(found.model_state["seen"]) == 6.0


def test_a_full_pass_sees_batches_of_examples_alone():
    """A model that normalizes over the batch: a last piece filled with copies of one example would spoil its statistics."""
    data = np.array([0.0, 10.0, 2.0, 4.0, 7.0], np.float32)

    def normalized(position, examples, state):
        return -((examples - jnp.mean(examples) - position) ** 2), state

    potential = iso.from_likelihood(normalized, None, data, batch_size=3, model_state={"none": jnp.zeros(())})
    pieces = [data[:3], np.array([4.0, 7.0, 0.0])]  # The last one goes on with the first example.
    exact = np.sum((pieces[0] - pieces[0].mean() - 1.0) ** 2)
    exact += np.sum((pieces[1] - pieces[1].mean() - 1.0)[:2] ** 2)
    assert float(potential.full_energy(jnp.array(1.0))) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("batch_size", [1_000, 65_536, None])
def test_energies_of_a_million_examples_are_those_of_double_precision(batch_size):
    """A float holds the energy to a sixteenth; a sum that goes on one by one would be off by more than a unit."""
    data = np.random.default_rng(0).normal(0.0, 1.0, 1_000_000).astype(np.float32)
    potential = iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2 - 0.9189385, None, data, batch_size=batch_size)
    full = jax.jit(potential.full_energy)
    batch = potential.batch(jnp.zeros(2, jnp.uint32), jnp.array(0))
    for m in np.linspace(0.0, 0.002, 7, dtype=np.float32):
        exact = np.sum(0.5 * (data.astype(np.float64) - float(m)) ** 2 + 0.9189385)
        assert abs(float(full(jnp.asarray(m))) - exact) < 0.25
        if batch_size is None:
            assert abs(float(potential.evaluate(jnp.asarray(m), batch, (), ()).energy) - exact) < 0.5


def test_sums_keep_what_rounding_loses():
    total = lost = jnp.zeros(())
    for value in (1e8, 1.0, 1.0, 1.0, -1e8):
        total, lost = jax.jit(compensated)(total, lost, jnp.asarray(value, jnp.float32))
    assert float(total + lost) == 3.0


def test_best_and_first_hit_are_seen_at_every_iteration():
    energy = lambda x: 0.5 * jnp.sum(x**2)  # noqa: E731
    settings: dict[str, Any] = {"num_steps": 5_000, "num_chains": 3, "init": jnp.full(2, 3.0), "seed": 2}
    every = iso.sample(energy, iso.sgld(step_size=0.05), **settings)
    rare = iso.sample(energy, iso.sgld(step_size=0.05), thinning=5_000, target_energy=0.01, **settings)
    best = every.energies.argmin(axis=1)
    np.testing.assert_array_equal(rare.stats["best_iteration"], best)
    np.testing.assert_array_equal(rare.stats["best_energy"], every.energies.min(axis=1))
    np.testing.assert_array_equal(rare.stats["best_position"], every.draws[np.arange(3), best])
    np.testing.assert_array_equal(rare.stats["first_hit"], (every.energies <= 0.01).argmax(axis=1))
    assert (every.stats["first_hit"] == -1).all()
