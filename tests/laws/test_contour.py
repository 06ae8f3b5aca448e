"""Contour samplers: exact weights, and what must not break them."""

import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour import Contour, Partition
from isotherm.contour.fields import as_field
from isotherm.contour.sum_tree import prefix_sums
from isotherm.contour.theta_histogram import add, fold_scale, init_histogram
from isotherm.coupling import CouplingInputs
from isotherm.kernels import SGLD, limited
from isotherm.kernels.kernel import Move
from isotherm_thesis.targets import csgld_mixture
from tests.compiled import prepared, text_of


def first(x):
    """The first coordinate: one function for all runs, which is compiled once."""
    return x[0]


TARGET = csgld_mixture()
PARTITION = Partition(2.0, 1.0, 50)


def quadrature(slopes="backward", zeta=0.75, bounds=(-5.0, 5.0)):
    """True masses of the bins; log weights on a grid, from the definition; the density that is then sampled."""
    points = np.asarray(TARGET.truth.points)[:, 0]
    energies = np.asarray(jax.vmap(TARGET.energy)(TARGET.truth.points), np.float64)
    bins = np.asarray(PARTITION.index(jnp.asarray(energies)))
    theta = np.maximum(np.bincount(bins, TARGET.truth.probabilities, minlength=50), 1e-12)
    logs = np.log(theta)
    psi = np.ones(50)
    psi[1:-1] += zeta * (np.diff(logs)[:-1] if slopes == "backward" else np.diff(logs)[1:])
    excess = np.clip(psi, *bounds) - 1.0
    fine = np.linspace(2.0, 60.0, 580_001)
    heights = excess[np.minimum(np.ceil(fine - 2.0), 49).astype(int)]
    integral = np.concatenate([[0.0], np.cumsum(heights[1:] * np.diff(fine))])
    # Relative to the mass of the bins whose weight Psi takes: all but the top one, or but the first.
    total = np.log(theta[:-1].sum() if slopes == "backward" else theta[1:].sum())
    heaviest = logs[0 if slopes == "backward" else 1]
    log_weights = np.interp(energies, fine, integral, left=0.0) + zeta * (heaviest - total)
    sampled = TARGET.truth.probabilities * np.exp(-log_weights)
    return points, theta, log_weights, sampled / sampled.sum()


@pytest.mark.parametrize("slopes", ["backward", "forward"])
def test_weights_are_the_integral_and_undo_the_flattening(slopes):
    points, theta, log_weights, sampled = quadrature(slopes)
    sampler = iso.ksgld(0.05, partition=PARTITION, theta=tuple(theta), slopes=slopes, bounds=(-5.0, 5.0))
    run = iso.sample(
        TARGET.potential, sampler, num_steps=200_000, num_runs=60, thinning=20, burn_in=1_000, init=TARGET.init
    )
    draws = np.asarray(run.draws)[:, 0, :, 0]
    expected = np.interp(draws, points, log_weights)
    np.testing.assert_allclose(np.asarray(run.log_weights)[:, 0], expected, atol=2e-3)
    # The chain follows pi / Psi^zeta: its unweighted mass of the left mode is that of quadrature, not 0.4.
    left = np.mean(draws < -1, axis=1)
    error = left.std(ddof=1) / np.sqrt(len(left))
    assert abs(left.mean() - sampled[points < -1].sum()) < 4 * error + 0.01
    means = [float(one.expectation(first)) for one in run.split_runs()]
    assert abs(np.mean(means)) < 4 * np.std(means) / np.sqrt(len(means)) + 0.03


def test_the_psi_field_finds_the_masses_of_the_bins_and_the_mean():
    sampler = iso.csgld(0.02, **iso.thesis.csgld(field="psi", partition=PARTITION))
    settings: dict[str, Any] = {"num_steps": 2_000_000, "num_runs": 8, "thinning": 100, "burn_in": 400_000}
    run = iso.sample(TARGET.potential, sampler, init=TARGET.init, **settings)
    theta = np.mean(run.stats["theta"], axis=(0, 1))
    np.testing.assert_allclose(theta[:4], [0.602, 0.301, 0.0676, 0.0197], rtol=0.1)
    assert np.all(run.stats["diverged_at"] < 0)


def test_no_flattening_is_sgld_to_the_bit():
    for name, options in (("csgld", {}), ("icsgld", {}), ("awsgld", {})):
        flat = getattr(iso, name)(0.1, partition=PARTITION, zeta=0.0, **options)
        run = iso.sample(TARGET.potential, flat, num_steps=500, num_chains=3, init=TARGET.init)
        plain = iso.sample(TARGET.potential, iso.sgld(step_size=0.1), num_steps=500, num_chains=3, init=TARGET.init)
        np.testing.assert_array_equal(run.draws, plain.draws)
        np.testing.assert_array_equal(run.log_weights, 0.0)


