"""Kernels step by step against NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.estimators.estimator import Curvature
from isotherm.kernels import (
    GHMC,
    MALA,
    PSGLD,
    SGHMC,
    FederatedLangevin,
    MomentumSGD,
    Move,
    Stein,
    scaled,
    within,
)
from isotherm.kernels.kernel import Kernel, Point

RNG = np.random.default_rng(0)
STEPS = 50
GRADIENTS, NOISE = RNG.standard_normal((2, STEPS, 3)).astype(np.float32)


def move(step_size, temperature, momentum_scale=1.0):
    return Move(*(jnp.asarray(value, jnp.float32) for value in (step_size, temperature, 1.0, momentum_scale)))


def moves(number, *values):
    return jax.tree.map(lambda value: jnp.full(number, value), move(*values))


def trajectory(kernel: Kernel, step_sizes, temperature, curvatures=None):
    state = kernel.init(jnp.ones(3))
    for k in range(STEPS):
        curvature = None if curvatures is None else Curvature(*(jnp.asarray(part) for part in curvatures[k]))
        state = kernel.step(
            state, jnp.asarray(GRADIENTS[k]), jnp.asarray(NOISE[k]), move(step_sizes[k], temperature), curvature
        )
    return np.asarray(state.position)


def test_psgld_adapts_as_in_numpy():
    step, temperature, decay, small, scale = 0.01, 1.7, 0.9, 0.05, 0.2
    for corrected in (False, True):
        probes = np.sign(RNG.standard_normal((STEPS, 3))).astype(np.float32)
        products = RNG.standard_normal((STEPS, 3)).astype(np.float32)
        x, v = np.ones(3), np.ones(3)
        for k in range(STEPS):
            g = GRADIENTS[k]
            v = decay * v + (1 - decay) * (scale * g) ** 2
            precondition = 1 / (small + np.sqrt(v))
            gamma = 0.0
            if corrected:
                slope = 2 * (1 - decay) * scale**2 * g * probes[k] * products[k]
                gamma = -(precondition**2) / (2 * np.sqrt(v)) * slope
            x = x - step * precondition * g + step * temperature * gamma
            x = x + np.sqrt(2 * step * temperature * precondition) * NOISE[k]
        kernel = PSGLD(decay, small, scale, corrected)
        curvatures = list(zip(probes, products, strict=True)) if corrected else None
        np.testing.assert_allclose(trajectory(kernel, [step] * STEPS, temperature, curvatures), x, rtol=2e-4)


def test_sghmc_and_its_limit_as_in_numpy():
    steps = 0.02 / (1 + np.arange(STEPS))
    for temperature, kernel in ((0.6, SGHMC(0.2, gradient_variance=3.0)), (0.0, MomentumSGD(0.2))):
        x, v = np.ones(3), np.zeros(3)
        for k, step in enumerate(steps):
            injected = 0.2 - 0.5 * 3.0 * step
            v = 0.8 * v - step * GRADIENTS[k] + np.sqrt(2 * step * injected * temperature) * NOISE[k]
            x = x + v
        np.testing.assert_allclose(trajectory(kernel, steps, temperature), x, rtol=1e-4)


SCALES = np.array([1.0, 2.0, 0.5])


def quartic(x):
    """An energy and its gradient."""
    return np.sum(SCALES * x**4) / 4.0, SCALES * x**3


def adjusted_trajectory(kernel: Kernel, steps, temperatures, uniforms):
    """Positions, momenta and acceptances of an adjusted kernel, whose numbers of the schedules change in every iteration."""
    state, found = kernel.init(jnp.ones(3)), []

    def point(x):
        energy, gradient = quartic(np.asarray(x, np.float64))
        return Point(jnp.asarray(energy, jnp.float32), jnp.asarray(gradient, jnp.float32))

    for k in range(STEPS):
        now = move(steps[k], temperatures[k])._replace(iteration=jnp.asarray(k))
        here = point(state.position)
        proposed = kernel.step(state, here.gradient, jnp.asarray(NOISE[k]), now)
        uniform = jnp.asarray(uniforms[k], jnp.float32)
        state = kernel.settle(state, proposed, here, point(proposed.position), now, uniform)
        found.append([np.asarray(part) for part in (state.position, state.momentum, state.level, state.is_accepted)])
    return found


def ghmc_in_numpy(friction, steps, temperatures, uniforms):
    """The same with the velocity, its kinetic energy and the level of Neal 2020 as the docstring has them."""
    x, p, level, found = np.ones(3), np.zeros(3), 0.0, []
    for k, (step, temperature) in enumerate(zip(steps, temperatures, strict=True)):
        kept = 0.0 if k == 0 else 1.0 - friction
        v = np.sqrt(step * temperature) * (kept * p + np.sqrt(1.0 - kept**2) * NOISE[k])
        energy, g = quartic(x)
        w = v - 0.5 * step * g
        y = x + w
        there, h = quartic(y)
        after = w - 0.5 * step * h
        ratio = np.exp(-(there - energy + (after @ after - v @ v) / (2.0 * step)) / temperature)
        shift = 2.0 * uniforms[k] if friction == 1.0 else 0.03 + 0.01 * uniforms[k]
        level = 2.0 * uniforms[k] - 1.0 if k == 0 else (level + shift + 1.0) % 2.0 - 1.0
        is_accepted = abs(level) < ratio
        x, v = (y, after) if is_accepted else (x, -v)
        level = level / ratio if is_accepted else level
        p = v / np.sqrt(step * temperature)
        found.append((x, p, level, is_accepted))
    return found


def test_adjusted_kernels_as_in_numpy():
    rng = np.random.default_rng(5)
    uniforms, temperatures = rng.uniform(size=STEPS), 1.0 + rng.uniform(size=STEPS)
    steps = 0.6 / (1.0 + np.arange(STEPS) / 20.0)
    for kernel, friction, factor in ((GHMC(0.3), 0.3, 1.0), (GHMC(1.0), 1.0, 1.0), (MALA(), 1.0, 2.0)):
        found = adjusted_trajectory(kernel, steps, temperatures, uniforms)
        expected = ghmc_in_numpy(friction, factor * steps, temperatures, uniforms)
        accepted = [one[3] for one in expected]
        assert 5 < sum(accepted) < STEPS - 5
        for one, other in zip(found, expected, strict=True):
            assert one[3] == other[3]
            for part in range(3):
                np.testing.assert_allclose(one[part], other[part], rtol=2e-3, atol=2e-3)


def test_scaled_kernels_move_scaled_coordinates():
    """x = A z: the trajectory of z under the energy U(A z)."""
    factor = np.array([[1.0, 0.0, 0.0], [0.4, 0.7, 0.0], [-0.2, 0.3, 1.5]])
    for given, is_dense in ((factor, True), (np.array([1.0, 0.7, 1.5]), False)):
        matrix = factor if is_dense else np.diag(given)
        kinds: tuple[Any, ...] = (SGHMC(0.2), GHMC(0.2))
        for inner in kinds:
            kernel = scaled(inner, given.astype(np.float32), is_dense)
            state, plain = kernel.init(jnp.zeros(3)), inner.init(jnp.zeros(3))
            for k in range(5):
                gradient, now = jnp.asarray(GRADIENTS[k]), move(0.1, 1.7)._replace(iteration=jnp.asarray(k))
                # Both moves are accepted, as unadjusted ones.
                state = kernel.step(state, gradient, jnp.asarray(NOISE[k]), now)
                plain = inner.step(plain, jnp.asarray(matrix.T @ GRADIENTS[k], jnp.float32), jnp.asarray(NOISE[k]), now)
                np.testing.assert_allclose(state.position, matrix @ np.asarray(plain.position), rtol=1e-4, atol=1e-5)


def test_momentum_is_rescaled_before_it_is_used():
    kernel = SGHMC(0.2)
    state = kernel.init(jnp.zeros(3))._replace(momentum=jnp.ones(3))
    moved = kernel.step(state, jnp.zeros(3), jnp.zeros(3), move(0.1, 1.0, momentum_scale=3.0))
    np.testing.assert_allclose(moved.momentum, 0.8 * 3.0, rtol=1e-6)


@pytest.mark.parametrize("rho", [0.0, 0.6, 1.0])
def test_federated_noise_and_drift_are_those_of_the_formula(rho):
    weights, step_size, temperature = np.array([0.2, 0.3, 0.5]), 0.1, 1.7
    kernel = FederatedLangevin(tuple(weights.tolist()), local_steps=3, shared_noise=rho)
    number = jnp.array(1.0)
    x, g = jnp.array([1.0, 2.0, 4.0]), jnp.array([3.0, -1.0, 2.0])

    def after(noise, iteration):
        move = Move(jnp.array(step_size), jnp.array(temperature), number, number, jnp.array(iteration))
        return np.asarray(kernel.step(kernel.init(x), g, jnp.asarray(noise, jnp.float32), move).position)

    still = after(np.zeros(3), 0)
    np.testing.assert_allclose(still, x - step_size * g / weights, rtol=1e-6)
    root = np.stack([after(unit, 0) - still for unit in np.eye(3)], axis=1)
    covariance = 2.0 * step_size * temperature * (rho**2 + (1.0 - rho**2) * np.diag(1.0 / weights))
    np.testing.assert_allclose(root @ root.T, covariance, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after(np.zeros(3), 2), np.full(3, weights @ still), rtol=1e-6)
    np.testing.assert_array_equal(after(np.zeros(3), 3), still)


def test_stein_is_the_double_sum_of_its_formula():
    size, step, temperature = 7, 0.1, 1.7
    x, g = RNG.standard_normal((2, size, 3))
    squared = ((x[:, None] - x[None]) ** 2).sum(-1)
    width = np.median(squared) / np.log(size + 1)
    expected = np.zeros_like(x)
    for i in range(size):
        for j in range(size):
            weight = np.exp(-squared[j, i] / width)
            expected[i] += -weight * g[j] + temperature * weight * 2 / width * (x[i] - x[j])
    kernel = Stein()
    state = kernel.step(kernel.init(jnp.asarray(x)), jnp.asarray(g), None, moves(size, step, temperature))
    np.testing.assert_allclose(state.position, x + step * expected / size, rtol=1e-4, atol=1e-5)


def test_svgd_spreads_over_a_gaussian():
    sampler = iso.svgd(step_size=1.0, temperature=1.7)
    run = iso.sample(
        lambda x: 0.5 * jnp.sum((x - 2.0) ** 2),
        sampler,
        num_steps=2_000,
        burn_in=1_999,
        num_chains=100,
        init=lambda key: jnp.sin(key_normal(key)),
    )
    particles = run.draws[:, 0]
    np.testing.assert_allclose(particles.mean(axis=0), 2.0, atol=0.05)
    np.testing.assert_allclose(particles.var(axis=0), 1.7, rtol=0.15)


def test_two_particles_keep_their_distance():
    """With h = 4 a^2 / log 3 the particles at a and -a rest where -a + a / 3 + tau log 3 / (3 a) = 0."""
    starts = iso.per_chain(jnp.array([[0.2], [-1.5]]))
    sampler = iso.svgd(step_size=0.3, temperature=1.7)
    run = iso.sample(lambda x: 0.5 * jnp.sum(x**2), sampler, num_steps=500, burn_in=499, num_chains=2, init=starts)
    rest = np.sqrt(1.7 * np.log(3.0) / 2.0)
    np.testing.assert_allclose(run.draws[:, 0, 0], [rest, -rest], rtol=1e-3)


def key_normal(key):
    return jax.random.normal(key, (2,))


def test_a_box_rejects_and_counts():
    run = iso.sample(
        lambda x: 0.0 * jnp.sum(x),
        iso.sgld(step_size=0.1, box=(-1.0, 1.0)),
        num_steps=500,
        num_chains=2,
        init=jnp.zeros(2),
    )
    assert np.abs(run.draws).max() <= 1.0
    stayed = (np.diff(run.draws, axis=1) == 0).all(axis=-1).sum(axis=-1)
    last = run.stats["num_rejected"] - stayed
    assert ((last == 0) | (last == 1)).all()  # The last move has no draw after it.
    assert run.stats["num_rejected"].min() > 10
    kernel = within(SGHMC(), (np.array([-1.0, -2.0]), np.array([1.0, 2.0])))
    state = kernel.step(kernel.init(jnp.zeros(2)), jnp.array([0.0, 15.0]), jnp.zeros(2), move(0.1, 1.0))
    np.testing.assert_allclose(state.position, [0.0, -1.5])
    state = kernel.step(kernel.init(jnp.zeros(2)), jnp.array([jnp.nan, 0.0]), jnp.zeros(2), move(0.1, 1.0))
    np.testing.assert_array_equal(state.position, [0.0, 0.0])
    assert within(SGHMC(), None).__class__ is SGHMC
