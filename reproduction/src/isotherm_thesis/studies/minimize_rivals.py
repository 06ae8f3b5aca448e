"""SciPy's global optimizers, with every evaluation counted and stopped once they are done."""

import signal
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from isotherm_thesis.studies.minimize_problems import Problem

# Seconds after which shgo is ended: its triangulations take ever longer between evaluations.
_MAX_SECONDS = 10
RIVALS = ("dual_annealing", "basinhopping", "differential_evolution", "shgo")


class Spent(Exception):  # noqa: N818
    """Ends a search of SciPy's."""


class Counter:
    """A problem as SciPy sees it: the value, or the value and the gradient, in double precision, counted.

    Attributes:
        num_evaluations: so far; a value with its gradient counts 1.
        num_gradients: how many of them came with a gradient.
        hits: for every accuracy the number of evaluations at the first value of at most that, and how many had gradients.
        noise: standard deviations of values and of gradients, or None.
    """

    def __init__(self, problem: Problem, accuracies: tuple[float, ...], budget: int, noise: Any = None, seed: int = 0):
        self.problem, self.accuracies, self.budget, self.noise = problem, accuracies, budget, noise
        self.num_evaluations = self.num_gradients = 0
        self.hits: dict[float, tuple[int, int]] = {}
        self.rng = np.random.default_rng([seed, 77])
        self.best, self.best_x = np.inf, None
        self._value = jax.jit(problem.function)
        self._both = jax.jit(lambda x: jnp.concatenate([problem.function(x)[None], jax.grad(problem.function)(x)]))

    def value(self, x: np.ndarray) -> float:
        """The value alone."""
        return self._seen(x, float(self._value(np.asarray(x, float))))

    def both(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The value with its gradient."""
        packed = np.array(self._both(np.asarray(x, float)))
        self.num_gradients += 1
        value, gradient = self._seen(x, float(packed[0])), packed[1:]
        if self.noise is not None:
            gradient = gradient + self.noise[1] * self.rng.normal(size=gradient.shape)
        return value, gradient

    def _seen(self, x: np.ndarray, value: float) -> float:
        self.num_evaluations += 1
        for accuracy in self.accuracies:
            if value <= accuracy and accuracy not in self.hits:
                self.hits[accuracy] = (self.num_evaluations, self.num_gradients)
        if self.noise is not None:
            value += self.noise[0] * self.rng.normal()
        elif len(self.hits) == len(self.accuracies):
            raise Spent
        if value < self.best:
            self.best, self.best_x = value, np.array(x)
        if self.num_evaluations >= self.budget:
            raise Spent
        return value


def run_rival(name: str, counter: Counter, seed: int) -> np.ndarray | None:
    """One search; the point that it returns, or, where the budget ended it, the one with the lowest value it met."""
    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter("ignore")
        previous = signal.signal(signal.SIGALRM, _give_up)
        signal.alarm(_MAX_SECONDS if name == "shgo" else 0)
        try:
            return np.asarray(_SEARCHES[name](counter, seed).x)
        except Spent:
            return counter.best_x
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, previous)


def _give_up(*_: Any) -> None:
    raise Spent


def _split(counter: Counter) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Value and gradient as two functions, for searches that want them so: a gradient where the value was just taken is free."""
    last: dict[str, Any] = {}

    def value(x):
        last["x"] = np.array(x)
        last["value"], last["gradient"] = counter.both(x)
        return last["value"]

    def gradient(x):
        if "x" not in last or not np.array_equal(x, last["x"]):
            value(x)
        return last["gradient"]

    return value, gradient


def _dual_annealing(counter: Counter, seed: int) -> Any:
    # Its chain needs values alone; its local searches, L-BFGS-B, take gradients.
    def gradient(x):
        counter.num_evaluations -= 1  # The value at this point was counted when it was taken.
        return counter.both(x)[1]

    kwargs = {"method": "L-BFGS-B", "jac": gradient, "bounds": counter.problem.bounds}
    most = 10 * counter.budget
    return optimize.dual_annealing(
        counter.value, counter.problem.bounds, maxiter=most, maxfun=most, minimizer_kwargs=kwargs, rng=seed
    )


def _basinhopping(counter: Counter, seed: int) -> Any:
    low, high = np.array(counter.problem.bounds).T
    start = np.random.default_rng([seed, 78]).uniform(low, high)
    kwargs = {"method": "L-BFGS-B", "jac": True, "bounds": counter.problem.bounds}
    # Its steps are a tenth of the width: its default, 0.5, does not know the box.
    return optimize.basinhopping(
        counter.both,
        start,
        niter=counter.budget,
        stepsize=0.1 * float(np.mean(high - low)),
        minimizer_kwargs=kwargs,
        rng=seed,
    )


def _differential_evolution(counter: Counter, seed: int) -> Any:
    return optimize.differential_evolution(
        counter.value, counter.problem.bounds, maxiter=counter.budget, tol=0.0, polish=False, rng=seed
    )


def _shgo(counter: Counter, _: int) -> Any:
    value, gradient = _split(counter)
    kwargs = {"method": "L-BFGS-B", "jac": gradient, "bounds": counter.problem.bounds}
    # The Sobol points are the same for every seed; what differs is where the minimum is.
    return optimize.shgo(
        value,
        counter.problem.bounds,
        n=128,
        iters=100,
        sampling_method="sobol",
        minimizer_kwargs=kwargs,
        options={"maxfev": counter.budget, "jac": gradient},
    )


_SEARCHES = {
    "dual_annealing": _dual_annealing,
    "basinhopping": _basinhopping,
    "differential_evolution": _differential_evolution,
    "shgo": _shgo,
}
