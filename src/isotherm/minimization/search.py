"""Global minimization: independent searchers that jump, descend, explore by AWSGLD, and have to agree.

Functions are traced in double precision, whatever JAX's own is. For as long as a program lives, JAX remembers the type that it gave
to an array of NumPy in it, and would give it again outside of the search, where it is wrong. So programs belong to a search, and
end with it.
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
from isotherm.minimization.noisy import minimize_noisy
from isotherm.minimization.objective import Objective, SearchOver
from isotherm.minimization.result import AGREED, GOES_ON, INTERRUPTED, agreement, result_of
from isotherm.minimization.searcher import Searcher, Tally
from isotherm.minimization.space import Space, space_of

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# Searchers are alike if their values are within this share of the unit of values.
_ALIKE = 1e-6


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

    A searcher descends from a start by L-BFGS-B, and then jumps: by scans of one coordinate, by steps of some or all, by
    differences of minima that it met, to anywhere, and to where a chain of AWSGLD, which explores with flattened energies from
    its minimum, has come to. A descent follows every jump and is given up once it cannot end lower. Kinds of jumps that found
    lower minima get more of the evaluations. A searcher ends when no jump helps any more; the next starts from a random point and
    knows nothing of it.

    Without a `target` the search ends once `num_agreeing` searchers have the same lowest value. That is evidence, not proof, and no
    `success`: a well that is narrow and far from the others is missed by all of them.

    Args:
        fun: from an array to a number. If JAX can differentiate it, a value with its gradient is one evaluation, in double
            precision. If not, as where it is written for NumPy, gradients are differences, and cost an evaluation for every
            coordinate; JAX tries it with tracers first, which is not counted. A function with a parameter named `key`, as
            `fun(x, key)`, is noisy: it is given a new key in every evaluation. Where it is not finite, the search sees a high
            plateau.
        x0: an array: where the first searcher starts. Required without bounds, optional with them.
        bounds: (low, high) pairs, one per coordinate, or `scipy.optimize.Bounds`. All must be finite.
        args: further arguments, given to `fun` after `x`.
        scale: the unit of a search without bounds: starts are normal around `x0` with this standard deviation.
        target: stop once a value is at most this; for a noisy function, once two standard errors above the estimate are. None
            waits for agreement.
        max_evaluations: the budget, in evaluations of `fun`. No search takes more.
        patience: evaluations without improvement after which the search ends; None waits for agreement, target or budget.
        num_agreeing: searchers that have to agree where there is no target.
        noise: whether `fun`, though it takes no key, gives another value every time. It is not compiled.
        callback: called with the best so far, as a result, about every 500 evaluations; True stops the search.
        seed: an integer that fixes all randomness.

    Returns:
        SciPy's result: `x`, `fun` (which is `fun(x)`, in double precision where JAX computes it), `nfev`, `nit` (jumps), `success`,
        `message`; and `num_agreeing` of `num_searchers`, which have the lowest value, `num_descents` and `jumps`, a table of how
        often each kind of jump was made, what it cost, and how often it led lower. `success` is True if the target was reached, and
        in no other case. For noisy functions `fun` is a mean of values at `x`, with `fun_std_error`. Ctrl-C ends a search with what
        it has found.

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
    check_integer("num_agreeing", num_agreeing, 2, "One searcher alone cannot agree.")
    if patience is not None:
        check_integer("patience", patience, 1, "Give a number of evaluations.")
    check_type("noise", noise, bool, "True or False", "How strong the noise is, is found out.")
    if not isinstance(args, (tuple, list)):
        refuse("args", "a tuple of further arguments", short(args), "Write `args=(value,)` for one.")
    if callback is not None:
        check_function("callback", callback, "lambda result: result.fun < 0.1", 1)
    if not callable(fun):
        refuse("fun", "a function of an array", repr(fun), "Pass a function that returns a number.")
    seed_words(seed)
    space = space_of(x0, bounds, scale)
    is_keyed = _takes_key(fun)
    if args:
        fun = _with_arguments(fun, tuple(args), is_keyed)
    try:
        if noise or is_keyed:
            return minimize_noisy(fun, space, target, max_evaluations, patience, num_agreeing, callback, seed)
        return _minimize_exact(fun, space, target, max_evaluations, patience, num_agreeing, callback, seed)
    finally:
        if jnp.result_type(float) != np.float64:
            # Programs refer to themselves in circles.
            gc.collect()


def _minimize_exact(
    fun: Callable[..., Any],
    space: Space,
    target: float,
    budget: int,
    patience: int | None,
    num_agreeing: int,
    callback: Callable[["OptimizeResult"], Any] | None,
    seed: int,
) -> "OptimizeResult":
    objective = Objective(fun, space, target, budget)
    tally, searchers, rng = Tally(), [], np.random.default_rng(seed)

    def agreeing() -> int:
        ends = [searcher.current.value for searcher in searchers if searcher.current is not None]
        return agreement(ends, _ALIKE * objective.unit(min(ends))) if ends else 0

    def so_far(why: str) -> "OptimizeResult":
        return result_of(objective, tally, len(searchers), why, agreeing())

    objective.patience = patience
    objective.callback = None if callback is None else lambda: callback(so_far(GOES_ON))
    try:
        objective.check()
        while True:
            searchers.append(Searcher(objective, rng.spawn(1)[0], tally))
            searchers[-1].run(space.start if len(searchers) == 1 else None)
            if target == -np.inf and agreeing() >= num_agreeing:
                return so_far(AGREED)
    except SearchOver as over:
        return so_far(str(over))
    except KeyboardInterrupt:
        if not np.isfinite(objective.best):
            raise
        return so_far(INTERRUPTED)


def _with_arguments(fun: Callable[..., Any], args: tuple[Any, ...], is_keyed: bool) -> Callable[..., Any]:
    if is_keyed:
        return lambda x, key: fun(x, *args, key=key)
    return lambda x: fun(x, *args)


def _takes_key(fun: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `key` that somebody must give."""
    try:
        parameters = inspect.signature(fun).parameters
    except (TypeError, ValueError):
        return False
    return "key" in parameters and parameters["key"].default is inspect.Parameter.empty
