"""Targets of the study of contour samplers, each with draws of its exact law."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso


@dataclasses.dataclass(frozen=True)
class Target:
    """What is sampled, and what is true of it.

    Attributes:
        name: for the table.
        potential: or an energy function.
        starts: maps a generator and a number to exact draws.
        step_size: that suits SGLD.
        barrier: between modes in temperatures; 0 for one mode.
        scale: of the energy.
        functions: of a position, whose means are looked at; all of them are bounded or have a variance.
        num_steps: of a chain.
    """

    name: str
    potential: Any
    starts: Callable[[np.random.Generator, int], np.ndarray]
    step_size: float
    barrier: float
    functions: Callable[[Any], Any]
    num_steps: int = 50_000
    box: Any = None

    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of the functions, by a million exact draws."""
        draws = self.starts(np.random.default_rng(1), 1_000_000)
        values = np.asarray(jnp.asarray(_each(self.functions)(jnp.asarray(draws, jnp.float32))), np.float64)
        return values.mean(axis=0), values.std(axis=0)


def _each(function):
    return jax.jit(jax.vmap(function))


def on_grid(energy: Callable[[np.ndarray], np.ndarray], axes: list[np.ndarray]) -> Callable:
    """Draws of exp(-energy) on a grid, spread over its cells; `energy` maps (K, d) to (K,)."""
    points = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)
    values = energy(points)
    masses = np.exp(values.min() - values)
    total = np.cumsum(masses / masses.sum())
    widths = np.array([axis[1] - axis[0] for axis in axes])

    def draw(rng, number):
        chosen = np.searchsorted(total, rng.random(number) * total[-1]).clip(0, len(points) - 1)
        return points[chosen] + widths * (rng.random((number, len(axes))) - 0.5)

    return draw


def squares(x: Any) -> Any:
    """The energy-like square and the first coordinate, with their squares: what a normal law is judged by."""
    return jnp.stack([x[0], x[0] ** 2, x[-1] ** 2, jnp.sum(x**2)])


def gaussian(dimension: int, largest: float = 1.0) -> Target:
    """A normal law of curvatures from 1 to `largest`."""
    curvature = np.geomspace(1.0, largest, dimension) if dimension > 1 else np.ones(1)
    weights = jnp.asarray(curvature, jnp.float32)
    starts = lambda rng, number: rng.standard_normal((number, dimension)) / np.sqrt(curvature)  # noqa: E731
    name = f"normal, d = {dimension}" + (f", curvatures 1 to {largest:g}" if largest > 1 else "")
    energy = lambda x: 0.5 * jnp.sum(weights * x**2)  # noqa: E731
    return Target(name, energy, starts, 0.05 / largest, 0.0, squares)


def two_modes(dimension: int, apart: float, mass: float = 0.3) -> Target:
    """Two normal laws of unit width at -apart and apart on the first axis."""

    def energy(x):
        pair = jnp.stack([jnp.log(1 - mass) - 0.5 * (x[0] + apart) ** 2, jnp.log(mass) - 0.5 * (x[0] - apart) ** 2])
        return -jnp.logaddexp(pair[0], pair[1]) + 0.5 * jnp.sum(x[1:] ** 2)

    def starts(rng, number):
        draws = rng.standard_normal((number, dimension))
        draws[:, 0] += np.where(rng.random(number) < mass, apart, -apart)
        return draws

    functions = lambda x: jnp.stack([x[0] > 0, *squares(x)[1:]])  # noqa: E731
    return Target(f"two modes, d = {dimension}", energy, starts, 0.05, 0.5 * apart**2, functions, 100_000)


def double_well(barrier: float, tilt: float = 0.5) -> Target:
    """Barrier (x^2 - 1)^2 + tilt x."""
    energy = lambda x: jnp.sum(barrier * (x**2 - 1) ** 2 + tilt * x)  # noqa: E731
    starts = on_grid(lambda x: np.sum(barrier * (x**2 - 1) ** 2 + tilt * x, axis=1), [np.linspace(-4, 4, 40_001)])
    functions = lambda x: jnp.stack([x[0] > 0, x[0] ** 2])  # noqa: E731
    return Target(f"double well, {barrier:g}", energy, starts, 0.05 / (8 * barrier), barrier, functions, 200_000)


def modes25(scale: float) -> Target:
    """The thesis' landscape, times a scale, in its box."""
    both = lambda x, xp: scale * xp.sum(0.2 * x**2 - 2.0 * xp.cos(2 * np.pi * x), axis=-1)  # noqa: E731
    axis = np.linspace(-2.5, 2.5, 1001)
    starts = on_grid(lambda x: both(x, np), [axis, axis])

    def functions(x):
        cells = jnp.round(x)
        return jnp.stack([cells[0] == 0, jnp.sum(cells == 0) == 2, jnp.max(jnp.abs(cells)) == 2, jnp.sum(x**2)])

    step = 0.003 / max(scale, 0.1)
    box = (-2.5, 2.5)
    return Target(
        f"25 modes, times {scale:g}", lambda x: both(x, jnp), starts, step, 4.0 * scale, functions, 100_000, box
    )


