"""Targets with data, seen through mini-batches, and their exact expectations."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.special

import isotherm as iso
from tests.silent.case import Target, Truths, line_truths, moments, plane_truths


def normal_mean(num_data: int, dimension: int, **options: Any) -> Target:
    """The mean of normal data of unit variance under a wide normal prior: conjugate."""
    data = np.random.default_rng(1).normal(size=(num_data, dimension)) + 1.0
    log_likelihood = lambda x, y: -0.5 * jnp.sum((y - x) ** 2, axis=1)  # noqa: E731
    log_prior = lambda x: -0.5 * jnp.sum(x**2) / 100.0  # noqa: E731
    precision = num_data + 0.01
    means = data.sum(axis=0) / precision
    potential = iso.from_likelihood(log_likelihood, log_prior, jnp.asarray(data, jnp.float32), **options)
    last = dimension - 1
    truths = moments("x1", 0, means[0], 1 / precision)
    if last:
        truths += moments(f"x{dimension}", last, means[last], 1 / precision)
    return Target(potential, dimension, truths)


def linear_regression(num_data: int, dimension: int, largest: float, **options: Any) -> Target:
    """Linear regression with unit noise and a standard normal prior; covariates have scales from 1 to `largest`."""
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(num_data, dimension)) * np.geomspace(1.0, largest, dimension)
    outputs = inputs @ rng.normal(size=dimension) + rng.normal(size=num_data)
    covariance = np.linalg.inv(inputs.T @ inputs + np.eye(dimension))
    means = covariance @ inputs.T @ outputs

    def log_likelihood(x, rows):
        return -0.5 * (rows[1] - rows[0] @ x) ** 2

    data = (jnp.asarray(inputs, jnp.float32), jnp.asarray(outputs, jnp.float32))
    potential = iso.from_likelihood(log_likelihood, lambda x: -0.5 * jnp.sum(x**2), data, **options)
    last = dimension - 1
    truths = moments("x1", 0, means[0], covariance[0, 0]) + moments(
        f"x{dimension}", last, means[last], covariance[last, last]
    )
    return Target(potential, dimension, truths)


def logistic_regression(num_data: int, **options: Any) -> Target:
    """Logistic regression with an intercept and one slope, a rare outcome and a normal prior; by quadrature."""
    inputs, signs = _rare_outcomes(num_data)

    def log_likelihood(x, rows):
        return -jnp.logaddexp(0.0, -rows[1] * (x[0] + x[1] * rows[0]))

    data = (jnp.asarray(inputs, jnp.float32), jnp.asarray(signs, jnp.float32))
    potential = iso.from_likelihood(log_likelihood, lambda x: -0.5 * jnp.sum(x**2) / 25.0, data, **options)
    return Target(potential, 2, _logistic_truths(num_data))


def _rare_outcomes(num_data: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=num_data)
    return inputs, np.where(rng.random(num_data) < scipy.special.expit(2.0 * inputs - 2.5), 1.0, -1.0)


@functools.cache
def _logistic_truths(num_data: int) -> Truths:
    inputs, signs = _rare_outcomes(num_data)

    def energy(points):
        scores = signs * (points[0][:, None] + points[1][:, None] * inputs)
        return np.logaddexp(0.0, -scores).sum(axis=1) + 0.5 * np.sum(points**2, axis=0) / 25.0

    reach = np.full(2, 70.0 / np.sqrt(num_data))
    rough = plane_truths(energy, np.array([-2.5, 2.0]), reach, 81)
    center, spread = np.array([rough[0][2], rough[2][2]]), np.sqrt([rough[1][2], rough[3][2]])
    return plane_truths(energy, center, 8 * spread, 161)


def signed_mean(num_data: int, prior_mean: float, shift: float = 1.2, **options: Any) -> Target:
    """Data from N(x, 1) or N(-x, 1) by the toss of a coin: two modes, told apart by the prior N(prior_mean, 1) alone."""
    rng = np.random.default_rng(4)
    data = rng.normal(size=num_data) + np.where(np.arange(num_data) % 2, shift, -shift)

    def log_likelihood(x, y):
        return jnp.logaddexp(-0.5 * (y - x[0]) ** 2, -0.5 * (y + x[0]) ** 2)

    def energy(x):
        likelihood = sum(np.logaddexp(-0.5 * (y - x) ** 2, -0.5 * (y + x) ** 2) for y in data)
        return 0.5 * (x - prior_mean) ** 2 - likelihood

    potential = iso.from_likelihood(
        log_likelihood, lambda x: -0.5 * (x[0] - prior_mean) ** 2, jnp.asarray(data, jnp.float32), **options
    )
    return Target(potential, 1, line_truths(energy, -4.0, 4.0, split=0.0, num=20_001))
