"""SGLD, SGHMC and pSGLD against exact laws at finite step sizes, at temperatures other than 1."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.kernels import PSGLD, SGLD, Kernel
from isotherm.kernels.psgld import PSGLDState
from isotherm.samplers.sampler import Sampler
from isotherm.targets.target import GaussianEnergy
from tests.statistics import FAIL, PASS, assert_law, z_score
from tests.targets import hamiltonian_covariance, langevin_variance

PRECISIONS, MEANS = (2.0, 0.5), (1.0, -3.0)
GAUSSIAN = iso.from_energy(GaussianEnergy(PRECISIONS, MEANS))
START = jnp.asarray(MEANS)


def deviations(potential, sampler, num_steps=4_000, num_runs=64, burn_in=500, **options):
    """Draws minus the true means, shape (repeats, draws, coordinates)."""
    run = iso.sample(
        potential, sampler, num_steps=num_steps, num_runs=num_runs, num_chains=4, burn_in=burn_in, init=START, **options
    )
    return run.draws.reshape(-1, run.draws.shape[2], 2) - np.asarray(MEANS)


@dataclasses.dataclass(frozen=True, eq=False)
class Miscoded(SGLD):
    """SGLD with its noise or its drift off by a factor: what a law test must notice."""

    noise_factor: float = 1.0
    drift_factor: float = 1.0

    def step(self, state, gradient, noise, move, curvature=None):
        gradient = jax.tree.map(lambda g: self.drift_factor * g, gradient)
        noise = jax.tree.map(lambda xi: self.noise_factor * xi, noise)
        return super().step(state, gradient, noise, move)


def test_sgld_variance_and_mean_at_a_finite_step():
    step_size, temperature = 0.3, 1.7
    found = deviations(GAUSSIAN, iso.sgld(step_size=step_size, temperature=temperature))
    for coordinate, precision in enumerate(PRECISIONS):
        truth = langevin_variance(step_size, precision, temperature)
        assert_law((found[..., coordinate] ** 2).mean(axis=1), truth, wrong=temperature / precision)
        assert abs(z_score(found[..., coordinate].mean(axis=1), 0.0)) < PASS


@pytest.mark.parametrize("mutation", [{"noise_factor": 1.1}, {"noise_factor": 0.9}, {"drift_factor": 1.1}])
def test_a_coefficient_off_by_a_tenth_is_seen(mutation):
    found = deviations(GAUSSIAN, Sampler(Miscoded(**mutation), 0.3, 1.7))
    truth = langevin_variance(0.3, PRECISIONS[0], 1.7)
    assert abs(z_score((found[..., 0] ** 2).mean(axis=1), truth)) > FAIL


def test_gradient_noise_of_known_variance():
    step_size, temperature, scale = 0.2, 0.4, 3.0
    potential = iso.with_noise(GAUSSIAN, gradient_scale=scale, energy_scale=5.0)
    found = deviations(potential, iso.sgld(step_size=step_size, temperature=temperature))
    truth = langevin_variance(step_size, PRECISIONS[0], temperature, scale**2)
    without = langevin_variance(step_size, PRECISIONS[0], temperature)
    assert_law((found[..., 0] ** 2).mean(axis=1), truth, wrong=without)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 10.0])
def test_sghmc_solves_its_lyapunov_equation(temperature):
    step_size, friction = 0.15, 0.3
    found = deviations(GAUSSIAN, iso.sghmc(step_size=step_size, temperature=temperature, friction=friction), 8_000)
    for coordinate, precision in enumerate(PRECISIONS):
        truth = hamiltonian_covariance(step_size, precision, temperature, friction)
        # The velocity is the difference of two positions, so draws of positions show both.
        velocity = np.diff(found[..., coordinate], axis=1)
        assert_law((velocity**2).mean(axis=1), truth[1, 1], wrong=step_size * temperature)
        if precision == max(PRECISIONS):
            assert_law((found[..., coordinate] ** 2).mean(axis=1), truth[0, 0], wrong=temperature / precision)


def test_sghmc_noise_follows_the_current_step_size():
    schedule = iso.schedules.Annealed(0.3, rate=4.0, every=1_000, stop_at=1_000)
    found = deviations(GAUSSIAN, iso.sghmc(step_size=schedule, temperature=2.0, friction=0.3), 6_000, burn_in=2_000)
    truth = hamiltonian_covariance(0.075, PRECISIONS[0], 2.0, 0.3)[1, 1]
    # The author's code keeps the noise of the first step size, four times the variance.
    assert_law((np.diff(found[..., 0], axis=1) ** 2).mean(axis=1), truth, wrong=4.0 * truth)


def test_sghmc_leaves_out_the_gradient_noise_it_is_told_of():
    step_size, friction = 0.15, 0.3
    variance = 2.0 * 0.05 / step_size  # b = V eps / 2 = 0.05.
    sampler = iso.sghmc(step_size=step_size, temperature=1.5, friction=friction, gradient_variance=variance)
    found = deviations(GAUSSIAN, sampler, 8_000)
    reduced = hamiltonian_covariance(step_size, PRECISIONS[0], 1.5 * (friction - 0.05) / friction, friction)[1, 1]
    full = hamiltonian_covariance(step_size, PRECISIONS[0], 1.5, friction)[1, 1]
    assert_law((np.diff(found[..., 0], axis=1) ** 2).mean(axis=1), reduced, wrong=full)


class Frozen(PSGLD):
    """A preconditioner that stays at 1 / (lambda + 1) and 1 / (lambda + 3)."""

    def init(self, position):
        return PSGLDState(position, jnp.array([1.0, 9.0]))


def test_frozen_psgld_is_one_autoregression_per_coordinate():
    step_size, temperature, regularizer = 0.6, 1.7, 0.25
    kernel: Kernel = Frozen(decay=1.0, regularizer=regularizer)
    found = deviations(GAUSSIAN, Sampler(kernel, step_size, temperature), 8_000)
    for coordinate, (precision, root) in enumerate(zip(PRECISIONS, (1.0, 3.0), strict=True)):
        truth = langevin_variance(step_size / (regularizer + root), precision, temperature)
        wrong = langevin_variance(step_size / (regularizer + 4.0 - root), precision, temperature)
        estimates = (found[..., coordinate] ** 2).mean(axis=1)
        assert abs(z_score(estimates, truth)) < PASS
        if coordinate == 0:
            assert_law(estimates, truth, wrong)


@pytest.mark.parametrize(("correction", "is_right"), [(True, True), (False, False)])
def test_curvature_correction_makes_a_moving_preconditioner_exact(correction, is_right):
    # With decay 0 the preconditioner is 1 / (0.5 + |x|): without Gamma the law is (0.5 + |x|) exp(-x^2 / 2), of variance 1.61.
    sampler = iso.psgld(step_size=0.01, decay=0.0, regularizer=0.5, curvature_correction=correction)
    run = iso.sample(
        lambda x: 0.5 * jnp.sum(x**2),
        sampler,
        num_steps=60_000,
        num_runs=64,
        burn_in=2_000,
        thinning=20,
        init=jnp.ones(1),
    )
    variance = float((run.draws**2).mean())
    assert abs(variance - (1.0 if is_right else 1.61)) < 0.06
