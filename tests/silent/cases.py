"""Runs of stochastic gradient samplers on targets of known truth: some whose results are silently wrong, some that are right.

Every case has a run as a function of the seed, and exact expectations to hold it against. Functionals are named "mean ...",
"var ..." (the second moment about the true mean), "cov ..." and "prob ...". How far off an estimate is, is given in true
standard deviations for a mean, as a share of the truth for a second moment, and as it is for a probability.

    python -m tests.silent.cases [part of a name ...]
"""

import dataclasses
import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

import isotherm as iso

Truths = tuple[tuple[str, Callable, float], ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """A run, and what is true of its target."""

    name: str
    is_good: bool
    why: str
    run: Callable[[int], Any]
    truths: Truths


@dataclasses.dataclass(frozen=True)
class Target:
    """What is sampled, its number of coordinates, and its exact expectations."""

    potential: Any
    dimension: int
    truths: Truths


def moments(label: str, coordinate: int, mean: float, variance: float) -> Truths:
    """The mean of a coordinate, and its second moment about that mean."""
    return (
        (f"mean {label}", lambda x: x[coordinate], float(mean)),
        (f"var {label}", lambda x: (x[coordinate] - mean) ** 2, float(variance)),
    )


def probability(label: str, event: Callable, value: float) -> Truths:
    """The probability of an event."""
    return ((f"prob {label}", lambda x: event(x).astype(float), float(value)),)


# Quadrature.


def line_truths(energy: Callable, low: float, high: float, split: float | None = None, num: int = 400_001) -> Truths:
    """Moments of exp(-energy) of one coordinate on an interval, and the probability above `split`."""
    x = np.linspace(low, high, num)
    u = energy(x)
    w = np.exp(-(u - u.min()))
    w /= w.sum()
    mean = w @ x
    truths = moments("x", 0, mean, w @ (x - mean) ** 2)
    return truths if split is None else truths + probability(f"x > {split}", lambda x: x[0] > split, w[x > split].sum())


def plane_truths(energy: Callable, center: np.ndarray, reach: np.ndarray, num: int = 801) -> Truths:
    """Moments of exp(-energy) of two coordinates on the rectangle center +- reach; `energy` maps (2, K) to (K,)."""
    axes = [np.linspace(c - r, c + r, num) for c, r in zip(center, reach, strict=True)]
    points = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")])
    u = np.concatenate([energy(piece) for piece in np.array_split(points, 50, axis=1)])
    w = np.exp(-(u - u.min()))
    w /= w.sum()
    means = points @ w
    variances = (points - means[:, None]) ** 2 @ w
    return moments("x1", 0, means[0], variances[0]) + moments("x2", 1, means[1], variances[1])


# Targets without data.


def gaussian(scales: tuple[float, ...], center: float = 0.0) -> Target:
    """A Gaussian with independent coordinates of the given standard deviations around one center."""
    inverse = jnp.asarray(1.0 / np.asarray(scales))
    energy = lambda x: 0.5 * jnp.sum(((x - center) * inverse) ** 2)  # noqa: E731
    number = len(scales)
    truths = moments("x1", 0, center, scales[0] ** 2)
    if number > 1:
        truths += moments(f"x{number}", number - 1, center, scales[-1] ** 2)
    return Target(iso.from_energy(energy), number, truths)


def autoregressive(dimension: int, correlation: float) -> Target:
    """A Gaussian of unit variances whose coordinates i and j have the correlation rho^|i - j|."""

    def log_density(x):
        steps = x[1:] - correlation * x[:-1]
        return -0.5 * x[0] ** 2 - 0.5 * jnp.sum(steps**2) / (1 - correlation**2)

    middle = dimension // 2
    product = ("cov x1 x2", lambda x: x[0] * x[1], correlation)
    truths = (*moments("x1", 0, 0.0, 1.0), *moments(f"x{middle + 1}", middle, 0.0, 1.0), product)
    return Target(iso.from_log_density(log_density), dimension, truths)


def student(dimension: int, degrees: float) -> Target:
    """A multivariate Student t of unit scale; its tails fall like a power."""

    def log_density(x):
        return -0.5 * (degrees + dimension) * jnp.log1p(jnp.sum(x**2) / degrees)

    beyond = 2 * (1 - scipy.special.stdtr(degrees, 2.0))
    truths = moments("x1", 0, 0.0, degrees / (degrees - 2)) + probability(
        "|x1| > 2", lambda x: jnp.abs(x[0]) > 2, beyond
    )
    return Target(iso.from_log_density(log_density), dimension, truths)


def two_modes(
    weight: float, apart: float, narrow: float = 1.0, wide: float = 1.0, dimension: int = 1, offset: float = 0.0
) -> Target:
    """Two Gaussians on the first axis, at -apart with the mass 1 - weight and at +apart with the mass `weight`.

    The left one has the standard deviation `wide`, the right one `narrow`; the other coordinates are standard normal.
    """

    def log_first(x, xp):
        left = xp.log((1 - weight) / wide) - 0.5 * ((x + apart) / wide) ** 2
        right = xp.log(weight / narrow) - 0.5 * ((x - apart) / narrow) ** 2
        return xp.logaddexp(left, right)

    def energy(x):
        return offset - log_first(x[0], jnp) + 0.5 * jnp.sum(x[1:] ** 2)

    reach = apart + 10 * max(narrow, wide)
    truths = line_truths(lambda x: -log_first(x, np), -reach, reach, split=0.0)
    return Target(iso.from_energy(energy), dimension, truths)


def nine_modes(spacing: float, scale: float) -> Target:
    """Nine Gaussians on a grid in the plane, with masses that grow from corner to corner."""
    places = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)], float) * spacing
    masses = np.arange(1.0, 10.0) / 45.0
    centers, logs = jnp.asarray(places), jnp.asarray(np.log(masses))

    def log_density(x):
        return jax.scipy.special.logsumexp(logs - 0.5 * jnp.sum((x - centers) ** 2, axis=1) / scale**2)

    means = masses @ places
    variances = masses @ (places - means) ** 2 + scale**2
    edge = scipy.special.ndtr(0.5 * spacing / scale)
    right = masses[places[:, 0] > 0].sum() * edge + masses[places[:, 0] == 0].sum() * (1 - edge)
    truths = (
        *moments("x1", 0, means[0], variances[0]),
        *moments("x2", 1, means[1], variances[1]),
        *probability("right column", lambda x: x[0] > 0.5 * spacing, right),
    )
    return Target(iso.from_log_density(log_density), 2, truths)


