"""Ten problems for the study of `iso.sample(problem, budget=...)`, written without knowledge of the library.

Each problem is a log likelihood, a prior, a start as a user would give it, and expectations with known values. The values are
the constants in `TRUTHS`. `<problem>_truth`, next to each problem, computes them in float64 with NumPy and SciPy.
`reproduction/tests/test_automatic_fresh.py` compares the constants with these functions and with a second computation.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from scipy.linalg import solve_triangular
from scipy.special import expit, gammaln, logsumexp

from isotherm_thesis.studies.automatic_problems import Prior, Problem, Quantity, normal_prior, prior_from

LOG_2PI = float(np.log(2 * np.pi))
Truth = tuple[float, list[tuple[float, float]]]  # log evidence; truth and spread of each quantity


def log_sum_exp(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """`scipy.special.logsumexp` with the type that it has without signs."""
    return logsumexp(x, axis=axis, keepdims=keepdims)


def _start_at(position: Sequence[float]) -> Callable[[Any], Any]:
    """One point, whatever the key."""
    return lambda key: jnp.asarray(np.asarray(position, np.float32))


def _indicator(condition: Any) -> Any:
    return jnp.where(condition, 1.0, 0.0)


def _averages(log_weights: np.ndarray, functions: Sequence[np.ndarray]) -> list[tuple[float, float]]:
    """Mean and standard deviation of each function under normalized weights."""
    weights = np.exp(log_weights - log_sum_exp(log_weights))
    means = [float(np.sum(weights * f)) for f in functions]
    return [(mean, float(np.sqrt(np.sum(weights * (f - mean) ** 2)))) for mean, f in zip(means, functions, strict=True)]


def _log_normal(x: Any, location: Any, scale: Any) -> Any:
    """Log density of a normal distribution, in NumPy."""
    return -0.5 * ((x - location) / scale) ** 2 - np.log(scale) - 0.5 * LOG_2PI


def _fit_normal_mixture(draws: np.ndarray, components: int, rng: np.random.Generator, rounds: int = 60):
    """Expectation maximization: weights (K,), means (K, d), Cholesky factors (K, d, d)."""
    n, d = draws.shape
    means = draws[rng.choice(n, components, replace=False)]
    covariances = np.repeat(np.cov(draws.T).reshape(1, d, d), components, 0) / components
    weights = np.full(components, 1 / components)
    for _ in range(rounds):
        terms = np.log(weights) + _log_student(draws, means, np.linalg.cholesky(covariances), np.inf)
        r = np.exp(terms - log_sum_exp(terms, 1, keepdims=True))
        total = r.sum(0) + 1e-9
        weights = np.maximum(total / total.sum(), 1e-3)
        means = (r.T @ draws) / total[:, None]
        centered = draws[:, None] - means
        covariances = np.einsum("nk,nki,nkj->kij", r, centered, centered) / total[:, None, None]
        covariances += 1e-3 * np.diag(draws.var(0))
    return weights / weights.sum(), means, np.linalg.cholesky(covariances)


def _log_student(x: np.ndarray, means: np.ndarray, factors: np.ndarray, freedom: float) -> np.ndarray:
    """Log densities (n, K) of Student t distributions; normal where the degrees of freedom are infinite."""
    d = x.shape[-1]
    columns = []
    for mean, factor in zip(means, factors, strict=True):
        square = np.sum(solve_triangular(factor, (x - mean).T, lower=True) ** 2, 0)
        if np.isinf(freedom):
            log_density = -0.5 * (square + d * LOG_2PI)
        else:
            constant = gammaln((freedom + d) / 2) - gammaln(freedom / 2) - 0.5 * d * np.log(freedom * np.pi)
            log_density = constant - 0.5 * (freedom + d) * np.log1p(square / freedom)
        columns.append(log_density - np.sum(np.log(np.diag(factor))))
    return np.stack(columns, -1)


def importance_sample(
    log_density: Callable[[np.ndarray], np.ndarray],
    pilot: np.ndarray,
    components: int,
    draws: int,
    seed: int,
    freedom: float = 6.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, d) and log weights (n,) from a mixture of Student t distributions fitted to a pilot sample.

    The mean weight is the integral of the density. Kish's effective size of the weights is the number to look at.
    """
    rng = np.random.default_rng(seed)
    weights, means, factors = _fit_normal_mixture(pilot, components, rng)
    label = rng.choice(components, draws, p=weights)
    scale = np.sqrt(freedom / rng.chisquare(freedom, draws))
    x = means[label] + np.einsum(
        "nij,nj->ni", factors[label], rng.normal(size=(draws, pilot.shape[1])) * scale[:, None]
    )
    log_proposal = log_sum_exp(np.log(weights) + _log_student(x, means, factors, freedom), 1)
    return x, log_density(x) - log_proposal


def metropolis(
    log_density: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    step: np.ndarray,
    steps: int,
    keep: int,
    seed: int,
) -> np.ndarray:
    """Random-walk Metropolis, chains (C, d) side by side: every `keep`-th position of the second half, (n, d)."""
    rng = np.random.default_rng(seed)
    x, value, kept = start, log_density(start), []
    for i in range(steps):
        proposal = x + rng.normal(size=x.shape) @ step.T
        proposed = log_density(proposal)
        accept = np.log(rng.uniform(size=len(x))) < proposed - value
        x, value = np.where(accept[:, None], proposal, x), np.where(accept, proposed, value)
        if i >= steps // 2 and i % keep == 0:
            kept.append(x)
    return np.concatenate(kept)


# 1. Photometric redshift: size 1. A break between two filters is the Balmer break nearby or the Lyman break far away.

BANDS = np.array([3600.0, 4800.0, 6200.0, 7600.0, 9000.0])  # Angstrom: u g r i z
FILTER = np.linspace(-500.0, 500.0, 11)  # offsets at which a filter is averaged
COLORS = np.array([1.1, 0.2, 0.15, 0.1])  # magnitudes: u-g, g-r, r-i, i-z
COLOR_ERROR = np.array([0.3, 0.15, 0.15, 0.2])
REDSHIFT_MEAN, REDSHIFT_SD = float(np.log(1.8)), 0.5  # of log(1 + z)


def _redshift_residuals(x: Any, xp: Any) -> Any:
    """Standardized residuals (..., 4) of the colors for x = log(1 + z) (...,)."""
    rest = (BANDS[:, None] + FILTER) / xp.exp(x)[..., None, None]
    balmer = 0.4 + 0.6 / (1 + xp.exp(-xp.clip((rest - 3900) / 150, -60, 60)))
    lyman = 0.05 + 0.95 / (1 + xp.exp(-xp.clip((rest - 1216) / 40, -60, 60)))
    flux = xp.mean((rest / 4000) ** -0.5 * balmer * lyman, axis=-1)
    magnitude = -2.5 / np.log(10.0) * xp.log(flux)
    return (magnitude[..., :-1] - magnitude[..., 1:] - COLORS) / COLOR_ERROR


def _redshift_log_likelihood(x):
    return -0.5 * jnp.sum(_redshift_residuals(x[0], jnp) ** 2)


