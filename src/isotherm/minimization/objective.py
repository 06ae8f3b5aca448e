"""The function of a search: counts evaluations, keeps the best point, and ends the search."""

import contextlib
import functools
import gc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from isotherm.foundation.errors import InputError, refuse
from isotherm.minimization.space import Space
from isotherm.potentials.energy import EnergyPotential

# Step of finite differences, in units of the box: the square root of the rounding error.
_DIFFERENCE = 1.5e-8
# Evaluations between calls of the user's callback.
_CALLBACK_EVERY = 500
# Budget above which the first point is evaluated twice, to detect noise.
_MIN_BUDGET_FOR_CHECK = 50
# Rounding error of differences of values, relative to their size, divided by the tolerance of comparisons.
_ROUNDING = 1e-6
REACHED, SPENT = "The target was reached.", "The budget of evaluations is spent."


class SearchOver(Exception):  # noqa: N818
    """Ends a search from anywhere. Its text is the reason."""


class Objective:
    """A function in units of the box, with a gradient by JAX (`is_traced`) or by finite differences.

    Evaluations are in double precision if JAX can differentiate the function in it. Instead of a value that is not finite, the
    search sees `ceiling`, the highest finite value so far, with zero gradient. `improved_at` is `num_evaluations` at the last
    improvement, and `programs` are those that end with the search; see `isotherm.minimization.search`.
    """

    def __init__(self, fun: Callable[[Any], Any], space: Space, target: float, budget: int):
        self.fun = fun = without_jit(fun)
        self.space, self.target, self.budget = space, float(target), budget
        self.num_evaluations = self.improved_at = 0
        self.best, self.ceiling = np.inf, -np.inf
        self.best_z = space.draw(np.random.default_rng(0)) if space.start is None else space.start
        self.patience: int | None = None
        self.callback: Callable[[], Any] | None = None
        self.dtype = traced_dtype(fun, space)
        self.is_traced = self.dtype is not None
        self._next_callback = _CALLBACK_EVERY
        self.programs: dict[str, Any] = {}
        self._finished: tuple[np.ndarray, float] | None = None
        self._both = jax.jit(lambda x: packed(fun, x))
        self._several = jax.jit(jax.vmap(lambda x: packed(fun, x)))

    def check(self) -> None:
        """Refuse a function that raises, or whose values are random without `noise=True`."""
        number = 2 if self.left > _MIN_BUDGET_FOR_CHECK else min(self.left, 1)
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

    @property
    def cost(self) -> int:
        """Evaluations per value with gradient."""
        return 1 if self.is_traced else self.space.dimension + 1

    @property
    def left(self) -> int:
        """Remaining evaluations, without one that is reserved for the result."""
        return max(self.budget - 1 - self.num_evaluations, 0)

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """Context with the precision of this function."""
        return jax.enable_x64(self.dtype != np.float32)

    def spend(self, number: int) -> None:
        """Count evaluations, or end the search."""
        if number > self.left:
            raise SearchOver(SPENT)
        self.num_evaluations += number
        if self.patience is not None and self.num_evaluations - self.improved_at > self.patience:
            raise SearchOver(f"No better point was found in {self.patience} evaluations.")
        if self.callback is not None and self.num_evaluations >= self._next_callback:
            self._next_callback = self.num_evaluations + _CALLBACK_EVERY
            try:
                is_stopped = self.callback() is True
            except StopIteration:  # SciPy's way to stop.
                is_stopped = True
            if is_stopped:
                raise SearchOver("The callback stopped the search.")

    def value_and_gradient(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at `z`."""
        self.spend(self.cost)
        return self.look(z)

    def look(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at `z`, already counted."""
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

    def take(self, z: np.ndarray, value: float) -> None:
        """Keep a value if it is the lowest; end the search at the target."""
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
        """Unit of differences from `value`: its size, at least 1, but at most the range of all values."""
        size = max(1.0, abs(value))
        spread = self.ceiling - self.best
        return min(size, max(spread, _ROUNDING * abs(value))) if np.isfinite(spread) and spread > 0 else size

    def finish(self) -> float:
        """The function's own, uncompiled value at the best point.

        Takes the reserved evaluation, unless this value is known already.
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
        """The function in units of the box, for samplers, with the convention for values that are not finite."""

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

    def _own(self, x: np.ndarray) -> float:
        """The function's own value, uncompiled."""
        if not self.is_traced:
            return self._call(x)
        with self.precision():
            return float(jnp.reshape(self.fun(jnp.asarray(x, self.dtype)), ()))

    def _call(self, x: np.ndarray) -> float:
        # A function without gradients may still use JAX, and differences need double precision.
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


def called_on_host(function: Callable[[np.ndarray], np.ndarray], z: Any) -> Any:
    """Value and gradient of `function` at `z`, by a callback from a program.

    Numbers travel as words, because the thread of the callback is not in the search's context of double precision.
    """
    given = lax.bitcast_convert_type(z, jnp.uint32)
    shape = jax.ShapeDtypeStruct((z.size + 1, *given.shape[1:]), jnp.uint32)

    def call(words):
        found = function(np.asarray(words).view(z.dtype).reshape(-1).astype(float))
        return np.ascontiguousarray(found, z.dtype).view(np.uint32).reshape(shape.shape)

    return lax.bitcast_convert_type(jax.pure_callback(call, shape, given, vmap_method="sequential"), z.dtype)


def without_jit(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function inside the user's `jax.jit`, whose cache would keep the search's types."""
    return getattr(fun, "__wrapped__", fun) if hasattr(fun, "lower") else fun


def packed(fun: Callable[[Any], Any], x: Any) -> Any:
    """Value and flat gradient in one array, for a single transfer."""
    value, gradient = jax.value_and_grad(lambda x: jnp.reshape(fun(x), ()))(x)
    return jnp.concatenate([jnp.reshape(value, 1), jnp.reshape(gradient, -1).astype(value.dtype)])


def traced_dtype(fun: Callable[[Any], Any], space: Space) -> Any:
    """Type in which JAX can differentiate `fun`, double if possible; None if it cannot."""
    if _is_traced(fun, space, np.float64):
        return np.float64
    if not _is_traced(fun, space, np.float32):
        return None
    if jnp.result_type(float) != np.float64:
        # The user's programs may hold a NumPy array of `fun` in single precision.
        jax.clear_caches()
        gc.collect()
    return np.float64 if _is_traced(fun, space, np.float64) else np.float32


def _is_traced(fun: Callable[[Any], Any], space: Space, dtype: Any) -> bool:
    with jax.enable_x64(dtype == np.float64), contextlib.suppress(Exception):
        program = jax.jit(lambda x: packed(fun, x)).lower(jax.ShapeDtypeStruct(space.shape, dtype))
        return program.out_info.shape == (space.dimension + 1,)
    return False