def laplace(dimension: int, rate: float) -> Target:
    """Independent Laplace laws, whose energy has a kink at zero."""
    energy = lambda x: rate * jnp.sum(jnp.abs(x))  # noqa: E731
    inside = probability("|x1| < scale", lambda x: jnp.abs(x[0]) < 1 / rate, 1 - np.exp(-1))
    return Target(iso.from_energy(energy), dimension, moments("x1", 0, 0.0, 2 / rate**2) + inside)


def banana(bend: float, scale: float) -> Target:
    """A standard normal x1, and x2 around bend (x1^2 - 1) with a standard deviation `scale`."""

    def energy(x):
        return 0.5 * x[0] ** 2 + 0.5 * ((x[1] - bend * (x[0] ** 2 - 1)) / scale) ** 2

    truths = moments("x1", 0, 0.0, 1.0) + moments("x2", 1, 0.0, 2 * bend**2 + scale**2)
    return Target(iso.from_energy(energy), 2, truths)


def funnel(dimension: int, spread: float) -> Target:
    """Neal's funnel: x1 is the log variance, with the standard deviation `spread`, of the other coordinates."""

    def log_density(x):
        return -0.5 * (x[0] / spread) ** 2 - 0.5 * jnp.exp(-x[0]) * jnp.sum(x[1:] ** 2) - 0.5 * (dimension - 1) * x[0]

    below = probability("x1 < -2", lambda x: x[0] < -2, scipy.special.ndtr(-2 / spread))
    truths = moments("x1", 0, 0.0, spread**2) + moments("x2", 1, 0.0, np.exp(0.5 * spread**2)) + below
    return Target(iso.from_log_density(log_density), dimension, truths)


def log_gamma(shape: float) -> Target:
    """The logarithm of a Gamma variate: an exponential tail on the left, a doubly exponential one on the right."""
    energy = lambda x: jnp.sum(jnp.exp(x) - shape * x)  # noqa: E731
    mean, variance = scipy.special.digamma(shape), scipy.special.polygamma(1, shape)
    above = scipy.special.gammaincc(shape, 1.0)
    return Target(
        iso.from_energy(energy), 1, moments("x", 0, mean, variance) + probability("x > 0", lambda x: x[0] > 0, above)
    )


def slope_in_box(slope: float, low: float, high: float) -> Target:
    """A standard normal tilted by `slope`, cut off outside (low, high), where the run must have a box."""
    energy = lambda x, xp: 0.5 * x**2 + slope * x  # noqa: E731
    return Target(
        iso.from_energy(lambda x: jnp.sum(energy(x, jnp))),
        1,
        line_truths(lambda x: energy(x, np), low, high, split=0.5 * (low + high)),
    )


def steep_wall(stiffness: float) -> Target:
    """An exponential law on the right of zero, with a quadratic wall on the left."""
    energy = lambda x, xp: xp.where(x > 0, x, 0.5 * stiffness * x**2)  # noqa: E731
    return Target(
        iso.from_energy(lambda x: jnp.sum(energy(x, jnp))),
        1,
        line_truths(lambda x: energy(x, np), -10 / np.sqrt(stiffness), 40.0, split=0.0),
    )


def step_of_energy(height: float) -> Target:
    """A standard normal whose energy is higher by `height` on the right of zero: a fixed cost above a threshold."""
    energy = lambda x, xp: 0.5 * x**2 + height * (x > 0)  # noqa: E731
    return Target(
        iso.from_energy(lambda x: jnp.sum(energy(x, jnp))), 1, line_truths(lambda x: energy(x, np), -9.0, 9.0, 0.0)
    )


def rugged(height: float, wavelength: float) -> Target:
    """A standard normal with ripples of the energy."""
    energy = lambda x, xp: 0.5 * x**2 + height * xp.cos(2 * np.pi * x / wavelength)  # noqa: E731
    return Target(
        iso.from_energy(lambda x: jnp.sum(energy(x, jnp))), 1, line_truths(lambda x: energy(x, np), -9.0, 9.0, 1.0)
    )


# Targets with data, seen through mini-batches.


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


# Starts.