@pytest.mark.parametrize("num_bins", [5, 32, 33, 1_000, 40_000])
def test_sums_of_bins(num_bins):
    rng = np.random.default_rng(num_bins)
    masses = rng.random((2, num_bins)).astype(np.float32)
    weights = init_histogram(jnp.asarray(masses), has_sums=True)
    group, index = jnp.array([0, 1, 1]), jnp.asarray(rng.integers(num_bins, size=3))
    weights = add(weights, group, index, jnp.array([3.0, 1.0, 2.0]) / weights.scale[group])
    np.add.at(masses, (np.asarray(group), np.asarray(index)), [3.0, 1.0, 2.0])
    for place in (0, num_bins // 2, num_bins - 1, *np.asarray(index)):
        found = prefix_sums(weights.levels, jnp.array([0, 1]), jnp.array([place, place]))
        np.testing.assert_allclose(weights.scale * found, masses[:, :place].sum(axis=1, dtype=float), rtol=1e-4)


def test_folding_the_scale_changes_no_weight():
    weights = init_histogram(jnp.asarray(np.random.default_rng(0).random((2, 50))), has_sums=True)
    weights = weights._replace(scale=weights.scale * jnp.array([0.25, 1e-6]))
    folded = fold_scale(weights)
    np.testing.assert_allclose(folded.theta, weights.theta, rtol=1e-6)
    np.testing.assert_array_equal(folded.scale, init_histogram(jnp.ones((2, 50)), has_sums=True).scale)


@pytest.mark.parametrize("field", ["psi", "theta^zeta", "theta", "cumulative"])
def test_nothing_underflows_under_a_large_gain(field):
    partition = Partition(-50.0, 1.0, 60)  # The first 50 bins cannot be reached, nor the top one.
    coupling = Contour(partition, 1.0, 0.5, as_field(field), bounds=None if field == "cumulative" else (-5.0, 5.0))
    kernel = limited(SGLD(), 0.5)
    sampler = dataclasses.replace(iso.sgld(step_size=0.02), kernel=kernel, coupling=coupling)
    potential = iso.with_noise(iso.from_energy(lambda x: 0.5 * jnp.sum(x**2)), energy_scale=0.3, gradient_scale=0.3)
    run = iso.sample(potential, sampler, num_steps=300_000, num_chains=2, thinning=1_000, init=jnp.ones(2))
    assert np.isfinite(run.stats["theta"]).all()
    assert np.isfinite(run.draws).all()
    assert np.isfinite(run.log_weights).all()


def test_an_iteration_copies_no_histogram():
    sampler = iso.csgld(0.1, partition=(2.0, 50.0, 70_001))
    text = text_of(prepared(TARGET.potential, sampler, jnp.zeros(1), num_steps=100_000, thinning=1_000))
    assert "70001" in text
    copies = [line for line in text.splitlines() if re.search(r"= f32\[[\d,]*70001\]\S* copy\(", line)]
    inside = [line for line in copies if "while/body/while/body/while" in line]
    assert inside == []


def test_a_limit_shortens_displacements_and_nothing_else():
    kernel = limited(SGLD(), 0.5)
    state = kernel.init(jnp.zeros(2))
    one = jnp.ones(())
    move = Move(0.1 * one, 0 * one, one, one)
    far = kernel.step(state, jnp.array([30.0, 40.0]), jnp.zeros(2), move)
    np.testing.assert_allclose(far.position, [-0.3, -0.4], rtol=1e-6)
    near = kernel.step(state, jnp.array([3.0, 0.0]), jnp.zeros(2), move)
    np.testing.assert_allclose(near.position, [-0.3, 0.0], rtol=1e-6)
    lost = kernel.step(state, jnp.array([jnp.inf, 1.0]), jnp.zeros(2), move)
    assert bool(jnp.all(jnp.isfinite(lost.position)))


@pytest.mark.parametrize("slopes", ["backward", "forward"])
@pytest.mark.parametrize("is_shared", [True, False])
def test_kept_sums_give_the_weights_of_a_sum_over_all_bins(slopes, is_shared):
    """Chains meet in the same bins, neighbors and open ends; psi is often at its bounds."""
    partition = Partition(0.0, 0.01, 300)
    wide = Contour(partition, 0.75, 0.2, as_field("theta"), is_shared, slopes, (-1.0, 2.0))
    update, upkeep, weigh = jax.jit(wide.update), jax.jit(wide.rescaled), jax.jit(wide.log_weights)
    state, one, rng = wide.init(4), jnp.ones(()), np.random.default_rng(0)
    num_bounded, slow = 0, jnp.zeros(4)
    for k in range(300):
        center = rng.uniform(-0.1, 3.2)
        energies = jnp.asarray(center + 0.01 * rng.integers(-1, 2, size=4), jnp.float32)
        temperature = jnp.asarray(0.7 if k < 200 else 0.9)
        if k % 100 == 50:
            state = upkeep(state)
        readings = CouplingInputs(energies, 0 * energies, jnp.ones(4, bool), one, temperature, jnp.array(k))
        state, _ = update(state, (), readings)
        assert state.sums is not None
        fast = weigh(state)
        slow = weigh(state._replace(sums=state.sums._replace(temperature=jnp.zeros(()))))
        np.testing.assert_allclose(fast, slow, atol=2e-4)
        is_used = bool(state.sums.temperature == temperature)
        assert is_used == (50 <= k < 200 or k >= 250)
        num_bounded = int(np.sum(state.counts[0]))
    assert num_bounded > 50
    assert state.sums is not None
    broken = state._replace(sums=state.sums._replace(blocks=jax.tree.map(lambda level: 1.1 * level, state.sums.blocks)))
    assert np.max(np.abs(weigh(broken) - slow)) > 1e-3


def test_published_weights_are_biased_where_ours_are_not():
    """The thesis' field and its weight theta^zeta(J): by quadrature the mean comes out 0.37 instead of 0.

    Chains start in one of the modes, and theta takes its time: without 800,000 iterations of burn-in the mean is off by 0.08.
    """
    sampler = iso.csgld(0.1, **iso.thesis.csgld(partition=PARTITION))
    settings: dict[str, Any] = {"num_steps": 2_000_000, "num_runs": 48, "thinning": 100, "burn_in": 800_000}
    run = iso.sample(TARGET.potential, sampler, init=TARGET.init, **settings)
    theta = np.asarray(run.stats["theta"])[:, 0]
    bins = np.asarray(PARTITION.index(jnp.asarray(run.energies)))[:, 0]
    draws = np.asarray(run.draws)[:, 0, :, 0]
    published = [np.average(x, weights=t[b] ** 0.75) for x, t, b in zip(draws, theta, bins, strict=True)]
    ours = [float(one.expectation(first)) for one in run.split_runs()]
    assert 0.2 < np.mean(published) < 0.5
    assert abs(np.mean(ours)) < 0.1


@pytest.mark.parametrize(("name", "num_chains"), [("csgld", 1), ("icsgld", 4)])
def test_zeta_one_gives_a_flat_histogram(name, num_chains):
    """Energies of a standard normal in the plane are exponential: without flattening each bin has 0.61 of the one below."""
    partition = Partition(0.5, 0.5, 10)
    # Psi is 0 on average: it must be free to go below.
    sampler = getattr(iso, name)(0.05, partition=partition, zeta=1.0, bounds=(-5.0, 5.0))
    settings: dict[str, Any] = {"num_steps": 300_000, "num_runs": 8, "thinning": 20, "burn_in": 100_000}
    energy = iso.from_energy(lambda x: 0.5 * jnp.sum(x**2))
    run = iso.sample(energy, sampler, num_chains=num_chains, init=jnp.zeros(2), **settings)
    bins = np.asarray(partition.index(jnp.asarray(run.energies))).reshape(-1)
    inner = np.bincount(bins, minlength=10)[1:-1] / len(bins)
    assert inner.max() / inner.min() < 1.3
    square = float(run.expectation(lambda x: jnp.mean(x**2)))
    assert abs(square - 1) < 0.05


def test_contours_of_a_control_variate():
    """The posterior of a location: energies of half the data have a noise of 20, and of 0.2 with a fresh control variate."""
    rng = np.random.default_rng(0)
    data = jnp.asarray(rng.normal(size=(1_000, 1)).astype(np.float32))
    potential = iso.from_likelihood(lambda x, rows: -0.5 * jnp.sum((rows - x) ** 2, axis=1), None, data, batch_size=500)
    estimator = iso.estimators.ControlVariate(refresh_every=2)
    sampler = iso.icsgld(1e-5, partition="auto", estimator=estimator)
    settings: dict[str, Any] = {"num_steps": 8_000, "num_runs": 16, "thinning": 10, "burn_in": 2_000}
    run = iso.sample(potential, sampler, num_chains=4, init=data.mean(axis=0), **settings)
    assert run.config["sampler"]["coupling"]["noise"] < 0.5
    mean = float(run.expectation(lambda x: x[0]))
    variance = float(run.expectation(lambda x: x[0] ** 2)) - mean**2
    assert abs(mean - float(data.mean())) < 0.01
    assert abs(variance * 1_000 - 1) < 0.12
    flattened = np.var(np.asarray(run.draws)[..., 0] - mean) * 1_000
    assert flattened > 1.3  # The draws themselves are spread out.
