"""Targets without data, and their exact expectations."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

import isotherm as iso
from tests.silent.case import Target, line_truths, moments, probability


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