def standard(dimension: int, scale: float = 1.0) -> Callable:
    """Standard normal starts, scaled."""
    return lambda key: scale * jax.random.normal(key, (dimension,))


def uniform(dimension: int, low: float, high: float) -> Callable:
    """Uniform starts."""
    return lambda key: jax.random.uniform(key, (dimension,), minval=low, maxval=high)


# Cases.


def case(
    name: str, is_good: bool, why: str, target: Target, sampler: Any, *, init: Any = None, **settings: Any
) -> Case:
    """A case from a target, a sampler and the settings of `iso.sample`; chains start standard normal unless told."""
    start = standard(target.dimension) if init is None else init

    def run(seed: int) -> Any:
        return iso.sample(target.potential, sampler, seed=seed, init=start, out=None, progress=False, **settings)

    return Case(name, is_good, why, run, target.truths)


def bold(**options: Any) -> dict[str, Any]:
    """The thesis' bounds and gain, and the exact field: contour samplers as people set them by the book."""
    return iso.thesis.icsgld(**{"field": "psi", **options})


def wrong_cases() -> Iterator[Case]:
    """Runs that finish without a sign of trouble and are wrong."""
    wrong = functools.partial(case, is_good=False)
    stiff = tuple(np.geomspace(1.0, 0.1, 10))
    yield wrong(
        "sgld, stiff direction",
        why="The step is 0.8 of the variance of the stiffest coordinate, whose spread comes out too large.",
        target=gaussian(stiff),
        sampler=iso.sgld(0.008),
        num_steps=20_000,
        num_chains=16,
        burn_in=2_000,
        thinning=10,
    )
    yield wrong(
        "sghmc, stiff directions in 50 dimensions",
        why="With momentum the step times the largest curvature is 1.5, and the spread of stiff coordinates too large.",
        target=gaussian(tuple(np.geomspace(1.0, 0.1, 50))),
        sampler=iso.sghmc(0.015),
        num_steps=10_000,
        num_chains=8,
        burn_in=1_000,
        thinning=10,
    )
    yield wrong(
        "sgld, small batches",
        why="Batches of 10 out of 1000 add half as much noise again as is injected: the posterior is too wide.",
        target=normal_mean(1_000, 2, batch_size=10, batching="independent"),
        sampler=iso.sgld(1e-5),
        num_steps=40_000,
        num_chains=8,
        burn_in=2_000,
        thinning=10,
    )
    yield wrong(
        "sgld, last batch of one example",
        why="1001 examples in batches of 250 leave a last batch of one, which stands for all of them once in every pass.",
        target=normal_mean(1_001, 2, batch_size=250),
        sampler=iso.sgld(1e-5),
        num_steps=40_000,
        num_chains=8,
        burn_in=2_000,
        thinning=10,
    )
    yield wrong(
        "sghmc, small batches",
        why="Momentum with friction 0.1 multiplies what batch noise does by ten: the posterior is too wide.",
        target=linear_regression(1_000, 20, 3.0, batch_size=10),
        sampler=iso.sghmc(5e-7),
        num_steps=40_000,
        num_chains=8,
        burn_in=5_000,
        thinning=20,
    )
    yield wrong(
        "sghmc, gradient variance overestimated",
        why="The variance of the gradient is given four times too large, so that too little noise is injected.",
        target=normal_mean(1_000, 2, batch_size=50, batching="independent"),
        sampler=iso.sghmc(1.5e-6, gradient_variance=8e4),
        num_steps=40_000,
        num_chains=8,
        burn_in=2_000,
        thinning=10,
    )
    yield wrong(
        "sgld, logistic regression in tiny batches",
        why="Batches of 5 out of 400 at a step that suits full batches widen and shift the skewed posterior.",
        target=logistic_regression(400, batch_size=5, batching="independent"),
        sampler=iso.sgld(1e-3),
        num_steps=40_000,
        num_chains=8,
        burn_in=2_000,
        thinning=10,
    )
    yield wrong(
        "sgld, one narrow mode",
        why="The step suits the wide mode; in the narrow one it is larger than the variance, and chains leave it too soon.",
        target=two_modes(0.5, 1.5, narrow=0.15, wide=1.0),
        sampler=iso.sgld(0.03),
        num_steps=100_000,
        num_chains=16,
        burn_in=2_000,
        thinning=20,
    )
    yield wrong(
        "sgld, chains in the modes of their starts",
        why="128 chains start evenly over both modes and cross almost never, so that the masses are those of the starts.",
        target=two_modes(0.9, 4.0),
        sampler=iso.sgld(0.05),
        init=uniform(1, -6.0, 6.0),
        num_steps=10_000,
        num_chains=128,
        burn_in=1_000,
        thinning=20,
    )
    yield wrong(
        "sgld, no burn-in",
        why="Chains start at zero, 20 standard deviations from the mean, and the way from there is kept.",
        target=gaussian((1.0, 1.0), center=20.0),
        sampler=iso.sgld(5e-3),
        init=jnp.zeros(2),
        num_steps=4_000,
        num_chains=64,
        thinning=4,
    )
    yield wrong(
        "sghmc, burn-in far too short",
        why="The slow direction needs tens of thousands of steps from the common start, and has a tenth of that.",
        target=gaussian((5.0, *np.full(19, 0.1)), center=10.0),
        sampler=iso.sghmc(5e-4, friction=0.3),
        init=jnp.zeros(20),
        num_steps=6_000,
        num_chains=64,
        burn_in=2_000,
        thinning=10,
    )
    yield wrong(
        "sgld, step that decays too fast",
        why="The step falls like one over the iteration, and chains are still on their way from the common start.",
        target=autoregressive(5, 0.5),
        sampler=iso.sgld(lambda k: 0.02 / (1.0 + k / 20.0)),
        init=jnp.full(5, 4.0),
        num_steps=20_000,
        num_chains=64,
        burn_in=2_000,
        thinning=20,
    )
    yield wrong(
        "sgld, annealing longer than the burn-in",
        why="The temperature falls from 10 to 1 over 20,000 steps, and draws are kept from step 2,000 on.",
        target=autoregressive(3, 0.5),
        sampler=iso.sgld(0.05, temperature=iso.schedules.Annealed(10.0, 10.0 ** (1 / 200), 100, stop_at=20_000)),
        num_steps=60_000,
        num_chains=64,
        burn_in=2_000,
        thinning=20,
    )
    yield wrong(
        "psgld, never frozen",
        why="A preconditioner that follows the gradient changes the law.",
        target=gaussian((1.0, 3.0, 10.0)),
        sampler=iso.psgld(0.003),
        num_steps=1_000_000,
        num_chains=16,
        burn_in=50_000,
        thinning=100,
    )
    yield wrong(
        "picsgld, never frozen",
        why="The preconditioner follows the gradient, under a multiplier as without.",
        target=gaussian((1.0, 3.0, 10.0)),
        sampler=iso.picsgld(0.003, **bold(partition=(1.0, 12.0, 30))),
        num_steps=400_000,
        num_chains=16,
        burn_in=50_000,
        thinning=50,
    )
    yield wrong(
        "naive swaps, noisy energies",
        why="Batches of 5 make energies noisy, and naive swaps let hot states into the target.",
        target=signed_mean(60, 0.5, batch_size=5, is_batch_shared=False, batching="independent"),
        sampler=iso.naive_resgld(1e-3, temperatures=(1.0, 10.0)),
        num_steps=80_000,
        num_ladders=16,
        burn_in=5_000,
        thinning=20,
    )
    yield wrong(
        "corrected swaps, large correction factor",
        why="F = 50 leaves almost nothing of the correction, and swaps are biased as naive ones are.",
        target=signed_mean(60, 0.5, batch_size=10, is_batch_shared=False, batching="independent"),
        sampler=iso.resgld(1e-3, temperatures=(1.0, 10.0), correction_factor=50.0),
        num_steps=60_000,
        num_ladders=16,
        burn_in=5_000,
        thinning=20,
    )
    yield wrong(
        "corrected swaps, uneven noise",
        why="Noise depends on where replicas are: one variance for all corrects most swaps too much.",
        target=signed_mean(40, 0.5, shift=1.0, batch_size=20, batching="independent"),
        sampler=iso.resgld(2e-3, temperatures=(1.0, 9.0)),
        num_steps=60_000,
        num_ladders=16,
        burn_in=4_000,
        thinning=20,
    )
    yield wrong(
        "ladder that never swaps",
        why="In 20 dimensions the energies at temperatures 1 and 100 do not overlap: targets keep the modes of their starts.",
        target=two_modes(0.9, 4.0, dimension=20),
        sampler=iso.resgld((0.05, 0.05), temperatures=(1.0, 100.0)),
        init=lambda key: jax.random.normal(key, (20,)).at[0].multiply(5.0),
        num_steps=8_000,
        num_ladders=128,
        burn_in=1_000,
        thinning=20,
    )
    yield wrong(
        "ladder that carries nothing",
        why="Temperatures 1, 1.2 and 1.5 swap all the time, and none of them crosses the barrier.",
        target=two_modes(0.9, 5.0),
        sampler=iso.resghmc(0.02, temperatures=(1.0, 1.2, 1.5)),
        init=uniform(1, -6.0, 6.0),
        num_steps=8_000,
        num_ladders=64,
        burn_in=1_000,
        thinning=20,
    )
    yield wrong(
        "ladder, hot step too large",
        why="The step of the hot rung is 1.6 times the variance of the narrow mode: its law is off, and swaps bring it down.",
        target=two_modes(0.7, 3.0, narrow=0.5, wide=1.0),
        sampler=iso.resgld((0.01, 0.4), temperatures=(1.0, 8.0)),
        num_steps=100_000,
        num_ladders=8,
        burn_in=2_000,
        thinning=20,
    )
    yield wrong(
        "resghmc, step too large",
        why="The step times the curvature of the modes is 1.6 on every rung.",
        target=nine_modes(3.0, 0.5),
        sampler=iso.resghmc(0.4, temperatures=(1.0, 3.0, 10.0)),
        num_steps=30_000,
        num_ladders=8,
        burn_in=1_000,
        thinning=10,
    )
    yield wrong(
        "ladder, wide window",
        why="A window of 30 lets nearly every pair swap, whatever its energies.",
        target=two_modes(0.8, 3.0, 0.5, 0.5),
        sampler=iso.resgld(0.01, temperatures=(1.0, 3.0, 10.0), scheme=iso.exchange.DeterministicEvenOdd(window=30)),
        num_steps=50_000,
        num_ladders=8,
        burn_in=2_000,
        thinning=10,
    )
    yield wrong(
        "exchange, energies of 1e8",
        why="A constant of 1e8 leaves single precision no energies finer than 8: all swaps are accepted.",
        target=two_modes(0.8, 3.0, offset=1e8),
        sampler=iso.resgld(0.05, temperatures=(1.0, 5.0)),
        num_steps=50_000,
        num_ladders=8,
        burn_in=2_000,
        thinning=10,
    )
    yield wrong(
        "csgld, first bin out of reach",
        why="Bins start below the lowest energy, the multiplier goes to its bound of 5, and the step is five times too large.",
        target=gaussian((1.0, 1.0, 1.0, 1.0, 1.0)),
        sampler=iso.csgld(0.3, **bold(partition=(-10.0, 20.0, 60))),
        num_steps=50_000,
        num_chains=8,
        burn_in=5_000,
        thinning=10,
    )
    yield wrong(
        "icsgld, wide bounds of the multiplier",
        why="The multiplier of the gradient may reach 30, for which the step is far too large.",
        target=two_modes(0.6, 2.0, 0.5, 0.5),
        sampler=iso.icsgld(0.03, **bold(partition=(0.5, 9.0, 40), zeta=1.0, bounds=(-30.0, 30.0))),
        num_steps=200_000,
        num_chains=8,
        burn_in=5_000,
        thinning=20,
    )
    yield wrong(
        "icsgld, noisy energies",
        why="The noise of energies is a dozen bins wide, and multiplier and weights follow it.",
        target=normal_mean(200, 2, batch_size=10, batching="independent", is_batch_shared=False),
        sampler=iso.icsgld(5e-5, **bold(partition=(150.0, 400.0, 50), zeta=1.0)),
        num_steps=100_000,
        num_chains=8,
        burn_in=5_000,
        thinning=20,
    )
    yield wrong(
        "csgld, step too small for the gain",
        why="Theta is learned within hundreds of steps, in which the chain hardly moves: it pushes instead of flattening.",
        target=gaussian((1.0,)),
        sampler=iso.csgld(1e-4, **bold(partition=(0.2, 6.0, 30))),
        num_steps=500_000,
        num_chains=16,
        burn_in=50_000,
        thinning=100,
    )
    yield wrong(
        "icsgld, regularized weights",
        why="Regularized weights, made for large values of zeta, belong to another law.",
        target=two_modes(0.7, 2.0, narrow=0.5, wide=1.0),
        sampler=iso.icsgld(
            0.01, **bold(partition=(1.0, 8.0, 30), zeta=1.0, weight_rule=iso.contour.RegularizedWeights())
        ),
        num_steps=200_000,
        num_chains=8,
        burn_in=5_000,
        thinning=20,
    )
    yield wrong(
        "csghmc, step too large under the multiplier",
        why="The step suits plain SGHMC, and not five times the gradient.",
        target=gaussian((1.0, 0.5, 0.25)),
        sampler=iso.csghmc(0.04, **bold(partition=(0.2, 10.0, 40), zeta=1.0)),
        num_steps=50_000,
        num_chains=8,
        burn_in=5_000,
        thinning=10,
    )
    yield wrong(
        "awsgld, small step",
        why="The step is small, as the law asks for, but theta is learned faster than chains mix.",
        target=gaussian((1.0,)),
        sampler=iso.awsgld(2e-3, partition=(0.2, 5.0, 10)),
        num_steps=400_000,
        num_chains=16,
        burn_in=50_000,
        thinning=100,
    )
    yield wrong(
        "svgd in 50 dimensions",
        why="A hundred particles in 50 dimensions collapse towards the mean.",
        target=gaussian((1.0,) * 50),
        sampler=iso.svgd(0.5),
        init=standard(50),
        num_steps=2_000,
        num_chains=100,
        burn_in=1_999,
    )
    yield wrong(
        "cycsgld, step that falls to zero",
        why="The last twentieth of a cycle, with a vanishing step, cannot make up for the descent without noise.",
        target=autoregressive(3, 0.6),
        sampler=iso.cycsgld(0.05, cycle_length=1_000),
        num_steps=40_000,
        num_chains=8,
        burn_in=1_000,
    )
    yield wrong(
        "cycsgld, masses of modes",
        why="Descents from wherever the last cycle ended give the wide mode what its basin catches.",
        target=two_modes(0.85, 2.5, narrow=0.4, wide=1.0),
        sampler=iso.cycsgld(0.5, cycle_length=500, sampling_from=0.5, hold_from=0.8, exploration_temperature=10.0),
        num_steps=40_000,
        num_chains=32,
        burn_in=1_000,
        thinning=5,
    )
    yield wrong(
        "sgld, energy with a jump",
        why="The gradient does not see a jump of the energy, and both sides are sampled alike.",
        target=step_of_energy(1.5),
        sampler=iso.sgld(0.05),
        num_steps=40_000,
        num_chains=8,
        burn_in=1_000,
        thinning=10,
    )
    yield wrong(
        "sgld, funnel",
        why="In the neck of the funnel the step is too large, and chains do not enter it.",
        target=funnel(10, 2.0),
        sampler=iso.sgld(0.05),
        num_steps=50_000,
        num_chains=32,
        burn_in=5_000,
        thinning=20,
    )
    yield wrong(
        "sgld, ripples finer than the step",
        why="A step jumps over ripples, whose gradient acts as noise.",
        target=rugged(1.0, 0.3),
        sampler=iso.sgld(0.01),
        num_steps=50_000,
        num_chains=16,
        burn_in=2_000,
        thinning=20,
    )
    yield wrong(
        "sgld, large step in a box",
        why="The density is highest at a wall, and half of the large moves from there are rejected.",
        target=slope_in_box(4.0, 0.0, 3.0),
        sampler=iso.sgld(0.15, box=(0.0, 3.0)),
        init=uniform(1, 0.0, 3.0),
        num_steps=30_000,
        num_chains=8,
        burn_in=1_000,
        thinning=5,
    )
    yield wrong(
        "sgld, steep wall instead of a box",
        why="The step is 1.8 over the stiffness of the wall, which throws chains back into the tail.",
        target=steep_wall(25.0),
        sampler=iso.sgld(0.072),
        num_steps=200_000,
        num_chains=16,
        burn_in=5_000,
        thinning=50,
    )
    yield wrong(
        "sgld, skewed well",
        why="A large step overshoots from the steep side into the flat tail: the mean is too low.",
        target=log_gamma(2.0),
        sampler=iso.sgld(0.35),
        num_steps=30_000,
        num_chains=8,
        burn_in=1_000,
        thinning=5,
    )
    yield wrong(
        "sgld, kink",
        why="The step times the slope is twice the scale of the law, and every move jumps over the kink.",
        target=laplace(20, 20.0),
        sampler=iso.sgld(5e-3),
        num_steps=40_000,
        num_chains=8,
        burn_in=1_000,
        thinning=10,
    )


