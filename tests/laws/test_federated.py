"""Federated averaging Langevin dynamics against exact laws at finite step sizes.

Clients with Gaussian likelihoods move linearly, and after an average all of them are at one position. So averages are a recursion
of one number, s <- a s + b + noise, whose coefficients follow from K steps of the C clients in NumPy.
"""

import dataclasses
import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.kernels import FederatedLangevin
from isotherm.samplers.sampler import Sampler
from tests.statistics import FAIL, PASS, assert_law, z_score
from tests.targets import langevin_variance

RNG = np.random.default_rng(5)
PRIOR, STEP_SIZE, TEMPERATURE, STEPS = 0.8, 0.02, 1.7, 10


def rows_of(center, number, precision):
    values = (center + RNG.normal(size=number)).astype(np.float32)
    return values, np.full(number, precision, np.float32)


# Values and precisions of rows: clients of unequal sizes, curvatures and minima.
ROWS = [rows_of(-1.0, 4, 0.8), rows_of(1.0, 6, 0.2), rows_of(3.0, 10, 0.3)]
EQUAL = [(values[:4], precisions[:4]) for values, precisions in ROWS]


def log_likelihood(x, rows):
    values, precisions = rows
    return -0.5 * precisions * (values - x) ** 2


def clients_of(rows, **options):
    return iso.from_clients(log_likelihood, lambda x: -0.5 * PRIOR * x**2, rows, **options)


@dataclasses.dataclass(frozen=True)
class Recursion:
    """A step of the clients: x <- slopes x + shifts + noise of covariance `noise`."""

    weights: np.ndarray
    slopes: np.ndarray
    shifts: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(cls, rows, weights, rho, batch_size=None):
        weights, sizes = np.asarray(weights), np.array([len(values) for values, _ in rows])
        precisions = np.array([own[0] for _, own in rows], float)
        curvatures = sizes * precisions + weights * PRIOR
        forces = precisions * np.array([values.astype(float).sum() for values, _ in rows])
        noise = 2.0 * STEP_SIZE * TEMPERATURE * (rho**2 + (1.0 - rho**2) * np.diag(1.0 / weights))
        if batch_size is not None:
            # Of sums over batches that are drawn without replacement, independently in every iteration.
            spreads = np.array([values.astype(float).var(ddof=1) for values, _ in rows])
            variances = precisions**2 * sizes**2 * (1.0 / batch_size - 1.0 / sizes) * spreads
            noise = noise + np.diag((STEP_SIZE / weights) ** 2 * variances)
        return cls(weights, 1.0 - STEP_SIZE * curvatures / weights, STEP_SIZE * forces / weights, noise)

    def after(self, number, start=0.0):
        """Slopes, shifts and covariance of the clients, `number` steps after all were at one position of variance `start`."""
        shifts, covariance = np.zeros_like(self.shifts), np.full_like(self.noise, start)
        for _ in range(number):
            shifts = self.slopes * shifts + self.shifts
            covariance = self.slopes[:, None] * covariance * self.slopes + self.noise
        return self.slopes**number, shifts, covariance

    def selections(self, participation, is_replaced):
        """Shares of the clients in an average, and their probabilities."""
        number = len(self.weights)
        if participation is None:
            return [(self.weights, 1.0)]
        if is_replaced:
            chosen = list(itertools.product(range(number), repeat=participation))
            chances = [float(np.prod(self.weights[list(one)])) for one in chosen]
        else:
            chosen = list(itertools.combinations(range(number), participation))
            chances = [1.0 / len(chosen)] * len(chosen)
        shares = [np.bincount(one, minlength=number) / participation for one in chosen]
        return list(zip(shares, chances, strict=True))

    def averaged(self, local_steps, participation=None, is_replaced=True):
        """Mean and variance of the position of all clients after an average."""
        slopes, shifts, covariance = self.after(local_steps)
        found = [
            (chance, share @ slopes, share @ shifts, share @ covariance @ share)
            for share, chance in self.selections(participation, is_replaced)
        ]
        chances, a, b, v = (np.array(part) for part in zip(*found, strict=True))
        mean = chances @ b / (1.0 - chances @ a)
        square = (chances @ (2.0 * a * b) * mean + chances @ (b**2 + v)) / (1.0 - chances @ a**2)
        return mean, square - mean**2

    def between(self, local_steps, number):
        """Mean and variance of sum_c p_c x_c, `number` steps after an average of all clients."""
        mean, variance = self.averaged(local_steps)
        slopes, shifts, covariance = self.after(number, start=float(variance))
        return self.weights @ (slopes * mean + shifts), self.weights @ covariance @ self.weights


