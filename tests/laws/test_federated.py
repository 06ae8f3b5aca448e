"""Federated averaging Langevin dynamics against exact laws at finite step sizes.

Clients with Gaussian likelihoods move linearly, and after an average all of them are at one position. So averages are a recursion of
one number per coordinate, s <- a s + b + noise, whose coefficients follow from K steps of the C clients in NumPy.
"""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.kernels import FederatedLangevin
from isotherm.samplers.sampler import Sampler
from tests.statistics import FAIL, PASS, assert_law, z_score
from tests.targets import langevin_variance

RNG = np.random.default_rng(5)
# Unequal numbers of rows, and unlike clients.
ROWS = [
    (center + RNG.normal(size=number)).astype(np.float32) for center, number in ((-1.0, 4), (1.0, 6), (2.0, 10))
]
EQUAL = [rows[:4] for rows in ROWS]
PRECISION, PRIOR = 0.3, 0.8  # Of a row, and of the prior.
STEP_SIZE, TEMPERATURE, STEPS = 0.02, 1.7, 10


def clients_of(rows, **options):
    log_likelihood = lambda x, y: -0.5 * PRECISION * (y - x) ** 2  # noqa: E731
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
        weights = np.asarray(weights)
        curvatures = np.array([len(own) * PRECISION + p * PRIOR for own, p in zip(rows, weights, strict=True)])
        forces = np.array([PRECISION * own.astype(float).sum() for own in rows])
        noise = 2.0 * STEP_SIZE * TEMPERATURE * (rho**2 + (1.0 - rho**2) * np.diag(1.0 / weights))
        if batch_size is not None:
            # Of sums over batches that are drawn without replacement, independently in every iteration.
            sizes = np.array([len(own) for own in rows])
            spreads = np.array([own.astype(float).var(ddof=1) for own in rows])
            variances = PRECISION**2 * sizes**2 * (1.0 / batch_size - 1.0 / sizes) * spreads
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
        slopes, shifts, covariance = self.after(number, start=variance)
        return self.weights @ (slopes * mean + shifts), self.weights @ covariance @ self.weights


def draws_of(clients, sampler, offset=0, num_rounds=800, num_runs=256):
    """Averages of the clients `offset` iterations after they were averaged, shape (run, draw)."""
    (every,) = {STEPS} if sampler.kernel.local_steps == STEPS else {sampler.kernel.local_steps}
    every = max(every, 5)
    settings = {"thinning": every, "burn_in": 40 * every + offset, "num_steps": num_rounds * every, "num_runs": num_runs}
    init, collect = clients.start(0.0), clients.average
    return iso.sample(clients, sampler, init=init, collect=collect, progress=False, **settings).draws[:, 0]


def assert_moments(draws, mean, variance, wrong_mean, wrong_variance):
    assert abs(z_score(draws.mean(axis=1), mean)) < PASS
    assert abs(z_score(draws.mean(axis=1), wrong_mean)) > FAIL
    assert_law(((draws - mean) ** 2).mean(axis=1), variance, wrong_variance)


def fald(clients, **options):
    options = {"local_steps": STEPS, **options}
    return iso.fald(STEP_SIZE, weights=clients.weights, temperature=TEMPERATURE, **options)


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_ten_local_steps(rho):
    clients = clients_of(ROWS)
    mean, variance = Recursion.of(ROWS, clients.weights, rho).averaged(STEPS)
    flat = np.concatenate(ROWS)
    precision = len(flat) * PRECISION + PRIOR
    posterior = PRECISION * flat.sum() / precision, TEMPERATURE / precision
    found = draws_of(clients, fald(clients, shared_noise=rho))
    assert_moments(found, mean, variance, 1.1 * mean, posterior[1])
    # The drift of unlike clients toward their own minima is a bias of the step size.
    assert abs(z_score(found.mean(axis=1), posterior[0])) < 200.0