def good_cases() -> Iterator[Case]:
    """Runs that are right."""
    good = functools.partial(case, is_good=True)
    yield good(
        "sgld, standard normal, small step",
        why="The step is a hundredth of the variance and chains are long.",
        target=gaussian((1.0,)),
        sampler=iso.sgld(0.01),
        num_steps=400_000,
        num_chains=16,
        burn_in=5_000,
        thinning=50,
    )
    yield good(
        "sgld, coordinates of 1e5",
        why="Around 1e5 single precision rounds positions to multiples of 1/128, which noise evens out.",
        target=gaussian((1.0,), center=1e5),
        sampler=iso.sgld(2e-3),
        init=lambda key: 1e5 + jax.random.normal(key, (1,)),
        num_steps=400_000,
        num_chains=16,
        burn_in=20_000,
        thinning=100,
    )
    yield good(
        "sgld, one long chain",
        why="One chain of many autocorrelation times.",
        target=autoregressive(2, 0.5),
        sampler=iso.sgld(0.02),
        num_steps=4_000_000,
        num_chains=1,
        burn_in=10_000,
        thinning=100,
    )
    yield good(
        "sgld, correlated pair",
        why="The step is small for the narrow direction and the run long for the wide one.",
        target=autoregressive(2, 0.9),
        sampler=iso.sgld(2e-3),
        num_steps=1_000_000,
        num_chains=16,
        burn_in=20_000,
        thinning=200,
    )
    yield good(
        "sghmc, 50 correlated dimensions",
        why="Step times largest curvature is 0.02.",
        target=autoregressive(50, 0.7),
        sampler=iso.sghmc(3e-3),
        num_steps=200_000,
        num_chains=8,
        burn_in=5_000,
        thinning=50,
    )
    yield good(
        "sgld, 50 dimensions of several scales",
        why="Small for the stiffest direction, long for the widest.",
        target=gaussian(tuple(np.geomspace(1.0, 0.3, 50))),
        sampler=iso.sgld(1.5e-3),
        num_steps=500_000,
        num_chains=8,
        burn_in=20_000,
        thinning=200,
    )
    yield good(
        "psgld, frozen after the burn-in",
        why="Coordinates of very different scales, with a preconditioner that no longer moves when draws are kept.",
        target=gaussian((0.2, 1.0, 5.0)),
        sampler=iso.psgld(0.002, decay=0.9995, freeze_after=20_000),
        num_steps=3_000_000,
        num_chains=16,
        burn_in=20_000,
        thinning=300,
    )
    yield good(
        "sgld, Student t",
        why="Ten degrees of freedom, a small step and long chains.",
        target=student(3, 10.0),
        sampler=iso.sgld(0.01),
        num_steps=2_500_000,
        num_chains=16,
        burn_in=10_000,
        thinning=200,
    )
    yield good(
        "sghmc, Student t",
        why="Eight degrees of freedom in ten dimensions, with momentum.",
        target=student(10, 8.0),
        sampler=iso.sghmc(5e-3),
        num_steps=500_000,
        num_chains=16,
        burn_in=10_000,
        thinning=50,
    )
    yield good(
        "sgld in a box",
        why="A small step in a box that cuts the law off on both sides.",
        target=slope_in_box(1.0, -1.0, 2.0),
        sampler=iso.sgld(2e-3, box=(-1.0, 2.0)),
        init=uniform(1, -1.0, 2.0),
        num_steps=1_000_000,
        num_chains=16,
        burn_in=10_000,
        thinning=100,
    )
    yield good(
        "sghmc in a box",
        why="Momentum turns round at the walls.",
        target=slope_in_box(0.0, 0.5, 3.0),
        sampler=iso.sghmc(5e-4, friction=0.2, box=(0.5, 3.0)),
        init=uniform(1, 0.5, 3.0),
        num_steps=1_000_000,
        num_chains=16,
        burn_in=10_000,
        thinning=100,
    )
    yield good(
        "sgld, skewed well, small step",
        why="The step is small even on the steep side.",
        target=log_gamma(2.0),
        sampler=iso.sgld(5e-3),
        num_steps=1_000_000,
        num_chains=16,
        burn_in=10_000,
        thinning=100,
    )
    yield good(
        "sgld, banana, small step",
        why="The step is small for the narrowest part of the banana.",
        target=banana(0.5, 0.5),
        sampler=iso.sgld(5e-3),
        num_steps=6_000_000,
        num_chains=16,
        burn_in=20_000,
        thinning=400,
    )
    yield good(
        "sgld, falling step",
        why="The step falls slowly from a small start.",
        target=autoregressive(5, 0.5),
        sampler=iso.sgld(iso.schedules.Annealed(0.02, 1.1, 50_000)),
        num_steps=500_000,
        num_chains=8,
        burn_in=10_000,
        thinning=50,
    )
    yield good(
        "sgld, low barrier",
        why="Two modes so close that chains cross hundreds of times.",
        target=two_modes(0.7, 1.3),
        sampler=iso.sgld(0.02),
        num_steps=500_000,
        num_chains=16,
        burn_in=5_000,
        thinning=50,
    )
    yield good(
        "sgld, large batches",
        why="Batches of 200 out of 1000 add two hundredths of the injected noise.",
        target=normal_mean(1_000, 2, batch_size=200),
        sampler=iso.sgld(1e-5),
        num_steps=100_000,
        num_chains=8,
        burn_in=5_000,
        thinning=20,
    )
    yield good(
        "sghmc, batches, linear regression",
        why="The step is small enough for the noise of batches of 100.",
        target=linear_regression(1_000, 20, 2.0, batch_size=100),
        sampler=iso.sghmc(4e-7, friction=0.3),
        num_steps=400_000,
        num_chains=8,
        burn_in=10_000,
        thinning=100,
    )
    yield good(
        "sghmc, gradient variance known",
        why="The noise of batches is known and left out of what is injected.",
        target=normal_mean(1_000, 2, batch_size=50, batching="independent", is_batch_shared=False),
        sampler=iso.sghmc(1.5e-6, gradient_variance=1.9e4),
        num_steps=100_000,
        num_chains=8,
        burn_in=5_000,
        thinning=20,
    )
    yield good(
        "sgld, batches, logistic regression",
        why="A small step for batches of 100 out of 400.",
        target=logistic_regression(400, batch_size=100),
        sampler=iso.sgld(4e-4),
        num_steps=300_000,
        num_chains=16,
        burn_in=10_000,
        thinning=50,
    )
    yield good(
        "resgld, two modes",
        why="The hot rung crosses the barrier, and swaps are frequent.",
        target=two_modes(0.7, 3.0, 0.7, 0.7),
        sampler=iso.resgld(0.01, temperatures=(1.0, 3.0, 10.0)),
        num_steps=300_000,
        num_ladders=8,
        burn_in=5_000,
        thinning=50,
    )
    yield good(
        "naive_resgld, exact energies, nine modes",
        why="Naive swaps are right where energies are exact.",
        target=nine_modes(3.0, 0.6),
        sampler=iso.naive_resgld(0.01, temperatures=(1.0, 3.0, 9.0)),
        num_steps=300_000,
        num_ladders=8,
        burn_in=5_000,
        thinning=50,
    )
    yield good(
        "resghmc, two modes in 5 dimensions",
        why="A ladder of four rungs close enough to swap.",
        target=two_modes(0.6, 3.0, dimension=5),
        sampler=iso.resghmc(0.01, temperatures=(1.0, 1.8, 3.2, 6.0)),
        num_steps=150_000,
        num_ladders=8,
        burn_in=5_000,
        thinning=50,
    )
    yield good(
        "resgld, batches",
        why="Batches of 36 out of 40, which the replicas share, leave little noise to correct.",
        target=signed_mean(40, 0.5, shift=0.9, batch_size=36, batching="independent"),
        sampler=iso.resgld(2e-3, temperatures=(1.0, 2.0, 4.0)),
        num_steps=60_000,
        num_ladders=12,
        burn_in=4_000,
        thinning=20,
    )
    yield good(
        "vr_resgld, batches",
        why="Control variates and large batches leave little noise in the energies of swaps.",
        target=signed_mean(40, 0.5, shift=0.9, batch_size=36, batching="independent"),
        sampler=iso.vr_resgld(2e-3, temperatures=(1.0, 2.0, 4.0), refresh_every=20),
        num_steps=60_000,
        num_ladders=10,
        burn_in=4_000,
        thinning=20,
    )
    yield good(
        "icsgld, batches",
        why="A pilot makes bins as wide as the noise of energies.",
        target=normal_mean(200, 2, batch_size=100, batching="independent"),
        sampler=iso.icsgld(1e-4, partition="auto"),
        num_steps=100_000,
        num_chains=8,
        burn_in=10_000,
        thinning=20,
    )
    yield good(
        "csgld, two modes",
        why="Bins that fit, and a small step.",
        target=two_modes(0.7, 2.5, 0.7, 0.7),
        sampler=iso.csgld(0.005, partition=(0.8, 8.0, 30)),
        num_steps=1_000_000,
        num_chains=8,
        burn_in=100_000,
        thinning=100,
    )
    yield good(
        "icsgld, bins by a pilot",
        why="A pilot finds the bins, and chains learn them together.",
        target=nine_modes(2.5, 0.6),
        sampler=iso.icsgld(0.005, partition="auto"),
        num_steps=500_000,
        num_chains=16,
        burn_in=50_000,
        thinning=50,
    )
    yield good(
        "csghmc, two modes",
        why="Momentum at a small step under the multiplier.",
        target=two_modes(0.6, 2.0),
        sampler=iso.csghmc(0.002, partition=(1.5, 8.0, 20)),
        num_steps=1_000_000,
        num_chains=8,
        burn_in=100_000,
        thinning=100,
    )
    yield good(
        "awsgld, small gain",
        why="Theta is learned slowly beside a chain that mixes, and the multiplier stays small.",
        target=gaussian((1.0,)),
        sampler=iso.awsgld(0.01, partition=(0.2, 5.0, 10), zeta=0.5, gain=1e-5),
        num_steps=1_000_000,
        num_chains=16,
        burn_in=200_000,
        thinning=200,
    )
    yield good(
        "cycsgld, one mode, held step",
        why="The sampling stage holds a small step for many relaxation times.",
        target=autoregressive(2, 0.5),
        sampler=iso.cycsgld(0.2, cycle_length=2_000, sampling_from=0.5, hold_from=0.8),
        num_steps=400_000,
        num_chains=8,
        burn_in=10_000,
        thinning=10,
    )
    yield good(
        "svgd on a line",
        why="Two hundred particles in one dimension.",
        target=gaussian((1.0,)),
        sampler=iso.svgd(0.1),
        num_steps=4_000,
        num_chains=200,
        burn_in=3_500,
        thinning=50,
    )


