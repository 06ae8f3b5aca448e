"""The covariance that steps add, against exact stationary laws of linear recursions."""

import numpy as np
import pytest
import scipy

from isotherm.diagnostics.tilt import Dynamics, Epoch, Probes, epoch_noise_factor, tilts_of
from isotherm.kernels.kernel import StepErrors
from isotherm.kernels.sghmc import SGHMC
from isotherm.kernels.sgld import SGLD
from isotherm.run.bias import bias_of

NUM = 20_000


def normal_grid(variance: float) -> np.ndarray:
    """Draws of a normal law at equal steps of probability, in a random order, shape (1, NUM)."""
    points = scipy.special.ndtri((np.arange(NUM) + 0.5) / NUM) * np.sqrt(variance)
    return np.random.default_rng(0).permutation(points)[None]


def langevin_law(rate: float, noise: float, step_errors: StepErrors, is_exact: bool) -> tuple[float, float]:
    """The bias of the variance that is found for draws of the law of x' = x - (rate x + noise) + sqrt(2) xi, and the true one."""
    variance = (2.0 + noise) / (2.0 * rate - rate**2)
    x = normal_grid(variance)
    rng = np.random.default_rng(1)
    signs, other = rng.choice((-1.0, 1.0), (2, *x.shape))
    half = np.sqrt(0.5 * noise) * other
    probes = Probes(*(part[..., None] for part in (x, rate * x + half, rate * x - half, signs, rate * signs)))
    dynamics = Dynamics((step_errors.curvature, step_errors.noise), None, np.zeros(NUM), 0.0, is_exact, False)
    log_weights = np.zeros(x.shape)
    tilts, _, is_measured = tilts_of(probes, np.zeros(x.shape, int), log_weights, dynamics)
    assert not is_measured
    return float(bias_of(x[..., None] ** 2, tilts, log_weights)[0][0]), variance - 1.0 / rate


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_langevin_steps_add_what_the_stationary_law_has_too_much(rate, noise):
    step_errors = SGLD().step_errors
    assert step_errors is not None
    found, truth = langevin_law(rate, noise, step_errors, noise == 0.0)
    assert found == pytest.approx(truth, rel=0.02)


def test_a_factor_that_is_off_by_a_tenth_is_seen():
    found, truth = langevin_law(0.1, 0.0, StepErrors(1.1, 1.0), is_exact=True)
    assert found > 1.05 * truth
    found, truth = langevin_law(0.1, 1.0, StepErrors(1.0, 1.1), is_exact=False)
    assert found > 1.05 * truth


@pytest.mark.parametrize("friction", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 0.01), (1.0, 0.02)])
def test_momentum_adds_what_its_factors_say(friction, noise, tolerance):
    """Position and momentum are a linear recursion, whose stationary covariance solves Lyapunov's equation."""
    rate, kept = 1e-3, 1.0 - friction
    move = np.array([[1.0 - rate, kept], [-rate, kept]])
    injected = np.array([1.0, 1.0])
    drive = (2.0 * friction + noise) * np.outer(injected, injected)
    variance = scipy.linalg.solve_discrete_lyapunov(move, drive)[0, 0]
    errors = SGHMC(friction=friction).step_errors
    expected = 0.5 * errors.curvature + 0.5 * errors.noise * noise / rate
    assert variance - 1.0 / rate == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("rate", [0.003, 0.05, 0.5])
@pytest.mark.parametrize(
    ("epoch", "phases"),
    [
        (Epoch(100, 10), np.arange(10)),
        (Epoch(100, 10), np.zeros(3)),
        (Epoch(500, 10), np.array([25])),
        (Epoch(92, 10), np.arange(10)),
        (Epoch(92, 10), np.zeros(1)),
        (Epoch(11, 10), np.arange(2)),
    ],
)
def test_epochs_are_heard_as_the_recursion_hears_them(rate, epoch, phases):
    """x' = (1 - rate) x - noise, with the covariance of means of batches without a common example: its exact variance."""
    length = epoch.length
    sizes = np.append(np.full(length - 1, epoch.batch_size), epoch.last_size)
    covariance = np.diag(1 / sizes) - 1 / epoch.num_data
    found = []
    for phase in phases.astype(int):
        total = 0.0
        for back in range(int(np.ceil(12.0 / rate / length)) + 1):
            # The newest epoch has seen `phase` batches, those before all of theirs.
            age = phase - 1 - np.arange(length) + back * length
            weights = np.where(age >= 0, (1.0 - rate) ** np.maximum(age, 0), 0.0)
            total += weights @ covariance @ weights
        found.append(total)
    unit = covariance[0, 0]
    expected = np.mean(found) * (1.0 - (1.0 - rate) ** 2) / unit
    heard = epoch_noise_factor(np.array([rate]), epoch, phases.astype(int))[0]
    assert heard == pytest.approx(expected, rel=0.01, abs=1e-4)


def test_an_epoch_of_one_batch_has_no_noise():
    assert epoch_noise_factor(np.array([0.1]), Epoch(10, 10), np.zeros(1)) == 0.0


def test_directions_of_the_hessian_are_kept_apart():
    """In two correlated coordinates every variance grows by half a step, whatever the curvature."""
    rng = np.random.default_rng(0)
    hessian = np.array([[0.05, 0.04], [0.04, 0.05]])
    covariance = np.linalg.inv(hessian) @ np.linalg.inv(np.eye(2) - hessian / 2)
    x = rng.multivariate_normal(np.zeros(2), covariance, (4, NUM))
    signs = rng.choice((-1.0, 1.0), x.shape)
    probes = Probes(x, x @ hessian, x @ hessian, signs, signs @ hessian)
    log_weights = np.zeros(x.shape[:2])
    dynamics = Dynamics((1.0, 1.0), None, np.zeros(NUM), 0.0, True, False)
    tilts, _, _ = tilts_of(probes, np.zeros(log_weights.shape, int), log_weights, dynamics)
    found, error = bias_of(x**2, tilts, log_weights)
    truth = np.diag(covariance - np.linalg.inv(hessian))
    np.testing.assert_allclose(found, truth, atol=4 * np.max(error), rtol=0)
    assert np.all(4 * error < 0.2 * truth)
