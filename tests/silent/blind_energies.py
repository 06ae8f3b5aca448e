"""Targets without data of the blind cases, and starts. Estimates of means are in true standard deviations."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

import isotherm as iso
from tests.silent.case import Target, Truths, probability


def shifted(label: str, of: Callable, mean: float, sd: float) -> Truths:
    """The mean and the second moment of a coordinate from which its true mean is taken, in true standard deviations."""
    return (
        (f"mean {label}".strip(), lambda x: (of(x) - mean) / sd, 0.0),
        (f"var {label}".strip(), lambda x: ((of(x) - mean) / sd) ** 2, 1.0),
    )


def normal_truths(label: Any, mean: float, sd: float, point: float, of: Callable | None = None) -> Truths:
    """Of a normal coordinate, or a normal function `of` the position, with the probability above `point`."""
    found = of or (lambda x: x[label])
    above = probability(f"{label} above", lambda x: (found(x) - mean) / sd > point, stats.norm.sf(point))
    return shifted(str(label), found, mean, sd) + above


class Density(NamedTuple):
    """Moments of a density on an interval, and its probability above a point."""

    mean: float
    sd: float
    above: Callable[[float], float]


def density(log_density: Callable, low: float, high: float) -> Density:
    """By a fine grid in double precision."""
    grid = np.linspace(low, high, 400_001)
    logs = log_density(grid)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    mean = float((mass * grid).sum())
    sd = float(np.sqrt((mass * (grid - mean) ** 2).sum()))
    return Density(mean, sd, lambda a: float(mass[grid > a].sum()))


def autoregressive(dimension: int, rho: float) -> Target:
    """A normal chain whose neighbors have the correlation rho."""

    def energy(x):
        return 0.5 * x[0] ** 2 + 0.5 * jnp.sum((x[1:] - rho * x[:-1]) ** 2) / (1 - rho**2)

    difference = normal_truths("diff", 0.0, float(np.sqrt(2 - 2 * rho)), 1.0, lambda x: x[10] - x[11])
    return Target(energy, dimension, normal_truths(25, 0.0, 1.0, 1.0) + difference)


def log_gamma(shape: float) -> Target:
    """The logarithm of a Gamma variate."""
    mean, sd = float(special.digamma(shape)), float(np.sqrt(special.polygamma(1, shape)))
    below = probability("low", lambda x: x < -1.5, stats.gamma.cdf(np.exp(-1.5), shape))
    return Target(lambda x: -shape * x + jnp.exp(x), 0, shifted("", lambda x: x, mean, sd) + below)


def student(degrees: float) -> Target:
    """Three independent Student t variates."""
    sd = float(np.sqrt(degrees / (degrees - 2)))
    beyond = probability("1", lambda x: jnp.abs(x[1]) > 2.0, 2 * stats.t.sf(2.0, degrees))
    energy = lambda x: 0.5 * (degrees + 1) * jnp.sum(jnp.log1p(x**2 / degrees))  # noqa: E731
    return Target(energy, 3, shifted("1", lambda x: x[1], 0.0, sd) + beyond)


def cauchy() -> Target:
    """A Cauchy variate, which has no moments."""
    truths = tuple(
        truth
        for point in (5.0, 2.0)
        for truth in probability(f"beyond {point:g}", lambda x, p=point: jnp.abs(x) > p, 2 * stats.t.sf(point, 1.0))
    )
    return Target(lambda x: jnp.log1p(x**2), 0, truths)


def mixture(masses: tuple[float, ...], means: tuple[float, ...], sds: tuple[float, ...], at: float = 0.0) -> Target:
    """Gaussians on a line, with the probability on the right of `at`."""
    logs = jnp.log(jnp.asarray(masses)) - jnp.log(jnp.asarray(sds))
    centers, widths = jnp.asarray(means), jnp.asarray(sds)
    shares, places, spreads = (np.asarray(values, float) for values in (masses, means, sds))
    mean = float(shares @ places)
    sd = float(np.sqrt(shares @ (spreads**2 + (places - mean) ** 2)))
    right = probability("right", lambda x: x > at, shares @ stats.norm.sf(at, places, spreads))
    return Target(
        lambda x: -jax.scipy.special.logsumexp(logs - 0.5 * ((x - centers) / widths) ** 2),
        0,
        shifted("", lambda x: x, mean, sd) + right,
    )


def two_modes_in_ten() -> Target:
    """Two modes along the first of ten coordinates; the others are standard normal."""
    first = mixture((0.35, 0.65), (-2.5, 2.5), (1.0, 1.0))
    truths = tuple((f"{label} x0", lambda x, f=f: f(x[0]), value) for label, f, value in first.truths)
    energy = lambda x: first.potential(x[0]) + 0.5 * jnp.sum(x[1:] ** 2)  # noqa: E731
    return Target(energy, 10, truths + normal_truths(5, 0.0, 1.0, 1.0))


def triangle() -> Target:
    """Three Gaussians in the plane."""
    shares, places = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    spreads = np.array([0.8, 0.6, 1.0])
    logs = jnp.asarray(np.log(shares) - 2 * np.log(spreads))

    def energy(x):
        return -jax.scipy.special.logsumexp(logs - 0.5 * jnp.sum((x - places) ** 2, -1) / spreads**2)

    mean = float(shares @ places[:, 0])
    sd = float(np.sqrt(shares @ (spreads**2 + (places[:, 0] - mean) ** 2)))
    right, up = (shares @ stats.norm.sf(2.0, places[:, axis], spreads) for axis in (0, 1))
    truths = (
        *shifted("x", lambda x: x[0], mean, sd),
        *probability("right", lambda x: x[0] > 2.0, right),
        *probability("up", lambda x: x[1] > 2.0, up),
    )
    return Target(energy, 2, truths)


def funnel(sd: float, count: int, more: Truths = ()) -> Target:
    """The first coordinate is the log variance of the others."""

    def energy(x):
        return 0.5 * (x[0] / sd) ** 2 + 0.5 * jnp.exp(-x[0]) * jnp.sum(x[1:] ** 2) + 0.5 * count * x[0]

    return Target(energy, 1 + count, normal_truths(0, 0.0, sd, 1.0) + more)


def beta() -> Target:
    """A Beta variate of shapes 0.5 and 1.5, whose density has no bound at zero."""
    low = probability("low", lambda x: x < 0.05, stats.beta.cdf(0.05, 0.5, 1.5))
    truths = shifted("", lambda x: x, 0.25, float(stats.beta.std(0.5, 1.5))) + low
    return Target(lambda x: 0.5 * jnp.log(x) - 0.5 * jnp.log1p(-x), 0, truths)


def truncated_normal() -> Target:
    """Two normal variates around 0.5 in the box from 0 to 2."""
    one = density(lambda x: -0.5 * (x - 0.5) ** 2, 0.0, 2.0)
    above = probability("0", lambda x: x[0] > 1.0, one.above(1.0))
    return Target(lambda x: 0.5 * jnp.sum((x - 0.5) ** 2), 2, shifted("0", lambda x: x[0], one.mean, one.sd) + above)


def jump(height: float) -> Target:
    """A standard normal pair whose energy is higher by `height` beyond a line."""
    is_beyond = lambda x: (x[0] + x[1]) / np.sqrt(2) > 0.5  # noqa: E731
    free = float(stats.norm.sf(0.5))
    mass = free * np.exp(-height) / (1 - free + free * np.exp(-height))
    energy = lambda x: 0.5 * jnp.sum(x**2) + jnp.where(is_beyond(x), height, 0.0)  # noqa: E731
    return Target(energy, 2, probability("beyond", is_beyond, mass))


def normal_at(center: tuple[float, float], sd: float) -> Target:
    """A normal pair around `center`."""
    energy = lambda x: 0.5 * jnp.sum(((x - jnp.array(center)) / sd) ** 2)  # noqa: E731
    return Target(energy, 2, normal_truths(0, center[0], sd, 1.0))


NEAR = np.array([0.3, 0.5, 0.8, 1.0, 1.3, 1.8, 2.4, 3.0])


def near() -> Target:
    """Eight normal variates of different standard deviations."""
    truths = normal_truths(0, 0.0, 0.3, 1.0) + normal_truths(7, 0.0, 3.0, 1.0)
    return Target(lambda x: 0.5 * jnp.sum((x / NEAR) ** 2), 8, truths)


def near_start(key: jax.Array) -> jax.Array:
    """Starts half as far out again."""
    return 1.5 * jnp.asarray(NEAR, jnp.float32) * jax.random.normal(key, (8,))


def positive_scale() -> Target:
    """A Gamma variate of shape 3 and rate 2 through the library's transform, beside a normal one."""
    potential = iso.transforms.constrain(
        lambda x: 2.0 * jnp.log(x["scale"]) - 2.0 * x["scale"] - 0.5 * x["shift"] ** 2,
        {"scale": iso.transforms.positive()},
    )
    above = probability("", lambda x: x["scale"] > 2.0, stats.gamma.sf(2.0, 3.0, scale=0.5))
    return Target(potential, 2, shifted("", lambda x: x["scale"], 1.5, float(np.sqrt(0.75))) + above)


def positive_start(key: jax.Array) -> dict[str, jax.Array]:
    """Starts for it."""
    return {"scale": jnp.exp(jax.random.normal(key) * 0.7), "shift": jnp.array(0.5)}


def spread(center: Any, scale: float) -> Callable:
    """Normal starts around a center."""
    middle = jnp.asarray(center, jnp.float32)
    return lambda key: middle + scale * jax.random.normal(key, middle.shape)


def uniform(shape: tuple[int, ...], low: float, high: float) -> Callable:
    """Uniform starts."""
    return lambda key: jax.random.uniform(key, shape, minval=low, maxval=high)