CASES: list[Case] = [*wrong_cases(), *good_cases()]


def off_by(truths: Truths, name: str, difference: float) -> float:
    """A difference in true standard deviations for a mean, as a share for a second moment, as it is for a probability."""
    values = {each: value for each, _, value in truths}
    if name.startswith("mean"):
        return difference / np.sqrt(values["var" + name.removeprefix("mean")])
    return difference if name.startswith("prob") else difference / values[name]


def is_far(name: str, z: float, off: float) -> bool:
    """Whether a functional is clearly wrong, by the error that the run gives and by what matters."""
    least = 0.05 if name.startswith("prob") else 0.1
    return bool(abs(z) > 5 and abs(off) > least)


def is_close(name: str, z: float, off: float) -> bool:
    """Whether a functional is right, up to its error or up to what matters."""
    most = 0.01 if name.startswith("prob") else 0.02
    return bool(np.isfinite(z) and (abs(z) < 3.5 or abs(off) < most))


def measure(one: Case, seed: int) -> list[tuple[str, float, float, float, float, float]]:
    """Name, estimate, error, truth, (estimate - truth) / error, and how far off, of every functional."""
    run, rows = one.run(seed), []
    for name, function, truth in one.truths:
        found = run.estimate(function)
        estimate, error = float(found.mean), float(found.std_error)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = float(np.float64(estimate - truth) / error)
        rows.append((name, estimate, error, truth, z, float(off_by(one.truths, name, estimate - truth))))
    return rows


