"""Search of a noisy function, such as a loss on mini-batches: averaged stochastic descents, and races between their ends."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from isotherm.foundation.parts import Static
from isotherm.foundation.randomness import words
from isotherm.minimization.jumps import FAR, Tally
from isotherm.minimization.objective import REACHED, Objective, SearchOver, packed
from isotherm.minimization.searcher import INTERRUPTED, Search, Searcher
from isotherm.minimization.space import Space
from isotherm.potentials.potential import Evaluation, Potential

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# Half the distance between the two points of a slope without gradients, in units of the box.
_APART = 0.01
# Largest number of points per program; the others are 1 and 8. Each size is compiled.
_MAX_TOGETHER = 64
# Iterations and first step of a descent, in units of the box: after a jump, after a far one, and for the result.
_NEAR, _FAR, _REFINE = (40, 0.01), (120, 0.05), (400, 0.005)
# Adam's decay of gradients and of their squares.
_MEMORY, _SQUARES = 0.8, 0.95
# Values of a candidate in the first round of a race, and the difference that decides, in standard errors.
_FIRST_ROUND, _ERRORS = 4, 2.0
# Maximum number of values of a candidate: this share of the budget, and never more than the second number.
_SHARE, _MAX_VALUES = 1 / 400, 512
# Share of the budget for the result: to refine the best point, and at most this many values to estimate its value.
_KEPT, _MAX_FINAL_VALUES = 0.2, 1_000


class NoisyObjective(Objective):
    """A function of a position and a key, or one with hidden randomness.

    A value with its gradient by JAX costs one evaluation. Without a key, or where JAX cannot differentiate, it costs two: the slope
    is that between two points, in a random direction of all coordinates at once.

    Reference:
        Spall 1992, "Multivariate stochastic approximation using a simultaneous perturbation gradient approximation".
    """

    def __init__(self, fun, space: Space, target: float, budget: int, seed: int):
        self.noisy, self.has_key = fun, "key" in inspect.signature(fun).parameters
        self.rng, key = np.random.default_rng([seed, 1]), jax.random.key(0)
        super().__init__((lambda x: fun(x, key)) if self.has_key else _untraceable(fun), space, target, budget)
        self._keyed = jax.jit(jax.vmap(lambda x, data: packed(lambda x: fun(x, jax.random.wrap_key_data(data)), x)))

    @property
    def cost(self) -> int:
        return 1 if self.is_traced else 2

    def check(self) -> None:
        """Nothing: values may differ."""

    def take(self, z: np.ndarray, value: float) -> None:
        """Nothing: a single noisy value is not evidence."""

    def judge(self, mean: float, error: float) -> None:
        """End the search if the new lowest estimate is below the target by two standard errors."""
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
        """Values and gradients in one array, from a program for `size` points."""
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
    """U(z) with a new key in every evaluation, passed as two words."""

    energy: Static[Callable[[Any, Any], Array]]

    is_exact = False

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Array:
        return words(key_own, iterations, 2)

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        energy = self.energy(position, noise)
        return Evaluation(energy, jnp.zeros_like(energy), model_state)


def _untraceable(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun`, which JAX must not compile: its hidden randomness would be drawn once."""

    def hidden(x):
        if isinstance(x, Tracer):
            raise TypeError("Not to be traced.")
        return fun(x)

    return hidden


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """A point with noisy values."""

    z: np.ndarray
    values: np.ndarray

    @property
    def value(self) -> float:
        """Estimate of the value, their mean."""
        return float(np.mean(self.values))

    @property
    def error(self) -> float:
        """Its standard error, infinite for a single value."""
        return float(np.std(self.values, ddof=1) / np.sqrt(len(self.values))) if len(self.values) > 1 else np.inf