def redshift_truth(step: float = 1e-4) -> Truth:
    """Trapezoid rule in one dimension, 6 standard deviations of the prior either way."""
    x = np.arange(REDSHIFT_MEAN - 6 * REDSHIFT_SD, REDSHIFT_MEAN + 6 * REDSHIFT_SD, step)
    log_weights = -0.5 * np.sum(_redshift_residuals(x, np) ** 2, -1) + _log_normal(x, REDSHIFT_MEAN, REDSHIFT_SD)
    near, far = x < 0.6, x > 1.0
    return float(log_sum_exp(log_weights) + np.log(step)), _averages(log_weights, [near, far, x])


# 2. Two planets: size 7. Nightly observations alias the periods; exchanging the planets changes nothing.


def _planets_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(PLANETS_SEED)
    nights = np.sort(rng.choice(50, 34, replace=False))
    times = nights + rng.uniform(-0.1, 0.1, len(nights))
    errors = rng.uniform(1.5, 2.5, len(nights))
    signal = 1.0 + 4.5 * np.cos(2 * np.pi * 0.23 * times + 0.7) + 2.6 * np.cos(2 * np.pi * 0.387 * times - 1.1)
    return times.astype(np.float32), (signal + errors * rng.normal(size=len(nights))).astype(np.float32), errors


PLANETS_SEED = 3
FREQUENCIES = (0.02, 0.98)  # per day
AMPLITUDE_SD = 5.0
TIMES, VELOCITIES, VELOCITY_ERRORS = _planets_data()


def _planets_frequencies(x):
    return FREQUENCIES[0] + (FREQUENCIES[1] - FREQUENCIES[0]) * ndtr(x[:2])


def _planets_log_likelihood(x):
    """Position: two frequencies through the normal distribution function, two cosines, two sines, one offset."""
    phases = 2 * np.pi * _planets_frequencies(x)[:, None] * TIMES
    model = x[2:4] @ jnp.cos(phases) + x[4:6] @ jnp.sin(phases) + x[6]
    residuals = (VELOCITIES - model) / VELOCITY_ERRORS
    return -0.5 * jnp.sum(residuals**2) - np.sum(np.log(VELOCITY_ERRORS)) - 0.5 * len(TIMES) * LOG_2PI


def _planets_grid(size: int):
    """Frequencies (F,), log marginal likelihoods (F, F), and the posterior of the coefficients given two frequencies."""
    f = FREQUENCIES[0] + (FREQUENCIES[1] - FREQUENCIES[0]) * (np.arange(size) + 0.5) / size
    noise = np.diag(VELOCITY_ERRORS**2) + AMPLITUDE_SD**2
    whiten = np.linalg.inv(np.linalg.cholesky(noise))
    phases = 2 * np.pi * f[:, None] * TIMES.astype(float)
    basis = AMPLITUDE_SD * np.stack([np.cos(phases), np.sin(phases)], 1) @ whiten.T  # (F, 2, N)
    data = whiten @ VELOCITIES.astype(float)
    b = basis @ data  # (F, 2)
    p = np.eye(2) + basis @ basis.transpose(0, 2, 1)
    inverse = np.linalg.inv(p)
    log_det = np.linalg.slogdet(p)[1]
    explained = np.einsum("fi,fij,fj->f", b, inverse, b)
    constant = -0.5 * data @ data + np.log(np.diag(whiten)).sum() - 0.5 * len(TIMES) * LOG_2PI
    log_marginal = np.empty((size, size))
    flat = basis.reshape(2 * size, -1)
    for i in range(size):  # Schur complement of the first planet's block, for all second planets
        cross = (basis[i] @ flat.T).reshape(2, size, 2).transpose(1, 0, 2)  # (F, 2, 2)
        left = inverse[i] @ cross
        s = p - cross.transpose(0, 2, 1) @ left
        r = b - np.einsum("fij,i->fj", left, b[i])
        det = s[:, 0, 0] * s[:, 1, 1] - s[:, 0, 1] ** 2
        quadratic = (s[:, 1, 1] * r[:, 0] ** 2 + s[:, 0, 0] * r[:, 1] ** 2 - 2 * s[:, 0, 1] * r[:, 0] * r[:, 1]) / det
        log_marginal[i] = constant + 0.5 * (explained[i] + quadratic - log_det[i] - np.log(det))
    return f, log_marginal


