"""The function of a search: every evaluation is counted, the best is kept, and the search ends where it must."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.errors import InputError, refuse
from isotherm.minimization.space import Space
from isotherm.minimization.tracing import called_on_host, packed, traced_dtype, unwrapped
from isotherm.potentials.energy import EnergyPotential

# A step for differences of functions without gradients, in units of the box: the root of the rounding error.
_DIFFERENCE = 1.5e-8
# Evaluations between two calls of the user's callback.
_CALLBACK_EVERY = 500
# Budgets above this pay for a second look at one point.
_FOR_CHECKS = 50
# Differences that are rounding, relative to a value, over the least share of the unit that is asked for.
_ROUNDING = 1e-6


REACHED, SPENT = "The target was reached.", "The budget of evaluations is spent."


class SearchOver(Exception):  # noqa: N818
    """Ends a search from wherever it is; its text says why."""


class Objective:
    """A function in units of the box, counted, with a gradient by JAX or by differences.

    Evaluations are in double precision where the function lets JAX compute so. Where a value is not finite, the search sees the
    highest finite one that it met, with no slope.

    Attributes:
        space: the units.
        is_traced: whether JAX differentiates the function; if not, a gradient costs an evaluation for every coordinate.
        num_evaluations: spent so far. A value with its gradient counts once where JAX gives both.
        best: the lowest value.
        best_z: where it was met.
        improved_at: the evaluation at which it was.
    """

    def __init__(self, fun: Callable[[Any], Any], space: Space, target: float, budget: int):
        self.space, self.target, self.budget = space, float(target), budget
        self.num_evaluations = self.improved_at = 0
        self.best, self.best_z = np.inf, space.draw(np.random.default_rng(0), 1)[0]
        if space.start is not None:
            self.best_z = space.start
        self.ceiling = -np.inf
        self.patience: int | None = None
        self.callback: Callable[[], Any] | None = None
        fun = unwrapped(fun)
        self.dtype = traced_dtype(fun, space)
        self.fun = fun
        self._programs: dict[Any, Any] = {}
        self.is_traced = self.dtype is not None
        self._next_callback = _CALLBACK_EVERY
        self._finished: tuple[np.ndarray, float] | None = None
        if self.is_traced:
            self._both = jax.jit(lambda x: packed(fun, x))
            self._several = jax.jit(jax.vmap(lambda x: packed(fun, x)))

    def check(self) -> None:
        """Refuse a function that cannot be called, and one whose values are random though nobody said so."""
        number = 2 if self.left > _FOR_CHECKS else min(self.left, 1)
        if number == 0:
            return
        try:
            values = [self._own(self.space.point(self.best_z)) for _ in range(number)]
        except InputError:
            raise
        except Exception as error:
            rule, got = f"a function of an array of shape {self.space.shape}", f"{type(error).__name__}: {error}"
            remedy = (
                "Call it yourself to see where it fails. If shapes are wrong, `x0` and `bounds=[(low, high), ...]` set them; "
                "further arguments go into `args=(...)`, and the parameter for a random key is named `key`."
            )
            refuse("fun", rule, got, remedy)
        self.num_evaluations += number
        if np.all(np.isfinite(values)) and values[0] != values[-1]:
            got = f"{values[0]:.6g} and {values[-1]:.6g}"
            refuse("fun", "a function that gives the same value twice", got, "For a noisy function pass `noise=True`.")
        self.take(self.best_z, values[0])

    def _own(self, x: np.ndarray) -> float:
        """The function's own value, not compiled."""
        if not self.is_traced:
            return self._call(x)
        with self.precision():
            return float(jnp.reshape(self.fun(jnp.asarray(x, self.dtype)), ()))

    @property
    def cost(self) -> int:
        """What a value with its gradient costs."""
        return 1 if self.is_traced else self.space.dimension + 1

    @property
    def left(self) -> int:
        """Evaluations that may still be spent; one is kept for the result."""
        return max(self.budget - 1 - self.num_evaluations, 0)

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """The context in which JAX computes for this function."""
        return jax.enable_x64(self.dtype != np.float32)

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, compiled for this search, with which the program goes; see `isotherm.minimization.search`."""
        if function not in self._programs:
            self._programs[function] = jax.jit(lambda *given: function(*given))
        return self._programs[function]

    def value_and_gradient(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Both at `z`; raises `SearchOver` once the search must end."""
        self.spend(self.cost)
        return self.look(z)

    def look(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at `z`, for evaluations that are paid for already."""
        x = self.space.point(z)
        if self.is_traced:
            with self.precision():
                both = np.asarray(self._both(x.astype(self.dtype)), float)
            return self._seen(z, float(both[0]), both[1:] * self.space.width)
        value = self._call(x)
        return self._seen(z, value, self._differences(z, value))

    def many(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and gradients at several points."""
        self.spend(len(points) * self.cost)
        if not self.is_traced:
            found = [self.look(z) for z in points]
        else:
            with self.precision():
                rows = np.array(self._several(self.space.points(points).astype(self.dtype)), float)
            rows[:, 1:] *= self.space.width
            found = [self._seen(z, float(row[0]), row[1:]) for z, row in zip(points, rows, strict=True)]
        return np.array([value for value, _ in found]), np.array([gradient for _, gradient in found])

    def _seen(self, z: np.ndarray, value: float, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        self.take(z, value)
        if np.isfinite(value):
            self.ceiling = max(self.ceiling, value)
            return value, gradient if np.all(np.isfinite(gradient)) else np.zeros_like(gradient)
        return self.ceiling, np.zeros_like(gradient)

    def spend(self, number: int) -> None:
        """Count evaluations, or end the search where they are not to be had."""
        if number > self.left:
            raise SearchOver(SPENT)
        self.num_evaluations += number
        if self.patience is not None and self.num_evaluations - self.improved_at > self.patience:
            raise SearchOver(f"No better point was found in {self.patience} evaluations.")
        if self.callback is not None and self.num_evaluations >= self._next_callback:
            self._next_callback = self.num_evaluations + _CALLBACK_EVERY
            if self._is_stopped():
                raise SearchOver("The callback stopped the search.")

    def _is_stopped(self) -> bool:
        assert self.callback is not None
        try:
            return self.callback() is True
        except StopIteration:  # SciPy's way to stop.
            return True

    def take(self, z: np.ndarray, value: float) -> None:
        """Note a value, and end the search if it is the target."""
        if value < self.best:
            if not np.isfinite(self.best) or value < self.best - 1e-6 * self.unit(self.best):
                self.improved_at = self.num_evaluations
            self.best, self.best_z = float(value), np.array(z)
            # A compiled value may differ from the function's own in its last digit.
            if value <= self.target and self.finish() <= self.target:
                raise SearchOver(
                    REACHED if self.target > -np.inf else "The function is not bounded below: it is -inf at `x`."
                )

    def unit(self, value: float) -> float:
        """What differences from a value are measured in: its size, or 1 if that is smaller, but no more than all values differ."""
        size = max(1.0, abs(value))
        spread = self.ceiling - self.best
        return min(size, max(spread, _ROUNDING * abs(value))) if np.isfinite(spread) and spread > 0 else size

    def finish(self) -> float:
        """The function's own value at the best point: what a user gets who calls it there in the same precision.

        It takes the evaluation that was kept for it, once, unless the function is not compiled and this value was met before.
        """
        x = self.space.point(self.best_z)
        if not self.is_traced:
            if not np.isfinite(self.best):
                self.num_evaluations += 1
                self.best = self._call(x)
            return self.best
        if self._finished is None or not np.array_equal(self._finished[0], self.best_z):
            self.num_evaluations += 1
            self._finished = (self.best_z, self._own(x))
        return self._finished[1]

    @functools.cached_property
    def potential(self) -> EnergyPotential:
        """The function in units of the box, for samplers: finite everywhere, with no slope where it was not."""

        @jax.custom_vjp
        def energy(z):
            return forward(z)[0]

        def forward(z):
            if self.is_traced:
                x = (self.space.low + self.space.width * z).reshape(self.space.shape)
                both = packed(self.fun, x)
            else:
                both = called_on_host(self._packed_on_host, z)
            value, gradient = both[0], both[1:] * self.space.width
            is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
            value = jnp.where(jnp.isfinite(value), value, self.ceiling)
            return value.astype(z.dtype), jnp.where(is_finite, gradient, 0.0).astype(z.dtype)

        energy.defvjp(forward, lambda gradient, cotangent: (cotangent * gradient,))
        return EnergyPotential(energy)

    def _packed_on_host(self, z: np.ndarray) -> np.ndarray:
        value = self._call(self.space.point(z))
        return np.append(value, self._differences(z, value) / self.space.width)

    def _call(self, x: np.ndarray) -> float:
        # A function that JAX cannot differentiate may still compute by JAX; differences need its double precision.
        with jax.enable_x64(True):
            value = np.asarray(self.fun(x))
        if np.size(value) != 1:
            got = f"an array of shape {np.shape(value)}"
            refuse("fun", "a function that returns one number", got, "Sum it, or take its square norm.")
        return float(np.reshape(value, ()))

    def _differences(self, z: np.ndarray, value: float) -> np.ndarray:
        """Forward differences, or backward ones at an upper bound."""
        gradient = np.zeros_like(z)
        for place in range(z.size):
            step = -_DIFFERENCE if self.space.is_bounded and z[place] + _DIFFERENCE > 1.0 else _DIFFERENCE
            moved = z.copy()
            moved[place] += step
            gradient[place] = (self._call(self.space.point(moved)) - value) / (moved[place] - z[place])
        return gradient
