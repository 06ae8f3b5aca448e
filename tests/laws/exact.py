"""Exact laws at a finite step: of linear chains on a quadratic energy, and of flattened chains on a line.

On a quadratic energy every position is a sum of the noise that came before, so that its variance is known whatever the step sizes,
temperatures and batches are. On a line the law that a flattened chain samples is the one that its transition probabilities leave
as it is.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

import isotherm as iso

# The energy PRECISION / 2 (x - CENTER)^2 at this temperature.
PRECISION, CENTER, TEMPERATURE = 0.8, 0.7, 2.0
# Iterations over which moves are compared.
LAG = 3
# The standard deviation of synthetic gradient noise.
GRADIENT_SCALE = 1.5
# Tilts of the batches: 53 examples in batches of 10, of which the last of an epoch holds 3.
NUM_DATA, BATCH_SIZE, TILT = 53, 10, 0.1


def quadratic(x):
    return 0.5 * PRECISION * jnp.sum((x - CENTER) ** 2)


@functools.cache
def tilts() -> np.ndarray:
    found = np.random.default_rng(0).normal(size=NUM_DATA)
    return (TILT * (found - found.mean()) / found.std()).astype(np.float32)


@functools.cache
def potential_of(setting: str) -> Any:
    """The quadratic energy: exact, with noise on its gradient, or seen through batches whose tilts sum to nothing over all."""
    exact = iso.from_energy(quadratic)
    if setting != "batches":
        return exact if setting == "exact" else iso.with_noise(exact, gradient_scale=GRADIENT_SCALE)

    def log_likelihood(x, tilt):
        return -quadratic(x) / NUM_DATA - tilt * x[0]

    return iso.from_likelihood(log_likelihood, None, tilts(), batch_size=BATCH_SIZE)


def noise_of(setting: str) -> Callable[[int], np.ndarray] | None:
    """The covariance of the gradient noise of a setting."""
    independent = lambda number: GRADIENT_SCALE**2 * np.eye(number)  # noqa: E731
    return {"exact": None, "noise": independent, "batches": batch_covariance}[setting]


def batch_covariance(number: int) -> np.ndarray:
    """Of the gradient noise of the first iterations: means of examples drawn without replacement, epoch by epoch."""
    sizes = [BATCH_SIZE] * (NUM_DATA // BATCH_SIZE) + [NUM_DATA % BATCH_SIZE]
    variance = NUM_DATA**2 * float(np.mean(tilts().astype(np.float64) ** 2)) / (NUM_DATA - 1)
    epoch = variance * (np.diag([NUM_DATA / size for size in sizes]) - 1.0)
    return np.kron(np.eye(-(-number // len(sizes))), epoch)[:number, :number]


@dataclasses.dataclass(frozen=True)
class Linear:
    """A chain on the quadratic energy, as its docstring has it.

        v <- (1 - alpha) v - eps g + sqrt(2 eps (alpha - V eps / 2) T) xi,        x <- x + v

    and every `resample_every` iterations the Langevin step of size eps / (2 - alpha) in place of the first line. `friction` 1 is
    SGLD, whose step size and noise a preconditioner G multiplies.

    Attributes:
        step_size: eps of an iteration.
        temperature: T of an iteration.
        friction: alpha.
        gradient_variance: V.
        resample_every: None for never.
        preconditioner: G.
        noise: the covariance of the gradient noise of so many iterations; None where gradients are exact.
    """

    step_size: Callable[[int], float]
    temperature: Callable[[int], float]
    friction: float = 1.0
    gradient_variance: float = 0.0
    resample_every: int | None = None
    preconditioner: float = 1.0
    noise: Callable[[int], np.ndarray] | None = None

    def variances(self, number: int) -> np.ndarray:
        """Of the positions before each of the first iterations, and of their moves over `LAG` of them, shape (number, 2).

        The start is the center.
        """
        x, v = np.zeros((2, 2 * number))
        covariance = None if self.noise is None else self.noise(number)

        def variance(part: np.ndarray) -> float:
            thermal, batches = part[:number], part[number:]
            return float(thermal @ thermal + (0.0 if covariance is None else batches @ covariance @ batches))

        found, path = np.zeros((number, 2)), []
        for k in range(number):
            path = [*path, x][-LAG - 1 :]
            found[k] = variance(x), variance(x - path[0])
            step, share, kept = self.preconditioner * self.step_size(k), 1.0, 1.0 - self.friction
            injected = self.friction - 0.5 * self.gradient_variance * step
            if self.resample_every is not None and k % self.resample_every == 0:
                share, kept = 1.0 / (2.0 - self.friction), 0.0
                injected = share - 0.5 * self.gradient_variance * step * share**2
            gradient = PRECISION * x
            gradient[number + k] += 1.0
            v = kept * v - share * step * gradient
            v[k] += np.sqrt(2.0 * step * max(injected, 0.0) * self.temperature(k))
            x = x + v
        return found


@dataclasses.dataclass(frozen=True)
class Flattened:
    """A chain whose gradient is multiplied by psi(U), with weights of the bins that stay as they are.

        psi = 1 + zeta T (log theta(J) - log theta(J - 1)) / width,        W = integral of (psi - 1) / T du

    Attributes:
        energy: of a position of shape (1,).
        low: the first edge.
        width: of the inner bins.
        theta: of the bins.
        zeta: how far to flatten.
        is_forward: whether slopes are those of the pair above.
        bounds: of psi.
        empty_step: a step of log theta above which psi is 1.
        goes_on: whether the open top bin has a slope.
    """

    energy: Callable[[Any], Any]
    low: float
    width: float
    theta: tuple[float, ...]
    zeta: float = 0.75
    is_forward: bool = False
    bounds: tuple[float, float] | None = (0.0, 2.0)
    empty_step: float | None = 5.0
    goes_on: bool = False

    @functools.cached_property
    def psi(self) -> np.ndarray:
        """Of every bin; 1 in the open ones."""
        steps = np.diff(np.log(self.theta))
        found = np.ones(len(self.theta))
        last = len(self.theta) - (0 if self.goes_on else 1)
        for j in range(1, last):
            step = steps[j] if self.is_forward else steps[j - 1]
            is_empty = self.empty_step is not None and not self.is_forward and step > self.empty_step
            found[j] = 1.0 if is_empty else 1.0 + self.zeta * TEMPERATURE * step / self.width
        return found if self.bounds is None else np.clip(found, *self.bounds)

    def log_weights(self, energies: np.ndarray) -> np.ndarray:
        """W, by the trapezoidal rule on a fine grid of energies."""
        fine = np.linspace(energies.min(), energies.max(), 400_001)
        slopes = (self.psi[self.bins(0.5 * (fine[1:] + fine[:-1]))] - 1.0) / TEMPERATURE
        return np.interp(energies, fine, np.concatenate([[0.0], np.cumsum(slopes * np.diff(fine))]))

    def bins(self, energies: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.low + self.width * np.arange(len(self.theta) - 1), energies)

    def moments(self, step_size: float, log_weights: Callable[[np.ndarray], np.ndarray] | None = None) -> np.ndarray:
        """Means and variances at this step size, shape (2, 2): first without weights, then with them."""
        # No cell holds a jump of psi.
        fine = np.linspace(-9.0, 11.0, 200_001)
        jumps = np.flatnonzero(np.diff(self.bins(self._energies(fine))))
        edges = np.union1d(fine[::400], 0.5 * (fine[jumps] + fine[jumps + 1]))
        middles = 0.5 * (edges[1:] + edges[:-1])
        energies = self._energies(middles)
        points = jnp.asarray(middles[:, None], jnp.float32)
        slopes = np.asarray(jax.vmap(jax.grad(self.energy))(points), np.float64)[:, 0]
        ends = edges[None] - (middles - step_size * self.psi[self.bins(energies)] * slopes)[:, None]
        moves = np.diff(ndtr(ends / np.sqrt(2.0 * step_size * TEMPERATURE)), axis=1)
        moves /= moves.sum(axis=1, keepdims=True)
        equations, total = moves.T - np.eye(len(middles)), np.zeros(len(middles))
        equations[-1], total[-1] = 1.0, 1.0
        law = np.linalg.solve(equations, total)
        weighted = law * np.exp((self.log_weights if log_weights is None else log_weights)(energies))
        return np.stack([_mean_and_variance(middles, mass) for mass in (law, weighted)])

    def _energies(self, points: np.ndarray) -> np.ndarray:
        return np.asarray(jax.vmap(self.energy)(jnp.asarray(points[:, None], jnp.float32)), np.float64)


def _mean_and_variance(points: np.ndarray, mass: np.ndarray) -> np.ndarray:
    mean = np.sum(points * mass) / mass.sum()
    return np.array([mean, np.sum((points - mean) ** 2 * mass) / mass.sum()])


def stationary_law(moves: np.ndarray) -> np.ndarray:
    """The law that transition probabilities (cells, cells) leave as it is."""
    # One of the equations follows from the others, and gives way to a total of one.
    equations, total = moves.T - np.eye(len(moves)), np.zeros(len(moves))
    equations[-1], total[-1] = 1.0, 1.0
    return np.linalg.solve(equations, total)


def langevin_law(
    slope: Callable[[np.ndarray], np.ndarray],
    step_size: float,
    temperature: float,
    ends: tuple[float, float],
    images: str,
    num_cells: int = 1_200,
) -> tuple[np.ndarray, np.ndarray]:
    """Points between two ends, and the law of SGLD there at this step size.

    A proposal comes from all of its "mirrored" or "shifted" images, as between mirrors or on a circle; with "none" one outside is
    rejected.
    """
    low, high = ends
    edges = np.linspace(low, high, num_cells + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    means, spread = middles - step_size * slope(middles), np.sqrt(2.0 * step_size * temperature)

    def between(places: np.ndarray) -> np.ndarray:
        return np.abs(np.diff(ndtr((places[None] - means[:, None]) / spread), axis=1))

    reach, width = range(-4, 5), high - low
    if images == "mirrored":
        moves = sum(between(edges + 2 * k * width) + between(2 * low - edges + 2 * k * width) for k in reach)
    elif images == "shifted":
        moves = sum(between(edges + k * width) for k in reach)
    else:
        moves = between(edges)
        moves = moves + np.diag(1.0 - moves.sum(axis=1))
    return middles, stationary_law(np.asarray(moves))
