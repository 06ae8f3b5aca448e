"""Global minimization: AWSGLD explores from many starts, and L-BFGS descends from the best of what it finds."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.contour import uniform_partition
from isotherm.foundation.errors import check_integer, refuse
from isotherm.foundation.randomness import seed_key
from isotherm.foundation.schedules import CyclicalCosine
from isotherm.minimize.descent import MOST_TRIES, descend_from, guarded
from isotherm.minimize.space import space_of
from isotherm.potentials.energy import EnergyPotential
from isotherm.samplers import awsgld
from isotherm.sampling import Sampler, per_chain, sample

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# In units of the domain, by coordinate: the displacement of a start, its noise, and the longest displacement.
_DRIFT, _NOISE, _REACH = 0.01, 0.02, 0.1
_NUM_BINS = 64
_CYCLE = 2_000
_BLOCK = 250


def minimize(
    fun: Callable[[Any], Any],
    x0: Any = None,
    *,
    bounds: Any = None,
    scale: float = 1.0,
    target: float = -np.inf,
    max_evaluations: int = 100_000,
    patience: int | None = None,
    num_starts: int = 16,
    callback: Callable[["OptimizeResult"], Any] | None = None,
    seed: int = 0,
) -> "OptimizeResult":
    """Search for the global minimum of a function that JAX can differentiate.

    Args:
        fun: from an array to a number. Where it is not finite, chains see a high plateau.
        x0: a start, where there are no bounds; with bounds it is one of the starts.
        bounds: (low, high) pairs, one per coordinate; chains are reflected at them.
        scale: how far from `x0` to start, where there are no bounds.
        target: stop once a value is at most this.
        max_evaluations: of the function, with or without its gradient. No search takes more.
        patience: iterations without improvement after which the search ends; None is 3000 where there is no target, and no limit
            where there is one.
        num_starts: chains.
        callback: called with the best so far, as a result, every 250 iterations; True stops the search.
        seed: of all randomness.

    Returns:
        SciPy's result: `x`, `fun` (which is `fun(x)`), `nit` (iterations of every chain), `nfev`, `success`, `message`. Where there
        is a `target`, only a search that reached it succeeds.

    Example:
        >>> import isotherm as iso
        >>> found = iso.minimize(lambda x: jnp.sum((x**2 - 1) ** 2 + 0.1 * x), bounds=[(-2, 2)] * 3, max_evaluations=20_000)
        >>> bool(np.all(found.x < -0.9))
        True
    """
    check_integer("max_evaluations", max_evaluations, 1, "Give a budget.")
    check_integer("num_starts", num_starts, 1, "Give a number of chains.")
    if patience is None:
        patience = 3_000 if target == -np.inf else max_evaluations
    check_integer("patience", patience, 1, "Give a number of iterations.")
    space = space_of(x0, bounds, scale)
    search = _Search(fun, space, target, max_evaluations, patience, callback)
    key = seed_key(seed)
    starts = search.choose_starts(key, num_starts)
    # The gradients that settle the sampler, and the energies at which it starts.
    num_chains, num_before = len(starts), 2 * len(starts)
    num_steps = (search.left - num_before) // max(num_chains, 1)
    if num_steps > 0 and not search.is_over(0):
        sampler = search.sampler(starts)
        search.num_evaluations += num_before
        sample(
            EnergyPotential(search.plateau),
            sampler,
            num_steps=num_steps,
            num_chains=num_chains,
            thinning=num_steps,
            seed=seed,
            init=per_chain(starts),
            block_length=_BLOCK,
            callback=search.look,
            progress=False,
        )
        search.descend(search.best_z[None])
    return search.finish()


class _Search:
    """The best so far, and what was spent on it."""

    def __init__(self, fun, space, target, budget, patience, callback):
        self.fun, self.space, self.target = fun, space, target
        self.budget, self.patience, self.callback = budget, patience, callback
        self.num_evaluations, self.num_iterations, self.improved_at = 0, 0, 0
        self.best = np.inf
        self.best_z: Any = None
        self.ceiling = 0.0
        self.is_stopped = self.is_reached = False

    def choose_starts(self, key: Array, number: int) -> Array:
        """The best of many random points; and, for the record, the minima below them."""
        points = self.space.draw(key, max(1, min(10 * number, self.left)))
        self.best_z = points[0]
        if self.left == 0:
            return points[:0]
        values = np.asarray(jax.jit(jax.vmap(self._value))(points))
        self.num_evaluations += len(points)
        is_finite = np.isfinite(values)
        if not is_finite.any():
            refuse("fun", "finite somewhere", f"not finite at {len(points)} starts", "Give other bounds, or `x0`.")
        self.ceiling = float(values[is_finite].max())
        order = np.argsort(np.where(is_finite, values, np.inf))
        if self.space.start is not None and is_finite[0]:
            order = np.concatenate([[0], order[order != 0]])
        # Where few are finite, the best of them stands for the others.
        order = np.where(is_finite[order], order, order[0])[:number]
        self._take(points, values)
        self.levels = values[order]
        self.descend(points[order])
        return points[order]

    def plateau(self, z: Array) -> Array:
        """The function in units of the domain, finite everywhere, with a gradient of zero where it was not."""
        return guarded(self._value, self.ceiling)(z)

    def sampler(self, starts: Array) -> Sampler:
        """AWSGLD with steps, noise and bins from what the function shows at the starts."""
        norms = jax.jit(jax.vmap(lambda z: jnp.linalg.norm(jax.grad(self.plateau)(z).reshape(-1))))(starts)
        root = np.sqrt(max(starts[0].size, 1))
        steepness = float(np.median(np.asarray(norms)[np.asarray(norms) > 0])) if np.any(np.asarray(norms) > 0) else 1.0
        step_size = _DRIFT * root / steepness
        temperature = _NOISE**2 / (2 * step_size)
        middle = float(np.median(self.levels))
        spread = max(middle - self.best, 1e-3 * abs(middle), 1e-6)
        partition = uniform_partition(self.best - 0.05 * spread, self.best + spread, _NUM_BINS)
        return awsgld(
            CyclicalCosine(step_size, _CYCLE),
            temperature=temperature,
            partition=partition,
            zeta=partition.width / temperature,
            max_displacement=_REACH * root,
        )

    def look(self, status: Any) -> bool:
        """Note the best of the chains, descend from it, and say whether to stop."""
        num_chains = status.best_energy.shape[0]
        self.num_evaluations += num_chains * (status.iteration - self.num_iterations)
        self.num_iterations = status.iteration
        before = self.best
        self._take(status.best_position, status.best_energy)
        if status.iteration % (4 * _BLOCK) == 0:
            self.descend(jnp.asarray(status.best_position))
        if self.best < before - 1e-6 * max(1.0, abs(before)):
            self.improved_at = status.iteration
        if self.callback is not None and self.callback(self.result()) is True:
            self.is_stopped = True
        return self.is_over(status.iteration) or self.left < num_chains * _BLOCK

    def descend(self, starts: Array) -> None:
        """L-BFGS from every start, for as long as the budget lasts."""
        allowed = self.left // len(starts)
        if allowed < MOST_TRIES + 2:
            return
        ends, values, spent = self._descent(starts, jnp.asarray(min(allowed, 2**30), jnp.int32))
        self.num_evaluations += int(np.sum(spent))
        self._take(ends, np.asarray(values))

    def is_over(self, iteration: int) -> bool:
        """Whether to stop, and why."""
        is_patient = iteration - self.improved_at < self.patience
        return self.is_stopped or self.is_reached or self.left == 0 or not is_patient

    @property
    def left(self) -> int:
        """Evaluations that may still be spent; one is kept for the result."""
        return max(self.budget - 1 - self.num_evaluations, 0)

    def finish(self) -> "OptimizeResult":
        """The result, whose value is the function's own at its point."""
        self.best = float(self._value(self.best_z))
        self.is_reached |= self.best <= self.target
        self.num_evaluations += 1
        return self.result()

    def result(self) -> "OptimizeResult":
        """What is known so far."""
        has_target = self.target > -np.inf
        if self.is_reached:
            message, success = "The target was reached.", True
        elif self.is_stopped:
            message, success = "The callback stopped the search.", False
        elif self.num_iterations - self.improved_at >= self.patience:
            message, success = "No better point was found for a while.", not has_target
        else:
            message, success = "The budget of evaluations is spent.", not has_target
        best = self.space.low if self.best_z is None else self.space.point(self.best_z)
        from scipy.optimize import OptimizeResult

        return OptimizeResult(
            x=np.asarray(best),
            fun=float(self.best),
            nit=self.num_iterations,
            nfev=self.num_evaluations,
            success=success,
            message=message,
        )

    def _value(self, z: Array) -> Array:
        return jnp.asarray(self.fun(self.space.point(z)))

    def _take(self, points: Any, values: np.ndarray) -> None:
        values = np.where(np.isfinite(values), values, np.inf)
        place = int(np.argmin(values))
        self.is_reached |= bool(values[place] <= self.target)
        if values[place] < self.best:
            self.best, self.best_z = float(values[place]), jnp.asarray(points[place])

    @functools.cached_property
    def _descent(self) -> Callable[[Array, Array], Any]:
        return jax.jit(jax.vmap(lambda z, allowed: descend_from(self.plateau, z, allowed), (0, None)))
