"""Ten functions with many wells and minima of 0, in the variants of the author's code, with published numbers."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.potentials.energy import EnergyPotential
from isotherm.potentials.potential import Potential


@dataclasses.dataclass(frozen=True, eq=False)
class TestFunction:
    """A function to minimize; its minimum is 0.

    Attributes:
        name: label in tables.
        function: function of a position of shape (dimension,).
        dimension: number of coordinates.
        domain: (low, high) of the start of every coordinate.
        minimizer: position of the minimum.
    """

    __test__ = False  # Not collected by pytest.

    name: str
    function: Callable[[Any], Array]
    dimension: int
    domain: tuple[float, float]
    minimizer: Any

    @property
    def potential(self) -> Potential:
        """The function as an exact potential."""
        return EnergyPotential(self.function)

    def start(self, key: Array) -> Array:
        """A start, uniform in the domain."""
        low, high = self.domain
        return jax.random.uniform(key, (self.dimension,), minval=low, maxval=high)


def rastrigin(x: Array) -> Array:
    """10 d + sum of x^2 - 10 cos 2 pi x."""
    return 10.0 * x.size + jnp.sum(x**2 - 10.0 * jnp.cos(2 * jnp.pi * x))


def griewank(x: Array) -> Array:
    """1 + |x|^2 / 4000 - product of cos(x_i / sqrt i)."""
    roots = jnp.sqrt(jnp.arange(1.0, x.size + 1))
    return 1.0 + jnp.sum(x**2) / 4000.0 - jnp.prod(jnp.cos(x / roots))


def sum_squares(x: Array) -> Array:
    """Sum of i x_i^2."""
    return jnp.sum(jnp.arange(1.0, x.size + 1) * x**2)


def rosenbrock(x: Array) -> Array:
    """Sum of 100 (x_(i+1) - x_i^2)^2 + (x_i - 1)^2."""
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (x[:-1] - 1.0) ** 2)


def zakharov(x: Array) -> Array:
    """|x|^2 + s^2 + s^4, where s is half the sum of i x_i with i from 0 (the usual form counts from 1)."""
    total = 0.5 * jnp.sum(jnp.arange(0.0, x.size) * x)
    return jnp.sum(x**2) + total**2 + total**4


def powell(x: Array) -> Array:
    """Powell's singular function on groups of four."""
    a, b, c, d = x.reshape(-1, 4).T
    return jnp.sum((a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4)


def dixon_price(x: Array) -> Array:
    """(x_1 - 1)^2 + sum of i (2 x_(i+1)^2 - x_i)^2 with i from 1 (the usual form counts from 2)."""
    weights = jnp.arange(1.0, x.size)
    return (x[0] - 1.0) ** 2 + jnp.sum(weights * (2 * x[1:] ** 2 - x[:-1]) ** 2)


def levy(x: Array) -> Array:
    """Levy's function of x itself (the usual form takes 1 + (x - 1) / 4), with a factor 10 in its last term too."""
    inner = jnp.sum((x[:-1] - 1.0) ** 2 * (1.0 + 10.0 * jnp.sin(jnp.pi * x[:-1] + 1.0) ** 2))
    last = (x[-1] - 1.0) ** 2 * (1.0 + 10.0 * jnp.sin(2 * jnp.pi * x[-1]) ** 2)
    return jnp.sin(jnp.pi * x[0]) ** 2 + inner + last


def sphere(x: Array) -> Array:
    """|x|^2."""
    return jnp.sum(x**2)


def ackley(x: Array) -> Array:
    """Ackley's function."""
    # The root has no derivative at zero; there the first term is smooth enough for a search to stop.
    radius = jnp.sqrt(jnp.maximum(jnp.mean(x**2), 1e-24))
    return -20.0 * jnp.exp(-0.2 * radius) - jnp.exp(jnp.mean(jnp.cos(2 * jnp.pi * x))) + 20.0 + jnp.e


def ten_functions() -> tuple[TestFunction, ...]:
    """The functions of the thesis' study of minimization, in its order."""
    ones = jnp.ones(30)
    steps = jnp.array([2.0 ** -((2.0**i - 2.0) / 2.0**i) for i in range(1, 26)])
    return (
        TestFunction("Rastrigin", rastrigin, 20, (-2.56, 5.12), jnp.zeros(20)),
        TestFunction("Griewank", griewank, 20, (-300.0, 600.0), jnp.zeros(20)),
        TestFunction("Sum squares", sum_squares, 20, (-5.0, 10.0), jnp.zeros(20)),
        TestFunction("Rosenbrock", rosenbrock, 20, (-5.0, 10.0), ones[:20]),
        TestFunction("Zakharov", zakharov, 20, (-5.0, 10.0), jnp.zeros(20)),
        TestFunction("Powell", powell, 24, (-4.0, 5.0), jnp.zeros(24)),
        TestFunction("Dixon-Price", dixon_price, 25, (-10.0, 10.0), steps),
        TestFunction("Levy", levy, 30, (-10.0, 10.0), ones),
        TestFunction("Sphere", sphere, 30, (-2.56, 5.12), jnp.zeros(30)),
        TestFunction("Ackley", ackley, 30, (-1.0, 1.0), jnp.zeros(30)),
    )