class NoisySearcher(Searcher):
    """A chain of minima, each significantly lower than the last."""

    stall = (40, 15)

    def __init__(self, objective: NoisyObjective, rng: np.random.Generator, tally: Tally):
        super().__init__(objective, rng, tally)
        self.objective: NoisyObjective
        self.max_values = min(max(int(_SHARE * objective.budget), 4 * _FIRST_ROUND), _MAX_VALUES)

    def begin(self, given: np.ndarray | None) -> Candidate:
        start = self.objective.space.draw(self.rng) if given is None else given
        self.tally.num_descents += 1
        # The start stays a candidate if the descent leads to a higher point.
        self.current = Candidate(start, self.objective.values(start, _FIRST_ROUND))
        return self.keep(self.descend(start, self.current, is_far=True))

    def keep(self, current: Candidate) -> Candidate:
        super().keep(current)
        self.objective.judge(current.value, current.error)
        return current

    def refine(self, current: Candidate, allowed: int) -> Candidate:
        """A long descent from `current`, which wins unless it is significantly higher."""
        number = min(_REFINE[0], allowed // (2 * self.objective.cost))
        return self.race(current, self.average(current.z, number, _REFINE[1]), is_trusted=True)

    def attempt(self, kind: str, current: Candidate) -> Candidate:
        before = self.objective.num_evaluations
        start, _ = self.jumps.start(kind, current)
        self.tally.num_descents += 1
        after = self.descend(start, current, kind in FAR)
        self.jumps.learn(kind, self.objective.num_evaluations - before, after.z is not current.z)
        return after

    def descend(self, start: np.ndarray, current: Candidate, is_far: bool = False) -> Candidate:
        return self.race(current, self.average(start, *(_FAR if is_far else _NEAR)))

    def average(self, start: np.ndarray, num_iterations: int, step: float) -> np.ndarray:
        """Adam with steps that decay to zero; the mean of the second half of its path."""
        z, total = start.copy(), np.zeros_like(start)
        mean, square = np.zeros_like(z), np.zeros_like(z)
        for number in range(num_iterations):
            _, gradient = self.objective.value_and_gradient(z)
            mean = _MEMORY * mean + (1 - _MEMORY) * gradient
            square = _SQUARES * square + (1 - _SQUARES) * gradient**2
            unbiased = mean / (1 - _MEMORY ** (number + 1))
            root = np.sqrt(square / (1 - _SQUARES ** (number + 1)))
            length = step * 0.5 * (1 + np.cos(np.pi * number / num_iterations))
            z = z - length * unbiased / np.maximum(root, 1e-300)
            if self.objective.space.is_bounded:
                z = np.clip(z, 0.0, 1.0)
            if number >= num_iterations // 2:
                total += z
        self.jumps.remember(total / (num_iterations - num_iterations // 2))
        return self.jumps.minima[-1]

    def race(self, current: Candidate, z: np.ndarray, is_trusted: bool = False) -> Candidate:
        """The candidate at `z` if it is significantly lower than `current`, from more and more values of both; else `current`.

        A trusted candidate, the end of a long descent from `current`, wins unless it is significantly higher.
        """
        values = self.objective.values(z, _FIRST_ROUND)
        while True:
            rival = Candidate(z, values)
            spread = np.sqrt(np.var(current.values, ddof=1) / len(values) + current.error**2)
            difference = rival.value - current.value
            if difference > _ERRORS * spread or len(values) >= self.max_values:
                is_lower = difference <= _ERRORS * spread if is_trusted else difference < -_ERRORS * spread
                return rival if is_lower else current
            if difference < -_ERRORS * spread and len(values) > _FIRST_ROUND:
                return rival
            values = np.append(values, self.objective.values(z, len(values)))
            missing = len(values) - len(current.values)
            if missing > 0:
                current = Candidate(current.z, np.append(current.values, self.objective.values(current.z, missing)))
                self.current = current


class NoisySearch(Search):
    """Searchers one after another, and then a better estimate of the best point and its value."""

    searcher = NoisySearcher
    final: Candidate | None = None
    # Agreement before `final`, which may be lower than all others after its long descent.
    num_found: int | None = None

    def run(self) -> "OptimizeResult":
        objective, budget = self.objective, self.objective.budget
        objective.budget = max(1, int((1 - _KEPT) * budget))
        why = self.search()
        if why != INTERRUPTED:
            objective.budget, objective.patience, objective.callback = budget, None, None
            self.num_found = self.num_alike()
            self.final = self._refined(why == REACHED)
        return self.result(why)

    def result(self, why: str) -> "OptimizeResult":
        best = self.final or self._best()
        if why == REACHED and best.value > self.objective.target:
            why = "The target seemed to be reached, but more values do not confirm it."
        number = self.num_alike() if self.num_found is None else self.num_found
        return self.report(why, best.z, number, fun=best.value, fun_std_error=best.error)

    def num_alike(self) -> int:
        best = self._best()
        return sum(bool(one.value - best.value <= _ERRORS * np.hypot(one.error, best.error)) for one in self.minima())

    def _best(self) -> Candidate:
        """The lowest candidate, by its upper limit at one standard error."""
        nothing = Candidate(self.objective.best_z, np.full(1, np.nan))
        return min(self.minima(), key=lambda one: one.value + one.error, default=nothing)

    def _refined(self, is_reached: bool) -> Candidate:
        """The best point after long descents, with new values, which are not biased by selection."""
        objective: Any = self.objective
        best, half = self._best(), objective.left // 2
        while not is_reached and objective.left > half + _MAX_FINAL_VALUES:
            try:
                best = self.searchers[-1].refine(best, objective.left - half)
            except SearchOver:
                break
        number = min(objective.left + 1, _MAX_FINAL_VALUES)
        objective.budget += 1  # The reserved evaluation.
        if number > 1 or not np.isfinite(best.value):
            best = Candidate(best.z, objective.values(best.z, number))
        return best