def fald(clients, **options):
    return iso.fald(
        STEP_SIZE, **{"weights": clients.weights, "local_steps": STEPS, "temperature": TEMPERATURE, **options}
    )


def draws_of(clients, sampler, offset=0):
    """Averages of the clients `offset` iterations after multiples of `STEPS`, shape (run, draw)."""
    settings: dict[str, Any] = {
        "thinning": STEPS,
        "burn_in": 40 * STEPS + offset,
        "num_steps": 800 * STEPS,
        "num_runs": 256,
    }
    init, collect = clients.start(0.0), clients.average
    return iso.sample(clients, sampler, init=init, collect=collect, progress=False, **settings).draws[:, 0]


def scores(draws, mean, variance):
    """z-scores of the mean and the variance."""
    return z_score(draws.mean(axis=1), mean), z_score(((draws - mean) ** 2).mean(axis=1), variance)


def assert_moments(draws, truth, wrong):
    """Mean and variance are those of the truth, not the wrong ones, and an error of 10 % in either would be seen."""
    mean, variance = truth
    assert abs(z_score(draws.mean(axis=1), mean)) < PASS
    assert abs(z_score(draws.mean(axis=1), 1.1 * mean)) > FAIL
    assert_law(((draws - mean) ** 2).mean(axis=1), variance, wrong[1])


def sgld_moments(rows):
    """Mean and variance of SGLD on the rows of all clients."""
    values, precisions = (np.concatenate(part).astype(float) for part in zip(*rows, strict=True))
    curvature = precisions.sum() + PRIOR
    return precisions @ values / curvature, langevin_variance(STEP_SIZE, curvature, TEMPERATURE)


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_one_local_step_is_sgld_on_the_sum(rho):
    clients = clients_of(ROWS)
    truth = sgld_moments(ROWS)
    np.testing.assert_allclose(Recursion.of(ROWS, clients.weights, rho).averaged(1), truth, rtol=1e-12)
    found = draws_of(clients, fald(clients, local_steps=1, shared_noise=rho))
    assert_moments(found, truth, wrong=(truth[0], 1.1 * truth[1]))


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_ten_local_steps(rho):
    clients, sgld = clients_of(ROWS), sgld_moments(ROWS)
    truth = Recursion.of(ROWS, clients.weights, rho).averaged(STEPS)
    found = draws_of(clients, fald(clients, shared_noise=rho))
    assert_moments(found, truth, wrong=(sgld[0], 1.1 * truth[1]))
    # Clients drift toward their own minima: the bias of ten local steps is seen.
    assert abs(z_score(found.mean(axis=1), sgld[0])) > FAIL


def test_the_average_between_two_averages():
    clients = clients_of(ROWS)
    recursion = Recursion.of(ROWS, clients.weights, 0.5)
    truth, averaged = recursion.between(STEPS, 5), recursion.averaged(STEPS)
    np.testing.assert_allclose(recursion.between(STEPS, STEPS), averaged, rtol=1e-12)
    assert_moments(draws_of(clients, fald(clients, shared_noise=0.5), offset=5), truth, wrong=(0.0, 1.1 * truth[1]))


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("replacement", [True, False])
def test_partial_participation(rho, replacement):
    rows = ROWS if replacement else EQUAL
    clients = clients_of(rows)
    recursion = Recursion.of(rows, clients.weights, rho)
    truth, full = recursion.averaged(STEPS, 2, replacement), recursion.averaged(STEPS)
    sampler = fald(clients, shared_noise=rho, participation=2, replacement=replacement)
    assert_moments(draws_of(clients, sampler), truth, wrong=full)