def planets_coefficients(f1: np.ndarray, f2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n, 5) and covariance (n, 5, 5) of cosines, sines and offset, given the frequencies (n,)."""
    phases = [2 * np.pi * f[:, None] * TIMES.astype(float) for f in (f1, f2)]
    columns = [function(phase) for function in (np.cos, np.sin) for phase in phases]
    design = np.stack([*columns, np.ones_like(columns[0])], -1)
    weighted = design / VELOCITY_ERRORS[:, None] ** 2
    covariance = np.linalg.inv(design.transpose(0, 2, 1) @ weighted + np.eye(5) / AMPLITUDE_SD**2)
    return np.einsum("nij,ntj,t->ni", covariance, weighted, VELOCITIES.astype(float)), covariance


def planets_sets(f1: Any, f2: Any) -> list[Any]:
    """Disjoint sets: both frequencies as simulated, the first aliased, the second aliased, both aliased."""

    def has(frequency: float) -> Any:
        return (abs(f1 - frequency) < 0.02) | (abs(f2 - frequency) < 0.02)

    return [has(0.232) & has(0.389), has(0.770) & has(0.389), has(0.232) & has(0.611), has(0.770) & has(0.611)]


def planets_truth(size: int = 2400) -> Truth:
    """Midpoint rule over both frequencies; coefficients are integrated exactly. Three seconds on one core."""
    f, log_marginal = _planets_grid(size)
    rows, columns = np.nonzero(log_marginal > log_marginal.max() - 25)
    log_weights = log_marginal[rows, columns]
    f1, f2 = f[rows], f[columns]
    mean, covariance = planets_coefficients(f1, f2)
    c, s = mean[:, :4], covariance[:, :4, :4]
    power = np.sum(c**2, 1) + np.trace(s, axis1=1, axis2=2)
    power_variance = 2 * np.sum(s**2, (1, 2)) + 4 * np.einsum("ni,nij,nj->n", c, s, c)
    values = _averages(log_weights, [*planets_sets(f1, f2), mean[:, 4], power])
    within = _averages(log_weights, [covariance[:, 4, 4], power_variance])
    for i, (variance, _) in zip((4, 5), within, strict=True):
        values[i] = values[i][0], float(np.hypot(values[i][1], np.sqrt(variance)))
    return float(log_sum_exp(log_marginal) - 2 * np.log(size)), values


# 3. Absorbance of a reaction A -> B -> C: size 5, scales of 0.03 and 3000. Fast-slow and slow-fast fit equally well.


def _kinetics_data() -> np.ndarray:
    rng = np.random.default_rng(4)
    profile = kinetics_profiles(np.log(np.array([0.03, 0.006])), np)
    return (
        CONCENTRATION * profile @ np.array([1e4, 8e3, 4e4]) + ABSORBANCE_ERROR * rng.normal(size=len(SECONDS))
    ).astype(np.float32)


SECONDS = np.linspace(5.0, 600.0, 40)
CONCENTRATION = 1e-5  # mol/L
ABSORBANCE_ERROR = 0.002
KINETICS_MEAN = np.array([np.log(0.01), np.log(0.01), 3e4, 3e4, 3e4])
KINETICS_SD = np.array([1.5, 1.5, 2e4, 2e4, 2e4])


def kinetics_profiles(log_rates: Any, xp: Any) -> Any:
    """Fractions (..., time, 3) of A, B and C for log rates (..., 2)."""
    k1, k2 = xp.exp(log_rates[..., :1]), xp.exp(log_rates[..., 1:])
    difference = abs(k1 - k2) * SECONDS
    is_small = difference < 1e-3
    safe = xp.where(is_small, 1.0, difference)
    ratio = xp.where(is_small, 1 - difference / 2, -xp.expm1(-safe) / safe)
    a = xp.exp(-k1 * SECONDS)
    b = k1 * SECONDS * xp.exp(-xp.minimum(k1, k2) * SECONDS) * ratio
    return xp.stack([a, b, 1 - a - b], -1)


ABSORBANCE = _kinetics_data()


def _kinetics_log_likelihood(x):
    """Position: two log rates, molar absorptivities of A, B and C."""
    residuals = (ABSORBANCE - CONCENTRATION * kinetics_profiles(x[:2], jnp) @ x[2:]) / ABSORBANCE_ERROR
    return -0.5 * jnp.sum(residuals**2) - len(SECONDS) * (np.log(ABSORBANCE_ERROR) + 0.5 * LOG_2PI)


def kinetics_coefficients(log_rates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log marginal likelihoods (n,), mean (n, 3) and covariance (n, 3, 3) of the absorptivities, given log rates (n, 2)."""
    design = CONCENTRATION * kinetics_profiles(log_rates, np) * KINETICS_SD[2:]
    residual = ABSORBANCE - CONCENTRATION * KINETICS_MEAN[2]  # the three means are equal and the fractions sum to one
    precision = design.transpose(0, 2, 1) @ design / ABSORBANCE_ERROR**2 + np.eye(3)
    b = np.einsum("nti,t->ni", design, residual) / ABSORBANCE_ERROR**2
    covariance = np.linalg.inv(precision)
    standardized = np.einsum("nij,nj->ni", covariance, b)
    log_marginal = 0.5 * (
        np.sum(b * standardized, 1) - np.linalg.slogdet(precision)[1] - np.sum((residual / ABSORBANCE_ERROR) ** 2)
    ) - len(SECONDS) * (np.log(ABSORBANCE_ERROR) + 0.5 * LOG_2PI)
    return (
        log_marginal,
        KINETICS_MEAN[2:] + KINETICS_SD[2:] * standardized,
        covariance * np.outer(*2 * [KINETICS_SD[2:]]),
    )


def kinetics_truth(size: int = 400) -> Truth:
    """Midpoint rule over both log rates; absorptivities are integrated exactly."""
    low, high = -7.0, -1.5
    axis = low + (high - low) * (np.arange(size) + 0.5) / size
    rates = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    log_marginal, mean, covariance = kinetics_coefficients(rates)
    log_weights = log_marginal + np.sum(_log_normal(rates, KINETICS_MEAN[:2], KINETICS_SD[:2]), -1)
    is_fast_first = rates[:, 0] > rates[:, 1]
    values = _averages(log_weights, [is_fast_first, ~is_fast_first, rates[:, 0], mean[:, 0], mean[:, 1]])
    within = _averages(log_weights, [covariance[:, 0, 0], covariance[:, 1, 1]])
    for i, (variance, _) in zip((3, 4), within, strict=True):
        values[i] = values[i][0], float(np.hypot(values[i][1], np.sqrt(variance)))
    return float(log_sum_exp(log_weights) + 2 * np.log((high - low) / size)), values


# 4. One change of a rate: size 3, mini-batched. The counts rise and fall back, so either change explains them.


def _change_data() -> np.ndarray:
    days = np.arange(400) + 0.5
    rates = np.where((days > 120) & (days < 260), 5.0, 3.5)
    counts = np.random.default_rng(11).poisson(rates)
    return np.stack([days, counts], -1).astype(np.float32)


CHANGE_DATA = _change_data()
CHANGE_MEAN, CHANGE_SD = np.array([200.0, 1.5, 0.0]), np.array([100.0, 1.0, 0.5])
CHANGE_WIDTH = 1.5  # days


def _change_per_example(x, batch):
    """Position: day of the change, log rate before it, step of the log rate."""
    day, count = batch[..., 0], batch[..., 1]
    log_rate = x[1] + x[2] * jax.nn.sigmoid((day - x[0]) / CHANGE_WIDTH)
    return count * log_rate - jnp.exp(log_rate) - jax.scipy.special.gammaln(count + 1)


def change_truth(days: int = 1601, levels: int = 100) -> Truth:
    """Trapezoid rule in three dimensions, without a node at a step of zero. Three seconds on one core."""
    day, count = CHANGE_DATA.astype(float).T
    tau = np.linspace(-300, 700, days)
    log_rate = np.linspace(0.9, 2.0, levels)
    step = np.linspace(-1.2, 1.2, levels)
    prior = _log_normal(log_rate, CHANGE_MEAN[1], CHANGE_SD[1])[:, None] + _log_normal(
        step, CHANGE_MEAN[2], CHANGE_SD[2]
    )
    log_weights = np.empty((days, levels, levels))
    for i, one in enumerate(tau):
        after = expit((day - one) / CHANGE_WIDTH)
        exposure = np.exp(step[:, None] * after).sum(1)
        log_weights[i] = (
            log_rate[:, None] * count.sum() + step * (after @ count) - np.exp(log_rate)[:, None] * exposure + prior
        )
    log_weights += _log_normal(tau, CHANGE_MEAN[0], CHANGE_SD[0])[:, None, None] - gammaln(count + 1).sum()
    cell = (tau[1] - tau[0]) * (log_rate[1] - log_rate[0]) * (step[1] - step[0])
    t, a, s = np.meshgrid(tau, log_rate, step, indexing="ij", sparse=True)
    values = _averages(log_weights, [s > 0, s <= 0, t, a, s])
    return float(log_sum_exp(log_weights) + np.log(cell)), values


# 5. A mixture of three normal distributions: size 9, mini-batched. Six labelings of two explanations.


def _mixture_data() -> np.ndarray:
    rng = np.random.default_rng(15)
    labels = rng.choice(3, 400, p=[0.5, 0.3, 0.2])
    draws = np.array([-1.5, 1.0, 3.0])[labels] + np.array([0.8, 0.6, 1.0])[labels] * rng.normal(size=400)
    return draws.astype(np.float32)


MIXTURE_DATA = _mixture_data()
MIXTURE_MEAN, MIXTURE_SD = np.repeat([0.0, -0.3, 0.0], 3), np.repeat([3.0, 0.5, 1.0], 3)


