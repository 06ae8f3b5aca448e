"""Global minimization.

Functions are traced in double precision, whatever JAX's default. While a program lives, JAX caches the types of NumPy arrays in it,
and would use them outside the search, where they are wrong. So programs belong to a search, and end with it.
"""

import gc
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_integer, check_real, check_type, refuse, short
from isotherm.foundation.randomness import seed_words
from isotherm.foundation.user_functions import check_function
from isotherm.minimization.noisy import NoisyObjective, NoisySearch
from isotherm.minimization.objective import Objective
from isotherm.minimization.searcher import Search
from isotherm.minimization.space import space_of

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


@checked_call()
def minimize(
    fun: Callable[..., Any],
    x0: Any = None,
    *,
    bounds: Any = None,
    args: tuple[Any, ...] = (),
    scale: float = 1.0,
    target: float | None = None,
    max_evaluations: int = 100_000,
    patience: int | None = None,
    num_agreeing: int = 2,
    noise: bool = False,
    callback: Callable[["OptimizeResult"], Any] | None = None,
    seed: int = 0,
) -> "OptimizeResult":
    """Search for the global minimum of a function with many wells.

    A searcher descends from a start by L-BFGS-B, then jumps and descends again: scans of one coordinate, steps of some or all,
    differences of earlier minima, restarts, and excursions of AWSGLD, a chain that explores with flattened energies. A descent
    stops once it cannot end lower than its origin. Kinds of jumps that found lower minima get more of the evaluations. A searcher
    ends when no jump helps; the next one starts from a random point, independently.

    Without a `target` the search ends once `num_agreeing` searchers have the same lowest value. That is evidence, not proof, and no
    `success`: all of them miss a narrow well far from the others.

    Args:
        fun: function from an array to a number. If JAX can differentiate it, a value with its gradient is one evaluation, in double
            precision. If not, as with NumPy code, gradients are finite differences, at one evaluation per coordinate; JAX first
            tries to trace it, which does not count. A function with a parameter `key`, as `fun(x, key)`, is noisy and gets a new
            key in every evaluation. Values that are not finite count as a high plateau.
        x0: array, the start of the first searcher. Required without bounds.
        bounds: (low, high) pairs, one per coordinate, or `scipy.optimize.Bounds`. All must be finite.
        args: further arguments of `fun`, after `x`.
        scale: without bounds, the standard deviation of starts around `x0`.
        target: stop once a value is at most this; for a noisy function, once the estimate plus two standard errors is. None waits
            for agreement.
        max_evaluations: maximum number of evaluations of `fun`.
        patience: stop after this many evaluations without improvement. None waits for agreement, target or budget.
        num_agreeing: number of searchers that must agree, without a target.
        noise: whether `fun` is noisy without a parameter `key`. It is not compiled.
        callback: function of the result so far, called about every 500 evaluations; True stops the search.
        seed: integer that fixes all randomness.

    Returns:
        SciPy's result: `x`, `fun` (which is `fun(x)`, in double precision with JAX), `nfev`, `nit` (jumps), `success` (whether the
        target was reached), `message`; the `num_agreeing` of `num_searchers` with the lowest value, `num_descents`, and `jumps`, a
        table with the number, cost and successes of each kind. For noisy functions `fun` is a mean of values at `x`, with
        `fun_std_error`. Ctrl-C ends a search with its result so far.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp, numpy as np
        >>> found = iso.minimize(lambda x: jnp.sum((x**2 - 1) ** 2 + 0.1 * x), bounds=[(-2, 2)] * 3, max_evaluations=20_000)
        >>> bool(np.all(found.x < -0.9)), found.num_agreeing
        (True, 2)
    """
    if isinstance(max_evaluations, float) and max_evaluations.is_integer():
        max_evaluations = int(max_evaluations)
    check_integer("max_evaluations", max_evaluations, 1, "Give a budget.")
    if target is None or target == -np.inf:
        target = -np.inf
    else:
        target = check_real("target", target, "Give a value at which to stop, or None.")
    check_integer("num_agreeing", num_agreeing, 2, "Agreement needs two searchers.")
    if patience is not None:
        check_integer("patience", patience, 1, "Give a number of evaluations.")
    check_type("noise", noise, bool, "True or False", "The strength of the noise is estimated.")
    if not isinstance(args, (tuple, list)):
        refuse("args", "a tuple of further arguments", short(args), "Write `args=(value,)` for one.")
    if callback is not None:
        check_function("callback", callback, "lambda result: result.fun < 0.1", 1)
    if not callable(fun):
        refuse("fun", "a function of an array", repr(fun), "Pass a function that returns a number.")
    seed_words(seed)
    space = space_of(x0, bounds, scale)
    is_keyed = _takes_key(fun)
    function: Any = fun
    if args:
        function = (lambda x, key: fun(x, *args, key=key)) if is_keyed else (lambda x: fun(x, *args))
    problem = function, space, target, max_evaluations
    try:
        # No local variable may hold the search, whose programs end below.
        if noise or is_keyed:
            return NoisySearch(NoisyObjective(*problem, seed), seed, num_agreeing, patience, callback).run()
        return Search(Objective(*problem), seed, num_agreeing, patience, callback).run()
    finally:
        if jnp.result_type(float) != np.float64:
            # Programs are in reference cycles.
            gc.collect()


def _takes_key(fun: Callable[..., Any]) -> bool:
    """Whether `fun` has a required parameter `key`."""
    try:
        parameters = inspect.signature(fun).parameters
    except (TypeError, ValueError):
        return False
    return "key" in parameters and parameters["key"].default is inspect.Parameter.empty