def test_partial_participation_heats_at_every_step_size():
    """The factors that the docstring gives, as the step size falls, for clients that agree."""
    alike = [ROWS[0]] * 3
    weights, rho = np.full(3, 1.0 / 3.0), 0.5
    exact = Recursion.of(alike, weights, rho)
    small = dataclasses.replace(
        exact, slopes=1.0 - 1e-5 * (1.0 - exact.slopes), shifts=1e-5 * exact.shifts, noise=1e-5 * exact.noise
    )
    cold = small.averaged(STEPS)[1]
    for participation, is_replaced, heat in ((2, True, 1.0 + 0.75 * 2 / 2), (2, False, 1.0 + 0.75 * 1 / 2)):
        assert small.averaged(STEPS, participation, is_replaced)[1] / cold == pytest.approx(heat, rel=1e-3)


def test_batches_of_the_rows_of_each_client():
    clients = clients_of(ROWS, batch_size=2, batching="independent")
    recursion = Recursion.of(ROWS, clients.weights, 0.0, batch_size=2)
    cold = dataclasses.replace(recursion, noise=Recursion.of(ROWS, clients.weights, 0.0).noise)
    found = draws_of(clients, fald(clients))
    assert_moments(found, recursion.averaged(STEPS), wrong=cold.averaged(STEPS))


def test_weights_of_the_users_choice():
    weights = (0.5, 0.2, 0.3)
    clients = clients_of(ROWS, weights=weights)
    truth = Recursion.of(ROWS, weights, 0.0).averaged(STEPS)
    other = Recursion.of(ROWS, clients_of(ROWS).weights, 0.0).averaged(STEPS)
    assert_moments(draws_of(clients, fald(clients)), truth, wrong=(other[0], 1.1 * truth[1]))


class WithoutShares(FederatedLangevin):
    """Noise of the clients without 1 / p_c."""

    def step(self, state, gradient, noise, move, curvature=None):
        return super().step(state, gradient, noise * jnp.sqrt(jnp.stack(self.weights)), move)


class TooSteep(FederatedLangevin):
    """A drift that is 10 % too large."""

    def step(self, state, gradient, noise, move, curvature=None):
        return super().step(state, 1.1 * gradient, noise, move)


class TooHot(FederatedLangevin):
    """Noise that is 5 % too large: 10 % of its variance."""

    def step(self, state, gradient, noise, move, curvature=None):
        return super().step(state, gradient, 1.05 * noise, move)


def test_controls_fail():
    clients = clients_of(ROWS)
    truth = Recursion.of(ROWS, clients.weights, 0.0).averaged(STEPS)
    wrong = {
        "no averaging": fald(clients, local_steps=10**6),
        "averages half as often": fald(clients, local_steps=2 * STEPS),
        "equal weights": fald(clients, weights=(1 / 3, 1 / 3, 1 / 3)),
        **{
            kind.__name__: Sampler(kind(clients.weights, STEPS), STEP_SIZE, TEMPERATURE)
            for kind in (WithoutShares, TooSteep, TooHot)
        },
    }
    for name, sampler in wrong.items():
        found = draws_of(clients, sampler)
        assert max(map(abs, scores(found, *truth))) > FAIL, name


@pytest.mark.parametrize("wrong", [0.3, 0.65])
def test_the_correlation_is_seen_under_partial_participation(wrong):
    """With all clients the average's noise does not depend on rho."""
    clients = clients_of(ROWS)
    found = draws_of(clients, fald(clients, shared_noise=wrong, participation=2))
    assert abs(scores(found, *Recursion.of(ROWS, clients.weights, 0.5).averaged(STEPS, 2))[1]) > FAIL