def _mixture_per_example(x, batch):
    """Position: means, log standard deviations, logits of the weights."""
    standardized = (batch[..., None] - x[:3]) * jnp.exp(-x[3:6])
    terms = jax.nn.log_softmax(x[6:]) - x[3:6] - 0.5 * standardized**2 - 0.5 * LOG_2PI
    return jax.nn.logsumexp(terms, -1)


def mixture_log_density(x: np.ndarray) -> np.ndarray:
    """Likelihood times prior in NumPy, for positions (n, 9)."""
    means, log_sd, logits = x[:, None, :3], x[:, None, 3:6], x[:, None, 6:]
    terms = (
        logits
        - log_sum_exp(logits, -1, keepdims=True)
        - log_sd
        - 0.5 * ((MIXTURE_DATA[:, None] - means) / np.exp(log_sd)) ** 2
    )
    top = terms.max(-1, keepdims=True)
    log_likelihood = np.sum(np.log(np.sum(np.exp(terms - top), -1)) + top[..., 0], -1) - 0.5 * LOG_2PI * len(
        MIXTURE_DATA
    )
    return log_likelihood + np.sum(_log_normal(x, MIXTURE_MEAN, MIXTURE_SD), -1)


def mixture_sorted(x: np.ndarray) -> np.ndarray:
    """The same components, in the order of their means."""
    order = np.argsort(x[:, :3], 1)
    return np.concatenate([np.take_along_axis(x[:, i : i + 3], order, 1) for i in (0, 3, 6)], 1)


def mixture_pilot(steps: int, seed: int) -> np.ndarray:
    """Sorted draws of Metropolis chains in both explanations: the upper cluster has two components, or the lower one has."""
    upper = [-1.5, 1.1, 3.1, -0.2, -0.4, -0.2, 0.5, 0.0, -0.4]
    lower = [-1.8, -1.5, 1.4, -0.4, -0.4, 0.3, -0.4, -0.4, 0.8]
    draws = []
    for start in (upper, lower):
        first = metropolis(mixture_log_density, np.tile(start, (32, 1)), 0.1 * np.eye(9), 1000, 10, seed)
        step = 0.7 * np.linalg.cholesky(np.cov(first.T))
        draws.append(metropolis(mixture_log_density, first[-32:], step, steps, 10, seed + 1))
    return mixture_sorted(np.concatenate(draws))


def mixture_functions(x: np.ndarray) -> list[np.ndarray]:
    """Functions of sorted positions."""
    weights = np.exp(x[:, 6:] - log_sum_exp(x[:, 6:], 1, keepdims=True))
    return [x[:, 0], x[:, 1], x[:, 5], weights[:, 0]]


