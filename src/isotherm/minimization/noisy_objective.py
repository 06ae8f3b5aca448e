"""Functions whose values and gradients are noisy, such as losses on mini-batches."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from isotherm.foundation.parts import Static
from isotherm.foundation.randomness import words
from isotherm.minimization.objective import REACHED, Objective, SearchOver
from isotherm.minimization.space import Space
from isotherm.minimization.tracing import packed
from isotherm.potentials.potential import Evaluation, Potential

# Half the distance of the two points from which a slope is told where there are no gradients, in units of the box.
_APART = 0.01
# Points that one program evaluates at once: 1, 8 or this many. Each size is compiled.
_MAX_TOGETHER = 64


class NoisyObjective(Objective):
    """A function of a position and a key, or one that is random by itself.

    A value with its gradient costs one evaluation where JAX gives both. A function that JAX cannot differentiate, or that takes no
    key, costs two: its slope is that between two points, in a random direction of all coordinates at once.

    Reference:
        Spall 1992, "Multivariate stochastic approximation using a simultaneous perturbation gradient approximation".
    """

    def __init__(self, fun, space: Space, target: float, budget: int, rng: np.random.Generator, has_key: bool):
        key = jax.random.key(0)
        super().__init__((lambda x: fun(x, key)) if has_key else _untraceable(fun), space, target, budget)
        self.noisy, self.has_key, self.rng = fun, has_key, rng
        if self.is_traced:
            self._keyed = jax.jit(jax.vmap(lambda x, data: packed(lambda x: fun(x, jax.random.wrap_key_data(data)), x)))

    @property
    def cost(self) -> int:
        return 1 if self.is_traced else 2

    def take(self, z: np.ndarray, value: float) -> None:
        """One noisy value says nothing."""

    def judge(self, mean: float, error: float) -> None:
        """End the search if an estimate, which is the lowest so far, is surely below the target."""
        if mean + 2 * error <= self.target:
            raise SearchOver(REACHED)
        self.improved_at = self.num_evaluations

    def look(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        values, gradients = self._evaluate(z[None])
        return float(values[0]), gradients[0]

    def many(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.spend(len(points) * self.cost)
        return self._evaluate(points)

    def values(self, z: np.ndarray, number: int) -> np.ndarray:
        """Several values at one point."""
        if self.is_traced:
            return self.many(np.repeat(z[None], number, axis=0))[0]
        self.spend(number)
        return np.array([self._draw(z) for _ in range(number)])

    @functools.cached_property
    def potential(self) -> Potential:  # pyright: ignore[reportIncompatibleVariableOverride]
        if not self.is_traced:
            return super().potential
        space, fun = self.space, self.noisy

        def energy(z, data):
            x = (space.low + space.width * z).reshape(space.shape)
            return fun(x, jax.random.wrap_key_data(data)).astype(z.dtype)

        return KeyedPotential(energy)

    def _packed_on_host(self, z: np.ndarray) -> np.ndarray:
        value, gradient = self.look(z)
        return np.append(value, gradient / self.space.width)

    def _evaluate(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.is_traced:
            size = 1 if len(points) == 1 else 8 if len(points) <= 32 else _MAX_TOGETHER
            rows = np.concatenate([self._rows(points[at : at + size], size) for at in range(0, len(points), size)])
            values, gradients = rows[:, 0], rows[:, 1:] * self.space.width
        else:
            pairs = [self._slope(z) for z in points]
            values, gradients = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        is_finite = np.isfinite(values) & np.all(np.isfinite(gradients), axis=1)
        if is_finite.any():
            self.ceiling = max(self.ceiling, float(values[is_finite].max()))
        return np.where(is_finite, values, self.ceiling), np.where(is_finite[:, None], gradients, 0.0)

    def _rows(self, points: np.ndarray, size: int) -> np.ndarray:
        """Values and gradients in one array, for as many points as a program was compiled for, or fewer."""
        padded = np.concatenate([points, np.repeat(points[-1:], size - len(points), axis=0)])
        data = self.rng.integers(1 << 32, size=(size, 2), dtype=np.uint32)
        with self.precision():
            return np.array(self._keyed(self.space.points(padded).astype(self.dtype), data), float)[: len(points)]

    def _slope(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        signs = self.rng.choice([-1.0, 1.0], z.size)
        above, below = self.space.inside(z + _APART * signs), self.space.inside(z - _APART * signs)
        high, low = self._draw(above), self._draw(below)
        distance = above - below
        slopes = np.where(distance == 0, 0.0, (high - low) / np.where(distance == 0, 1.0, distance))
        return (high + low) / 2, slopes

    def _draw(self, z: np.ndarray) -> float:
        x = self.space.point(z)
        if not self.has_key:
            return float(self.noisy(x))
        data = self.rng.integers(1 << 32, size=2, dtype=np.uint32)
        return float(self.noisy(x, jax.random.wrap_key_data(jnp.asarray(data))))


@dataclasses.dataclass(frozen=True, eq=False)
class KeyedPotential(Potential):
    """U(z) with a key of its own in every evaluation.

    Attributes:
        energy: of a position and the two words of a key.
    """

    energy: Static[Callable[[Any, Any], Array]]

    is_exact = False

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Array:
        return words(key_own, iterations, 2)

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        energy = self.energy(position, noise)
        return Evaluation(energy, jnp.zeros_like(energy), model_state)


def _untraceable(fun: Callable[..., Any]) -> Callable[..., Any]:
    """What hides its randomness must not be compiled: it would be drawn once."""

    def hidden(x):
        if isinstance(x, Tracer):
            raise TypeError("Not to be traced.")
        return fun(x)

    return hidden
