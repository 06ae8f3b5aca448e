"""Targets with data of the blind cases. All data come from one generator, one after another: their order matters."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

import isotherm as iso
from tests.silent.blind_energies import density, normal_truths, shifted
from tests.silent.case import Target, Truths, probability

RNG = np.random.default_rng(10)


def from_data(log_likelihood: Callable, log_prior: Callable, data: Any, dimension: int, truths: Truths) -> Callable:
    """A function from the size of a batch to a target; one for every size."""
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.int32 if leaf.dtype.kind == "i" else jnp.float32), data)

    @functools.cache
    def make(batch_size: int | None) -> Target:
        potential = iso.from_likelihood(log_likelihood, log_prior, single, batch_size=batch_size)
        return Target(potential, dimension, truths)

    return make


# Conjugate linear regression, with unit noise and prior variances of 25.
_inputs = RNG.normal(size=(500, 5)) @ (np.eye(5) + 0.3 * RNG.normal(size=(5, 5)) / np.sqrt(5))
_outputs = _inputs @ np.array([1.0, -0.5, 0.2, 2.0, 0.0]) + RNG.normal(size=500)
_covariance = np.linalg.inv(_inputs.T @ _inputs + np.eye(5) / 25.0)
REGRESSION_MEAN = _covariance @ _inputs.T @ _outputs
regression = from_data(
    lambda w, e: -0.5 * (e[1] - e[0] @ w) ** 2,
    lambda w: -0.5 * jnp.sum(w**2) / 25.0,
    (_inputs, _outputs),
    5,
    normal_truths(0, REGRESSION_MEAN[0], np.sqrt(_covariance[0, 0]), 1.0)
    + normal_truths(3, REGRESSION_MEAN[3], np.sqrt(_covariance[3, 3]), 1.0),
)


# Poisson counts of three groups with Gamma priors; positions are log rates.
_group = np.repeat(np.arange(3), 120)
_counts = RNG.poisson(np.array([2.0, 4.0, 7.0])[_group])
_shapes, _rate = 2.0 + np.array([_counts[_group == j].sum() for j in range(3)]), 0.5 + 120.0
LOG_RATES = np.log(_shapes / _rate)


def _log_rate_truths(j: int) -> Truths:
    mean, sd = float(special.digamma(_shapes[j]) - np.log(_rate)), float(np.sqrt(special.polygamma(1, _shapes[j])))
    above = stats.gamma.sf(np.exp(mean + sd), _shapes[j], scale=1 / _rate)
    return shifted(str(j), lambda x: x[j], mean, sd) + probability(str(j), lambda x: x[j] > mean + sd, above)


poisson = from_data(
    lambda t, e: e[1] * t[e[0]] - jnp.exp(t[e[0]]),
    lambda t: jnp.sum(2.0 * t - 0.5 * jnp.exp(t)),
    (_group, _counts.astype(float)),
    3,
    _log_rate_truths(0) + _log_rate_truths(2),
)


# Logistic regression, by quadrature.
_rows = RNG.normal(size=(300, 2))
_labels = (RNG.random(300) < special.expit(_rows @ np.array([1.2, -0.8]))).astype(float)


def _logistic_truths() -> Truths:
    side = np.linspace(-2.5, 3.0, 500)
    first, second = np.meshgrid(side, side, indexing="ij")
    logs = -(first**2 + second**2) / 18
    for row, label in zip(_rows, _labels, strict=True):
        score = first * row[0] + second * row[1]
        logs += label * score - np.logaddexp(0, score)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    means = [float((mass * values).sum()) for values in (first, second)]
    sds = [float(np.sqrt((mass * (v - m) ** 2).sum())) for v, m in zip((first, second), means, strict=True)]
    return shifted("0", lambda x: x[0], means[0], sds[0]) + shifted("1", lambda x: x[1], means[1], sds[1])


logistic = from_data(
    lambda w, e: e[1] * (e[0] @ w) - jax.nn.softplus(e[0] @ w),
    lambda w: -jnp.sum(w**2) / 18,
    (_rows, _labels),
    2,
    _logistic_truths(),
)


# Eight schools with known spreads around one mean, which is the last coordinate.
_schools, _errors, _tau = RNG.normal(1.0, 1.5, size=8), np.linspace(0.5, 2.0, 8), 0.8


def _hierarchy() -> Target:
    precision = np.diag([*(1 / _errors**2 + 1 / _tau**2), sum(8 * [1 / _tau**2], 1 / 25.0)])
    precision[:8, 8] = precision[8, :8] = -1 / _tau**2
    covariance = np.linalg.inv(precision)
    mean, sd = covariance @ [*(_schools / _errors**2), 0.0], np.sqrt(np.diag(covariance))
    observed, errors = jnp.asarray(_schools, jnp.float32), jnp.asarray(_errors, jnp.float32)

    def energy(x):
        return (
            0.5 * jnp.sum(((x[:8] - observed) / errors) ** 2)
            + 0.5 * jnp.sum((x[:8] - x[8]) ** 2) / _tau**2
            + x[8] ** 2 / 50
        )

    return Target(
        energy, 9, normal_truths(8, mean[8], float(sd[8]), 1.0) + normal_truths(0, mean[0], float(sd[0]), 1.0)
    )


HIERARCHY = _hierarchy()


# A square root of a mean: two modes.
_squares = RNG.normal(1.2, 3.0, size=100)
_root = density(lambda t: -0.5 * (t - 0.3) ** 2 - 0.5 * (100 * (t**2 - _squares.mean()) ** 2) / 9.0, -3.0, 3.0)
square = from_data(
    lambda t, y: -0.5 * (y - t**2) ** 2 / 9.0,
    lambda t: -0.5 * (t - 0.3) ** 2,
    _squares,
    0,
    shifted("", lambda x: x, _root.mean, _root.sd) + probability("right", lambda x: x > 0.0, _root.above(0.0)),
)