def main() -> None:
    """Run every case, or those whose names hold one of the arguments, for three seeds."""
    wanted = sys.argv[1:]
    chosen = [one for one in CASES if not wanted or any(part in one.name for part in wanted)]
    verdicts = []
    for one in chosen:
        print(f"\n{'GOOD' if one.is_good else 'WRONG'} {one.name}: {one.why}")
        held, worst = [], []
        for seed in (0, 1, 2):
            began = time.perf_counter()
            rows = measure(one, seed)
            for name, estimate, error, truth, z, off in rows:
                print(
                    f"  {seed} {name:16} {estimate:12.6g} +- {error:9.3g}  truth {truth:12.6g}  z {z:9.2f}  off {off:8.4f}"
                )
            print(f"  {seed} {time.perf_counter() - began:.1f} s", flush=True)
            if one.is_good:
                held.append(all(is_close(name, z, off) for name, *_, z, off in rows))
                worst.append(max(rows, key=lambda row: np.nan_to_num(abs(row[4]), nan=np.inf)))
            else:
                held.append(any(is_far(name, z, off) for name, *_, z, off in rows))
                worst.append(max(rows, key=lambda row: (is_far(row[0], *row[4:]), np.nan_to_num(abs(row[4])))))
        pick = max if one.is_good else min
        name, *_, z, off = pick(worst, key=lambda row: np.nan_to_num(abs(row[4]), nan=np.inf))
        verdicts.append((one, all(held), name, z, off))
    print("\nworst of three seeds (least wrong for a wrong case)")
    for one, is_held, name, z, off in verdicts:
        kind, state = "good" if one.is_good else "wrong", "ok" if is_held else "FAILS"
        print(f"  {kind:5} {state:5} {one.name:45} {name:16} z {z:9.2f}  off {off:8.4f}")


if __name__ == "__main__":
    main()
