"""Ten functions to minimize in any dimension, with their optimum moved to another place of the box for every seed."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm_thesis import functions

# The lowest point of Schwefel's function of one coordinate, its depth, and where a box of width 1000 may begin that holds no
# lower one.
_LOWEST, _DEPTH, _BEGIN = 420.96874636, 418.98288727243, (-520.0, -345.0)
# The same for Styblinski and Tang's, which is symmetric but for its linear term.
_TANG, _TANG_DEPTH = -2.903534027771, 39.16616570377142


def schwefel(x: Array) -> Array:
    """418.98 d - sum of x sin(sqrt |x|): the lowest well is far from the second lowest."""
    return _DEPTH * x.size - jnp.sum(x * jnp.sin(jnp.sqrt(jnp.maximum(jnp.abs(x), 1e-12))))


def styblinski_tang(x: Array) -> Array:
    """Half the sum of x^4 - 16 x^2 + 5 x, raised to a minimum of 0: 2^d wells."""
    return 0.5 * jnp.sum(x**4 - 16.0 * x**2 + 5.0 * x) + _TANG_DEPTH * x.size


def _dixon_price_minimizer(dimension: int) -> np.ndarray:
    # x_(i+1) = sqrt(x_i / 2), from x_1 = 1.
    return np.array([2.0 ** -((2.0**i - 2.0) / 2.0**i) for i in range(1, dimension + 1)])


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """A function for every dimension.

    Attributes:
        name: as tables call it.
        function: of a position of any length; its minimum is 0.
        box: (low, high) of every coordinate.
        minimizer: where it is 0, from a dimension.
        thesis_accuracy: the value at which the thesis stops, or None where it does not have the function.
    """

    name: str
    function: Callable[[Any], Array]
    box: tuple[float, float]
    minimizer: Callable[[int], np.ndarray]
    thesis_accuracy: float | None


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A function of one seed.

    Attributes:
        name: of its family.
        dimension: of its position.
        function: for JAX.
        bounds: (low, high) for every coordinate.
        minimizer: where it is 0.
        thesis_accuracy: of its family.
    """

    name: str
    dimension: int
    function: Callable[[Any], Array]
    bounds: list[tuple[float, float]]
    minimizer: np.ndarray
    thesis_accuracy: float | None


FAMILIES = {
    family.name: family
    for family in (
        Family("Rastrigin", functions.rastrigin, (-5.12, 5.12), np.zeros, 75.0),
        Family("Ackley", functions.ackley, (-32.768, 32.768), np.zeros, 0.4),
        Family("Griewank", functions.griewank, (-600.0, 600.0), np.zeros, 25.0),
        Family("Levy", functions.levy, (-10.0, 10.0), np.ones, 400.0),
        Family("Schwefel", schwefel, (-500.0, 500.0), lambda d: np.full(d, _LOWEST), None),
        Family("Rosenbrock", functions.rosenbrock, (-5.0, 10.0), np.ones, 20.0),
        Family("Zakharov", functions.zakharov, (-5.0, 10.0), np.zeros, 500.0),
        Family("Dixon-Price", functions.dixon_price, (-10.0, 10.0), _dixon_price_minimizer, 10.0),
        Family("Powell", functions.powell, (-4.0, 5.0), np.zeros, 1.0),
        Family("Styblinski-Tang", styblinski_tang, (-5.0, 5.0), lambda d: np.full(d, _TANG), None),
    )
}


def problem(name: str, dimension: int, seed: int) -> Problem:
    """The function with its minimizer at a random place: each coordinate from 5 to 40 per cent of the width off the center.

    Schwefel's function and Styblinski and Tang's are lower elsewhere outside their box, or grow steeply there: they are mirrored at
    random, coordinate by coordinate, and displaced as far as leaves their minimum the lowest of the box.
    """
    family = FAMILIES[name]
    rng = np.random.default_rng([seed, dimension, list(FAMILIES).index(name)])
    low, high = family.box
    width, center = high - low, (low + high) / 2
    signs = rng.choice([-1.0, 1.0], dimension)
    own = np.asarray(family.minimizer(dimension), float)
    if name == "Schwefel":
        # In the function's own coordinate the box begins at `begin`.
        begin = rng.uniform(*_BEGIN, dimension)
        places = low + signs * (own - begin - width / 2) + width / 2
        mirrored = signs
    elif name == "Styblinski-Tang":
        # The second well of a coordinate, 5.65 to its right, stays in the box.
        places = center + signs * width * rng.uniform(0.05, 0.4, dimension)
        mirrored = -signs
    else:
        places = center + signs * width * rng.uniform(0.05, 0.4, dimension)
        mirrored = np.ones(dimension)

    def moved(x):
        return family.function(mirrored * (x - places) + own)

    return Problem(name, dimension, moved, [(low, high)] * dimension, places, family.thesis_accuracy)