def ripples(scale: float, dimension: int) -> Target:
    """A normal law with ripples, the same in every coordinate, of an energy of `scale` temperatures."""
    both = lambda x, xp: xp.sum(scale * (0.5 * x**2 + 0.3 * xp.cos(6.0 * x)), axis=-1)  # noqa: E731
    reach = 8.0 / np.sqrt(scale)
    own = on_grid(lambda x: both(x, np), [np.linspace(-max(reach, 2.5), max(reach, 2.5), 400_001)])
    starts = lambda rng, number: own(rng, number * dimension).reshape(number, dimension)  # noqa: E731
    step = 0.05 / (scale * 12)
    return Target(
        f"ripples, times {scale:g}, d = {dimension}",
        lambda x: both(x, jnp),
        starts,
        step,
        0.6 * scale,
        squares,
        100_000,
    )


def regression(dimension: int, batch_size: int | None, num_data: int = 5_000) -> Target:
    """Conjugate regression."""
    rng = np.random.default_rng(2)
    inputs = rng.standard_normal((num_data, dimension))
    targets = inputs @ rng.standard_normal(dimension) + rng.standard_normal(num_data)
    covariance = np.linalg.inv(inputs.T @ inputs + np.eye(dimension))
    mean, root = covariance @ inputs.T @ targets, np.linalg.cholesky(covariance)
    potential = iso.from_likelihood(
        lambda w, example: -0.5 * (example[1] - example[0] @ w) ** 2,
        lambda w: -0.5 * jnp.sum(w**2),
        (jnp.asarray(inputs, jnp.float32), jnp.asarray(targets, jnp.float32)),
        batch_size=batch_size,
    )
    center, sd = jnp.asarray(mean, jnp.float32), float(np.sqrt(covariance[0, 0]))
    starts = lambda rng, number: mean + rng.standard_normal((number, dimension)) @ root.T  # noqa: E731
    functions = lambda w: squares((w - center) / sd)  # noqa: E731
    name = f"regression, d = {dimension}, batches of {batch_size or num_data}"
    return Target(name, potential, starts, 0.02 / num_data, 0.0, functions, 20_000)


def signed_mean(batch_size: int | None, num_data: int = 60, shift: float = 1.2) -> Target:
    """Data from N(x, 1) or N(-x, 1): two modes that the prior tells apart."""
    data = np.random.default_rng(4).standard_normal(num_data) + np.where(np.arange(num_data) % 2, shift, -shift)

    def energy(x):
        likelihood = sum(np.logaddexp(-0.5 * (y - x[:, 0]) ** 2, -0.5 * (y + x[:, 0]) ** 2) for y in data)
        return 0.5 * (x[:, 0] - 0.2) ** 2 - likelihood

    grid = np.linspace(-3, 3, 20_001)
    values = energy(grid[:, None])
    potential = iso.from_likelihood(
        lambda x, y: jnp.logaddexp(-0.5 * (y - x[0]) ** 2, -0.5 * (y + x[0]) ** 2),
        lambda x: -0.5 * (x[0] - 0.2) ** 2,
        jnp.asarray(data, jnp.float32),
        batch_size=batch_size,
    )
    barrier = float(values[10_000] - values.min())
    functions = lambda x: jnp.stack([x[0] > 0, x[0] ** 2])  # noqa: E731
    name = f"signed mean, batches of {batch_size or num_data}"
    return Target(name, potential, on_grid(energy, [grid]), 0.05 / num_data, barrier, functions, 100_000)


def targets() -> list[Target]:
    """All of them."""
    return [
        *(gaussian(dimension) for dimension in (1, 2, 4, 10, 50, 100)),
        gaussian(10, 100.0),
        gaussian(50, 30.0),
        *(ripples(scale, 2) for scale in (0.01, 1.0, 10.0, 100.0, 1e4)),
        ripples(10.0, 10),
        *(double_well(barrier) for barrier in (4.0, 8.0, 12.0)),
        *(modes25(scale) for scale in (0.1, 1.0, 2.0)),
        two_modes(1, 4.0),
        two_modes(2, 4.0),
        two_modes(10, 4.0),
        two_modes(50, 4.0),
        regression(10, None),
        regression(10, 500),
        regression(10, 100),
        signed_mean(None),
        signed_mean(20),
    ]


def fresh_targets() -> list[Target]:
    """Others, on which nothing was chosen."""
    return [
        gaussian(7),
        gaussian(20, 10.0),
        ripples(3.0, 5),
        double_well(6.0, 1.0),
        double_well(10.0, 0.2),
        modes25(0.5),
        modes25(1.5),
        two_modes(3, 4.5, 0.4),
    ]