def mixture_truth(draws: int = 800_000) -> Truth:
    """Importance sampling in the order of the means; the six orders are equal by symmetry. A minute on one core."""

    def log_density(x):  # all six orders together: the proposal covers one
        value = np.concatenate([mixture_log_density(one) for one in np.array_split(x, max(1, len(x) // 4096))])
        return np.where(np.all(np.diff(x[:, :3], axis=1) > 0, 1), value + np.log(6), -np.inf)

    x, log_weights = importance_sample(log_density, mixture_pilot(3000, 0), 24, draws, 1)
    values = [(1 / 6, float(np.sqrt(5) / 6))] * 6
    return float(log_sum_exp(log_weights) - np.log(draws)), [*values, *_averages(log_weights, mixture_functions(x))]


# 6. Effects of twenty groups, centered: size 22. The spread of the effects is weakly identified: a funnel.


def _groups_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    errors = rng.uniform(0.8, 2.0, 20)
    return (1.5 + 0.5 * rng.normal(size=20) + errors * rng.normal(size=20)).astype(np.float32), errors


GROUP_MEANS, GROUP_ERRORS = _groups_data()
GROUP_PRIOR = (5.0, -0.5, 1.5)  # sd of the common mean; mean and sd of the log spread


def _groups_log_likelihood(x):
    """Position: common mean, log spread, twenty effects."""
    residuals = (GROUP_MEANS - x[2:]) / GROUP_ERRORS
    return -0.5 * jnp.sum(residuals**2) - np.sum(np.log(GROUP_ERRORS)) - 10 * LOG_2PI


def _groups_prior() -> Prior:
    mean_sd, log_spread_mean, log_spread_sd = GROUP_PRIOR

    def log_density(x):
        standardized = jnp.concatenate(
            [jnp.stack([x[0] / mean_sd, (x[1] - log_spread_mean) / log_spread_sd]), (x[2:] - x[0]) * jnp.exp(-x[1])]
        )
        return -0.5 * jnp.sum(standardized**2) - 20 * x[1] - np.log(mean_sd * log_spread_sd) - 11 * LOG_2PI

    def from_unit(u):
        z = jax.scipy.special.ndtri(u)
        mean, log_spread = mean_sd * z[0], log_spread_mean + log_spread_sd * z[1]
        return jnp.concatenate([jnp.stack([mean, log_spread]), mean + jnp.exp(log_spread) * z[2:]])

    return prior_from(log_density, from_unit, 22)


def groups_truth(nodes: int = 120) -> Truth:
    """Gauss-Legendre over the log spread, in the pieces of the masses; the common mean and the effects are integrated exactly."""
    mean_sd, log_spread_mean, log_spread_sd = GROUP_PRIOR
    low, high = log_spread_mean - 7 * log_spread_sd, log_spread_mean + 7 * log_spread_sd
    edges = np.array([low, np.log(0.2), np.log(0.8), high])
    points, weights = np.polynomial.legendre.leggauss(nodes)
    log_spread = (edges[:-1, None] + 0.5 * np.diff(edges)[:, None] * (1 + points)).ravel()
    log_cell = np.log(0.5 * np.diff(edges)[:, None] * weights).ravel()
    y = GROUP_MEANS.astype(float)
    variance = GROUP_ERRORS**2 + np.exp(2 * log_spread)[:, None]
    mean_variance = 1 / (np.sum(1 / variance, 1) + 1 / mean_sd**2)
    mean = mean_variance * np.sum(y / variance, 1)
    log_weights = (
        -0.5 * np.sum(np.log(variance) + LOG_2PI + y**2 / variance, 1)
        + 0.5 * (mean**2 / mean_variance + np.log(mean_variance / mean_sd**2))
        + _log_normal(log_spread, log_spread_mean, log_spread_sd)
        + log_cell
    )
    shrink = GROUP_ERRORS[0] ** 2 / variance[:, 0]  # of the first effect towards the common mean
    effect = shrink * mean + (1 - shrink) * y[0]
    effect_variance = shrink * np.exp(2 * log_spread) + shrink**2 * mean_variance
    sets = [
        log_spread < np.log(0.2),
        (log_spread >= np.log(0.2)) & (log_spread < np.log(0.8)),
        log_spread >= np.log(0.8),
    ]
    values = _averages(log_weights, [*sets, log_spread, mean, effect])
    within = _averages(log_weights, [mean_variance, effect_variance])
    for i, (one, _) in zip((4, 5), within, strict=True):
        values[i] = values[i][0], float(np.hypot(values[i][1], np.sqrt(one)))
    return float(log_sum_exp(log_weights)), values


# 7. A ring of phi^4 oscillators: size 60. Two phases of unequal mass and domain walls.

CHAIN_SIZE, CHAIN_WELL, CHAIN_COUPLING, CHAIN_FIELD, CHAIN_SD = 60, 2.0, 6.0, 0.01, 2.0


def _chain_log_likelihood(x):
    site = CHAIN_WELL * (x**2 - 1) ** 2 - CHAIN_FIELD * x
    return -jnp.sum(site) - 0.5 * CHAIN_COUPLING * jnp.sum((x - jnp.roll(x, 1)) ** 2)


def chain_transfer(points: int = 321) -> tuple[np.ndarray, np.ndarray]:
    """Grid (points,) and transfer matrix of the ring: its trace to the power of the size is the evidence."""
    grid, step = np.linspace(-3.2, 3.2, points, retstep=True)
    log_site = -CHAIN_WELL * (grid**2 - 1) ** 2 + CHAIN_FIELD * grid + _log_normal(grid, 0.0, CHAIN_SD) + np.log(step)
    return grid, np.exp(-0.5 * CHAIN_COUPLING * (grid[:, None] - grid) ** 2 + 0.5 * (log_site[:, None] + log_site))


def chain_truth(points: int = 321) -> Truth:
    """Transfer matrix. The law of the mean is the Fourier series of the trace with a phase at every site."""
    n = CHAIN_SIZE
    grid, matrix = chain_transfer(points)
    eigenvalues, vectors = (one[..., ::-1][..., :32] for one in np.linalg.eigh(matrix))
    ratio = eigenvalues / eigenvalues[0]
    total = np.sum(ratio**n)

    period = 2 * n * 3.2
    orders = np.arange(1, 320)
    half = vectors * np.sqrt(np.abs(ratio))
    traces = [
        np.trace(np.linalg.matrix_power(half.T @ (np.exp(2j * np.pi * k / period * grid)[:, None] * half), n))
        for k in orders
    ]
    sums, step = np.linspace(-period / 2, period / 2, 8001, retstep=True)
    density = (
        1 + 2 * np.real(np.exp(-2j * np.pi / period * np.outer(sums, orders)) @ (np.array(traces) / total))
    ) / period
    down, up = (float(np.sum(density[one]) * step) for one in (sums < -0.5 * n, sums > 0.5 * n))

    def mean_and_spread(function: np.ndarray) -> tuple[float, float]:
        operator = vectors.T @ (function[:, None] * vectors)
        mean = np.sum(ratio**n * np.diag(operator)) / total
        products = np.einsum(
            "ij,ri,rj->r", operator**2, ratio ** np.arange(n, 0, -1)[:, None], ratio ** np.arange(n)[:, None]
        )
        square = vectors.T @ (function[:, None] ** 2 * vectors)
        products[0] = np.sum(ratio**n * np.diag(square))
        return float(mean), float(np.sqrt(products.mean() / total - mean**2))

    masses = [(p, float(np.sqrt(p * (1 - p)))) for p in (down, 1 - down - up, up)]
    log_z = n * np.log(eigenvalues[0]) + np.log(total)
    return float(log_z), [*masses, mean_and_spread(grid), mean_and_spread(grid**2)]


# 8. Coexistence of an ordered and a disordered phase: size 40. A first-order transition along any tempering path.

PHASES_SIZE, PHASES_COUPLING, PHASES_FIELD = 40, 5.5, 0.01
PHASES_SITE = (20.0, 36.0, 16.0)  # of x^2 / 2, -x^4 / 4, x^6 / 6; the prior N(0, 1) is part of the first


def _phases_log_likelihood(x):
    a, b, c = PHASES_SITE
    site = (a - 1) * x**2 / 2 - b * x**4 / 4 + c * x**6 / 6 - PHASES_FIELD * x
    return -jnp.sum(site) + 0.5 * PHASES_COUPLING / PHASES_SIZE * jnp.sum(x) ** 2


def phases_fields() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean fields (M,) and their log weights, sites (G,) and their log weights given the field (M, G)."""
    n, (a, b, c) = PHASES_SIZE, PHASES_SITE
    grid, step = np.linspace(-2.6, 2.6, 521, retstep=True)
    field, field_step = np.linspace(-2.5, 2.5, 1001, retstep=True)
    site = -(a * grid**2 / 2 - b * grid**4 / 4 + c * grid**6 / 6) + PHASES_FIELD * grid - 0.5 * LOG_2PI + np.log(step)
    site = site + PHASES_COUPLING * field[:, None] * grid
    one = log_sum_exp(site, axis=1)
    log_field = _log_normal(field, 0.0, 1 / np.sqrt(n * PHASES_COUPLING)) + n * one + np.log(field_step)
    return field, log_field, grid, site - one[:, None]


def phases_truth() -> Truth:
    """A mean field makes the sites independent (Hubbard-Stratonovich); the law of the mean is a Fourier series."""
    n = PHASES_SIZE
    _, log_field, grid, log_site = phases_fields()
    weights = np.exp(log_field - log_sum_exp(log_field))
    site = np.exp(log_site)
    period = 2 * n * 2.6
    orders = np.arange(1, 700)
    characteristic = weights @ (site @ np.exp(2j * np.pi / period * np.outer(grid, orders))) ** n
    sums, step = np.linspace(-period / 2, period / 2, 8001, retstep=True)
    density = (1 + 2 * np.real(np.exp(-2j * np.pi / period * np.outer(sums, orders)) @ characteristic)) / period
    down, up = (float(np.sum(density[one]) * step) for one in (sums < -0.6 * n, sums > 0.6 * n))
    masses = [(p, float(np.sqrt(p * (1 - p)))) for p in (down, 1 - down - up, up)]
    moments = []
    for function in (grid, grid**2):
        mean, second = site @ function, site @ function**2
        truth = weights @ mean
        moments.append((float(truth), float(np.sqrt(weights @ ((n - 1) / n * mean**2 + second / n) - truth**2))))
    return float(log_sum_exp(log_field)), [*masses, *moments]


# 9. A network with two hidden units: size 7, mini-batched. Eight symmetric copies of several explanations.


def _network_data() -> np.ndarray:
    rng = np.random.default_rng(9)
    x = rng.uniform(-2, 2, 200)
    y = 1.1 * np.exp(-4 * (x - 0.6) ** 2) - 0.4 + NETWORK_ERROR * rng.normal(size=200)
    return np.stack([x, y], -1).astype(np.float32)


NETWORK_ERROR = 0.4
NETWORK_SD = np.array([2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0])
NETWORK_DATA = _network_data()
NETWORK_POINTS = (0.6, 3.0)  # inputs of the predictions, inside and outside of the data


def _network(x, inputs):
    """Position: input weights (2,), biases (2,), output weights (2,), output bias."""
    return jnp.tanh(inputs[..., None] * x[:2] + x[2:4]) @ x[4:6] + x[6]


def _network_per_example(x, batch):
    residual = (batch[..., 1] - _network(x, batch[..., 0])) / NETWORK_ERROR
    return -0.5 * residual**2 - np.log(NETWORK_ERROR) - 0.5 * LOG_2PI


def network_marginal(w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log marginal likelihood (n,), mean (n, 3) and covariance (n, 3, 3) of the output layer, given the hidden layer (n, 4)."""
    inputs, outputs = NETWORK_DATA.astype(float).T
    hidden = np.tanh(inputs[:, None] * w[:, None, :2] + w[:, None, 2:])
    design = np.concatenate([hidden, np.ones_like(hidden[..., :1])], -1) / NETWORK_ERROR
    precision = design.transpose(0, 2, 1) @ design + np.eye(3)
    b = design.transpose(0, 2, 1) @ (outputs / NETWORK_ERROR)
    covariance = np.linalg.inv(precision)
    mean = np.einsum("nij,nj->ni", covariance, b)
    constant = -0.5 * np.sum((outputs / NETWORK_ERROR) ** 2) - len(inputs) * (np.log(NETWORK_ERROR) + 0.5 * LOG_2PI)
    return constant + 0.5 * (np.sum(b * mean, 1) - np.linalg.slogdet(precision)[1]), mean, covariance


def network_canonical(x: np.ndarray) -> np.ndarray:
    """One of eight equivalent networks (n, 4) or (n, 7): positive, increasing input weights."""
    sign = np.sign(x[:, :2])
    order = np.argsort(np.abs(x[:, :2]), 1)
    blocks = [np.take_along_axis(x[:, i : i + 2] * sign, order, 1) for i in range(0, x.shape[1] - 1, 2)]
    return np.concatenate([*blocks, x[:, 6:]], 1)


def network_pilot(draws: int, rng: np.random.Generator, size: int = 2**17) -> np.ndarray:
    """Approximate posterior draws (draws, 7) of canonical networks, resampled from the prior of the hidden layer."""
    hidden = network_canonical(rng.normal(size=(size, 4)) * NETWORK_SD[:4])
    log_weights = np.concatenate([network_marginal(one)[0] for one in np.split(hidden, 16)])
    hidden = hidden[rng.choice(size, draws, p=np.exp(log_weights - log_sum_exp(log_weights)))]
    _, mean, covariance = network_marginal(hidden)
    noise = rng.normal(size=(draws, 3))
    return np.concatenate([hidden, mean + np.einsum("nij,nj->ni", np.linalg.cholesky(covariance), noise)], 1)


def network_truth(draws: int = 2**19) -> Truth:
    """Importance sampling of canonical hidden layers; the output layer is integrated exactly. Twenty seconds on one core."""
    rng = np.random.default_rng(0)

    def log_density(w):
        log_marginal = np.concatenate([network_marginal(one)[0] for one in np.array_split(w, max(1, len(w) // 8192))])
        is_canonical = (w[:, 0] > 0) & (w[:, 1] > w[:, 0])
        prior = np.sum(_log_normal(w, 0.0, NETWORK_SD[:4]), 1) + np.log(8)
        return np.where(is_canonical, log_marginal + prior, -np.inf)

    pilot = network_pilot(4000, rng)[:, :4]
    for _ in range(2):  # the second proposal is fitted to draws of the first
        w, log_weights = importance_sample(log_density, pilot, 12, draws // 8, 1)
        pilot = w[rng.choice(len(w), 20_000, p=np.exp(log_weights - log_sum_exp(log_weights)))]
    w, log_weights = importance_sample(log_density, pilot, 24, draws, 2)
    w, log_weights = w[np.isfinite(log_weights)], log_weights[np.isfinite(log_weights)]
    parts = [network_marginal(one)[1:] for one in np.array_split(w, len(w) // 8192)]
    mean, covariance = (np.concatenate(one) for one in zip(*parts, strict=True))
    values = [(0.25, float(np.sqrt(3 / 16)))] * 4
    for point in NETWORK_POINTS:
        features = np.concatenate([np.tanh(point * w[:, :2] + w[:, 2:]), np.ones((len(w), 1))], 1)
        predicted, variance = np.sum(features * mean, 1), np.einsum("ni,nij,nj->n", features, covariance, features)
        ((truth, between), (within, _)) = _averages(log_weights, [predicted, variance])
        values.append((truth, float(np.hypot(between, np.sqrt(within)))))
    values += _averages(log_weights, [np.log(w[:, 1])])
    return float(log_sum_exp(log_weights) - np.log(draws)), values


# 10. Logistic regression of separable data under Cauchy priors: size 3. The likelihood is flat along a ray.


def _separable_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(10)
    x = rng.normal(size=(24, 2))
    y = x[:, 0] + 0.3 * x[:, 1] > 0.2
    return x.astype(np.float32), y


SEPARABLE_X, SEPARABLE_Y = _separable_data()
SEPARABLE_SCALE = np.array([10.0, 2.5, 2.5])
SEPARABLE_POINT = np.array([0.3, 0.0])  # where a class is predicted


def _separable_log_likelihood(x):
    """Position: intercept and two slopes."""
    return jnp.sum(jax.nn.log_sigmoid(np.where(SEPARABLE_Y, 1.0, -1.0) * (x[0] + SEPARABLE_X @ x[1:])))


def _cauchy_prior(scale: np.ndarray) -> Prior:
    def log_density(x):
        return -jnp.sum(jnp.log1p((x / scale) ** 2)) - np.sum(np.log(np.pi * scale))

    return prior_from(log_density, lambda u: scale * jnp.tan(jnp.pi * (u - 0.5)), len(scale))


def separable_truth(size: int = 300, nodes: int = 24) -> Truth:
    """Gauss-Legendre in pieces of the first slope, midpoint rule in the others, all in the prior's distribution functions."""
    u = (np.arange(size) + 0.5) / size
    a, c = (scale * np.tan(np.pi * (u - 0.5)) for scale in SEPARABLE_SCALE[[0, 2]])
    a = a[:, None]
    edges = (
        0.5
        + np.arctan(np.array([-np.inf, 0.0, 2.0, 5.0, 10.0, 20.0, 50.0, 300.0, np.inf]) / SEPARABLE_SCALE[1]) / np.pi
    )
    points, weights = np.polynomial.legendre.leggauss(nodes)
    v = (edges[:-1, None] + 0.5 * np.diff(edges)[:, None] * (1 + points)).ravel()
    log_cell = np.log((0.5 * np.diff(edges)[:, None] * weights).ravel()) - 2 * np.log(size)
    rows = []  # of each first slope: log evidence and averages
    slopes = SEPARABLE_SCALE[1] * np.tan(np.pi * (v - 0.5))
    for b, log_weight in zip(slopes, log_cell, strict=True):
        log_likelihood = log_weight * np.ones((size, size))
        for x, y in zip(SEPARABLE_X.astype(float), SEPARABLE_Y, strict=True):
            margin = a + b * x[0] + c * x[1]
            log_likelihood -= np.logaddexp(0, -margin if y else margin)
        predictive = expit(a + b * SEPARABLE_POINT[0] + c * SEPARABLE_POINT[1])
        intercept = np.tanh(a / 5) * np.ones(size)
        weights = np.exp(log_likelihood - log_sum_exp(log_likelihood))
        averages = [np.sum(weights * f) for f in (intercept, intercept**2, predictive, predictive**2)]
        rows.append([log_sum_exp(log_likelihood), *averages])
    log_weights, *averages = np.array(rows).T
    sets = [slopes < 5, (slopes >= 5) & (slopes < 20), slopes >= 20]
    values = _averages(log_weights, [*sets, np.tanh(slopes / 10)])
    for first, second in (averages[:2], averages[2:]):
        ((mean, _), (square, _)) = _averages(log_weights, [first, second])
        values.append((mean, float(np.sqrt(square - mean**2))))
    return float(log_sum_exp(log_weights)), values


# Log evidence; then truth and spread of each quantity below, from `<problem>_truth()`. Errors are in the comments of `PROBLEMS`.
TRUTHS: dict[str, Truth] = {
    "redshift": (-6.2181505, [(0.79638161, 0.40268839), (0.20283056, 0.40210736), (0.34673077, 0.40403675)]),
    "planets": (
        -90.086214,
        [
            (0.65315785, 0.47596499),
            (0.31695407, 0.46528936),
            (0.011334785, 0.10585985),
            (0.018553136, 0.13494042),
            (1.5259587, 0.35590576),
            (33.390915, 6.0231841),
        ],
    ),
    "kinetics": (
        166.79886,
        [
            (0.23807139, 0.42590305),
            (0.76192861, 0.42590305),
            (-4.7404797, 0.64241779),
            (9797.105, 260.61597),
            (4480.8974, 3665.1842),
        ],
    ),
    "change": (
        -859.45354,
        [
            (0.80366743, 0.39722298),
            (0.19633257, 0.39722298),
            (132.76266, 66.162827),
            (1.2179299, 0.12007106),
            (0.1667192, 0.19790756),
        ],
    ),
    "mixture": (
        -801.08084,
        [
            (0.16666667, 0.372678),
            (0.16666667, 0.372678),
            (0.16666667, 0.372678),
            (0.16666667, 0.372678),
            (0.16666667, 0.372678),
            (0.16666667, 0.372678),
            (-1.562573, 0.14877726),
            (0.95769798, 0.52967072),
            (-0.025456099, 0.31719432),
            (0.43520923, 0.073906327),
        ],
    ),
    "groups": (
        -35.465462,
        [
            (0.42486379, 0.49432231),
            (0.51750871, 0.49969335),
            (0.057627506, 0.23303771),
            (-1.5526832, 0.99348093),
            (1.5932631, 0.29617279),
            (1.6418749, 0.45965589),
        ],
    ),
    "chain": (
        -143.57041,
        [
            (0.2411391, 0.42777451),
            (0.053731501, 0.22548709),
            (0.7051294, 0.45598457),
            (0.41995642, 0.76852628),
            (0.86567802, 0.070564488),
        ],
    ),
    "phases": (
        -53.164725,
        [
            (0.17125268, 0.37672961),
            (0.39943827, 0.48978295),
            (0.42930905, 0.49497756),
            (0.29952703, 0.84364103),
            (0.90369836, 0.63383812),
        ],
    ),
    "network": (
        -109.80027,
        [
            (0.25, 0.4330127),
            (0.25, 0.4330127),
            (0.25, 0.4330127),
            (0.25, 0.4330127),
            (0.58760069, 0.093460657),
            (-0.42895249, 0.1707525),
            (1.0071178, 0.23842484),
        ],
    ),
    "separable": (
        -7.0699917,
        [
            (0.029027937, 0.16788483),
            (0.50579757, 0.49996639),
            (0.4651745, 0.49878571),
            (0.88080867, 0.15774736),
            (-0.58452783, 0.27452318),
            (0.82802524, 0.19520049),
        ],
    ),
}


def _problem(
    name: str,
    kind: str,
    size: int,
    log_likelihood: Callable,
    prior: Prior,
    start: Callable,
    *named: Any,
    **batches: Any,
) -> Problem:
    """Pair the names and functions of quantities with their truths and spreads, in the same order."""
    log_z, values = TRUTHS[name]
    quantities = tuple(
        Quantity(label, role, function, truth, spread)
        for (label, role, function), (truth, spread) in zip(named, values, strict=True)
    )
    return Problem(name, kind, size, log_likelihood, prior, start, quantities, log_z, **batches)


def _batched(per_example: Callable[[Any, Any], Any], data: np.ndarray) -> Callable[[Any], Any]:
    """Log likelihood of all data."""
    return lambda x: jnp.sum(per_example(x, data))


def _planets_set(which: int) -> Callable[[Any], Any]:
    return lambda x: _indicator(planets_sets(*_planets_frequencies(x))[which])


def _mixture_order(*order: int) -> Callable[[Any], Any]:
    first, second, third = order
    return lambda x: _indicator((x[first] < x[second]) & (x[second] < x[third]))


def _network_signs(first: bool, second: bool) -> Callable[[Any], Any]:
    return lambda x: _indicator(((x[0] > 0) == first) & ((x[1] > 0) == second))


def _network_start(key: Any) -> Any:
    """Small random weights."""
    return 0.5 * jax.random.normal(key, (7,))


PROBLEMS: tuple[Problem, ...] = (
    # Truth: `redshift_truth`, trapezoid rule in one dimension; error below 1e-9.
    _problem(
        "redshift",
        "two modes of unequal width",
        1,
        _redshift_log_likelihood,
        normal_prior(np.full(1, REDSHIFT_MEAN), REDSHIFT_SD),
        _start_at([REDSHIFT_MEAN]),
        ("near", "mass", lambda x: _indicator(x[0] < 0.6)),
        ("far", "mass", lambda x: _indicator(x[0] > 1.0)),
        ("log(1 + z)", "moment", lambda x: x[0]),
    ),
    # Truth: `planets_truth`, midpoint rule over two frequencies and exact integrals over the coefficients; error below 1e-4.
    # The start is the highest peak of the periodogram of one planet, and no second planet.
    _problem(
        "planets",
        "aliased periods, exchangeable",
        7,
        _planets_log_likelihood,
        normal_prior(np.zeros(7), np.array([1.0, 1.0, *5 * [AMPLITUDE_SD]])),
        _start_at([-0.7685, 0.0, 3.82, 0.0, -2.28, 0.0, 0.9]),
        ("both as simulated", "mass", _planets_set(0)),
        ("first aliased", "mass", _planets_set(1)),
        ("second aliased", "mass", _planets_set(2)),
        ("both aliased", "mass", _planets_set(3)),
        ("offset", "moment", lambda x: x[6]),
        ("power", "moment", lambda x: jnp.sum(x[2:6] ** 2)),
    ),
    # Truth: `kinetics_truth`, midpoint rule over two log rates and exact integrals over the absorptivities; error below 1e-6.
    _problem(
        "kinetics",
        "badly scaled by 1e5, two modes of unequal width",
        5,
        _kinetics_log_likelihood,
        normal_prior(KINETICS_MEAN, KINETICS_SD),
        _start_at([np.log(0.02), np.log(0.005), 2e4, 2e4, 2e4]),
        ("fast first", "mass", lambda x: _indicator(x[0] > x[1])),
        ("slow first", "mass", lambda x: _indicator(x[0] <= x[1])),
        ("log rate of A", "moment", lambda x: x[0]),
        ("absorptivity of A", "moment", lambda x: x[2]),
        ("absorptivity of B", "moment", lambda x: x[3]),
    ),
    # Truth: `change_truth`, trapezoid rule in three dimensions; error below 1e-5 spreads.
    _problem(
        "change",
        "change point, two modes of unequal width, mini-batched",
        3,
        _batched(_change_per_example, CHANGE_DATA),
        normal_prior(CHANGE_MEAN, CHANGE_SD),
        _start_at([200.0, np.log(4.0), 0.0]),
        ("rise", "mass", lambda x: _indicator(x[2] > 0)),
        ("fall", "mass", lambda x: _indicator(x[2] <= 0)),
        ("day", "moment", lambda x: x[0]),
        ("log rate before", "moment", lambda x: x[1]),
        ("step", "moment", lambda x: x[2]),
        per_example=_change_per_example,
        data=CHANGE_DATA,
        batch_size=40,
    ),
    # Truth: `mixture_truth`, importance sampling with an effective size of 2.6e5; orders exact by symmetry.
    # Errors: 0.002 spreads of the moments, 0.002 of the log evidence.
    _problem(
        "mixture",
        "label switching, twelve modes of two kinds, mini-batched",
        9,
        _batched(_mixture_per_example, MIXTURE_DATA),
        normal_prior(MIXTURE_MEAN, MIXTURE_SD),
        _start_at([-2.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        ("order 012", "mass", _mixture_order(0, 1, 2)),
        ("order 021", "mass", _mixture_order(0, 2, 1)),
        ("order 102", "mass", _mixture_order(1, 0, 2)),
        ("order 120", "mass", _mixture_order(1, 2, 0)),
        ("order 201", "mass", _mixture_order(2, 0, 1)),
        ("order 210", "mass", _mixture_order(2, 1, 0)),
        ("lowest mean", "moment", lambda x: jnp.min(x[:3])),
        ("middle mean", "moment", lambda x: jnp.sort(x[:3])[1]),
        ("log sd of the highest", "moment", lambda x: x[3 + jnp.argmax(x[:3])]),
        ("weight of the lowest", "moment", lambda x: jax.nn.softmax(x[6:])[jnp.argmin(x[:3])]),
        per_example=_mixture_per_example,
        data=MIXTURE_DATA,
        batch_size=50,
    ),
    # Truth: `groups_truth`, Gauss-Legendre over the log spread and exact integrals over the rest; error below 1e-8.
    _problem(
        "groups",
        "centered hierarchical model, funnel",
        22,
        _groups_log_likelihood,
        _groups_prior(),
        _start_at([float(GROUP_MEANS.mean()), 0.0, *GROUP_MEANS]),
        ("spread below 0.2", "mass", lambda x: _indicator(x[1] < np.log(0.2))),
        ("spread 0.2 to 0.8", "mass", lambda x: _indicator((x[1] >= np.log(0.2)) & (x[1] < np.log(0.8)))),
        ("spread above 0.8", "mass", lambda x: _indicator(x[1] >= np.log(0.8))),
        ("log spread", "moment", lambda x: x[1]),
        ("common mean", "moment", lambda x: x[0]),
        ("first effect", "moment", lambda x: x[2]),
    ),
    # Truth: `chain_truth`, transfer matrix; error below 1e-8. The start is the phase of smaller mass.
    _problem(
        "chain",
        "phi^4 ring, two modes of unequal mass",
        CHAIN_SIZE,
        _chain_log_likelihood,
        normal_prior(np.zeros(CHAIN_SIZE), CHAIN_SD),
        _start_at(CHAIN_SIZE * [-1.0]),
        ("down", "mass", lambda x: _indicator(jnp.mean(x) < -0.5)),
        ("walls", "mass", lambda x: _indicator(jnp.abs(jnp.mean(x)) <= 0.5)),
        ("up", "mass", lambda x: _indicator(jnp.mean(x) > 0.5)),
        ("mean", "moment", lambda x: jnp.mean(x)),
        ("mean square", "moment", lambda x: jnp.mean(x**2)),
    ),
    # Truth: `phases_truth`, a mean field that makes the sites independent; error below 1e-8.
    _problem(
        "phases",
        "first-order transition, three modes of unequal width",
        PHASES_SIZE,
        _phases_log_likelihood,
        normal_prior(np.zeros(PHASES_SIZE), 1.0),
        _start_at(PHASES_SIZE * [0.0]),
        ("down", "mass", lambda x: _indicator(jnp.mean(x) < -0.6)),
        ("disordered", "mass", lambda x: _indicator(jnp.abs(jnp.mean(x)) <= 0.6)),
        ("up", "mass", lambda x: _indicator(jnp.mean(x) > 0.6)),
        ("mean", "moment", lambda x: jnp.mean(x)),
        ("mean square", "moment", lambda x: jnp.mean(x**2)),
    ),
    # Truth: `network_truth`, importance sampling of the hidden layer and exact integrals over the output layer; signs exact
    # by symmetry. Effective size 4.4e5; errors: 0.0015 spreads of the moments, 0.001 of the log evidence.
    _problem(
        "network",
        "tiny Bayesian network, eight symmetric modes, mini-batched",
        7,
        _batched(_network_per_example, NETWORK_DATA),
        normal_prior(np.zeros(7), NETWORK_SD),
        _network_start,
        ("signs ++", "mass", _network_signs(True, True)),
        ("signs +-", "mass", _network_signs(True, False)),
        ("signs -+", "mass", _network_signs(False, True)),
        ("signs --", "mass", _network_signs(False, False)),
        ("prediction inside", "moment", lambda x: _network(x, jnp.asarray(NETWORK_POINTS[0]))),
        ("prediction outside", "moment", lambda x: _network(x, jnp.asarray(NETWORK_POINTS[1]))),
        ("log largest weight", "moment", lambda x: jnp.log(jnp.max(jnp.abs(x[:2])))),
        per_example=_network_per_example,
        data=NETWORK_DATA,
        batch_size=32,
    ),
    # Truth: `separable_truth`, quadrature in the unit cube of the prior; error below 1e-4.
    _problem(
        "separable",
        "heavy tails",
        3,
        _separable_log_likelihood,
        _cauchy_prior(SEPARABLE_SCALE),
        _start_at([0.0, 0.0, 0.0]),
        ("slope below 5", "mass", lambda x: _indicator(x[1] < 5)),
        ("slope 5 to 20", "mass", lambda x: _indicator((x[1] >= 5) & (x[1] < 20))),
        ("slope above 20", "mass", lambda x: _indicator(x[1] >= 20)),
        ("tanh(slope / 10)", "moment", lambda x: jnp.tanh(x[1] / 10)),
        ("tanh(intercept / 5)", "moment", lambda x: jnp.tanh(x[0] / 5)),
        ("prediction", "moment", lambda x: jax.nn.sigmoid(x[0] + x[1:] @ SEPARABLE_POINT)),
    ),
)
