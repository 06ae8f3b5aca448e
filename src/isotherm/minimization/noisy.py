"""Global minimization of noisy functions."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from isotherm.minimization.noisy_objective import NoisyObjective
from isotherm.minimization.noisy_search import Candidate, NoisySearcher
from isotherm.minimization.objective import REACHED, SearchOver
from isotherm.minimization.result import AGREED, GOES_ON, INTERRUPTED, counts, verdict
from isotherm.minimization.searcher import Tally
from isotherm.minimization.space import Space

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# The share of the budget that is kept to refine the best point and to tell its value.
_KEPT = 0.2
# Values from which the result is told, at most.
_MAX_VALUES = 1_000
# Estimates agree, within this many standard errors.
_ERRORS = 2.0


def minimize_noisy(
    fun: Callable[..., Any],
    space: Space,
    target: float,
    budget: int,
    patience: int | None,
    num_agreeing: int,
    callback: Callable[["OptimizeResult"], Any] | None,
    seed: int,
) -> "OptimizeResult":
    """`minimize` for a function of a position and a key, or one that is random by itself."""
    has_key = "key" in inspect.signature(fun).parameters
    objective = NoisyObjective(fun, space, target, budget, np.random.default_rng([seed, 1]), has_key)
    objective.patience = patience
    search = _NoisySearch(objective, np.random.default_rng(seed), num_agreeing)
    objective.callback = None if callback is None else lambda: callback(search.result(GOES_ON))
    return search.run()


class _NoisySearch:
    """Searchers one after another, and then a closer look at the best of what they found."""

    def __init__(self, objective: NoisyObjective, rng: np.random.Generator, num_agreeing: int):
        self.objective, self.rng, self.tally, self.num_agreeing = objective, rng, Tally(), num_agreeing
        self.searchers: list[NoisySearcher] = []
        self.final: Candidate | None = None
        # How many agreed when the search ended: a long descent from one of their points makes it lower than the others.
        self.num_alike: int | None = None

    def run(self) -> "OptimizeResult":
        """The whole search."""
        objective, budget = self.objective, self.objective.budget
        objective.budget = max(1, int((1 - _KEPT) * budget))
        why = AGREED
        try:
            while not self._agrees():
                self.searchers.append(NoisySearcher(objective, self.rng.spawn(1)[0], self.tally))
                self.searchers[-1].run(objective.space.start if len(self.searchers) == 1 else None)
        except SearchOver as over:
            why = str(over)
        except KeyboardInterrupt:
            if all(searcher.current is None for searcher in self.searchers):
                raise
            return self.result(INTERRUPTED)
        objective.budget, objective.patience, objective.callback = budget, None, None
        self.num_alike = self._num_agreeing()
        self._look_closer(why == REACHED)
        return self.result(why)

    def result(self, why: str) -> "OptimizeResult":
        """What is known so far."""
        from scipy.optimize import OptimizeResult

        best, objective = self.final or self._best(), self.objective
        has_target = objective.target > -np.inf
        if why == REACHED and best.mean > objective.target:
            why = "The target seemed to be reached, but more values do not confirm it."
        number = self._num_agreeing() if self.num_alike is None else self.num_alike
        success, message = verdict(why, has_target, number, len(self.searchers))
        return OptimizeResult(
            x=objective.space.point(best.z),
            fun=best.mean,
            fun_std_error=best.error,
            nfev=objective.num_evaluations,
            success=success,
            message=message,
            num_agreeing=number,
            **counts(self.tally, len(self.searchers)),
        )

    def _look_closer(self, is_reached: bool) -> None:
        """Spend what was kept: on long descents from the best point, and on its value, which is told from new values alone."""
        objective, best = self.objective, self._best()
        half = objective.left // 2
        while not is_reached and objective.left > half + _MAX_VALUES:
            try:
                best = self.searchers[-1].refine(best, objective.left - half)
            except SearchOver:
                break
        number = min(objective.left + 1, _MAX_VALUES)
        objective.budget += 1  # No evaluation has to be kept any more.
        if number > 1 or not np.isfinite(best.mean):
            best = Candidate(best.z, objective.values(best.z, number))
        self.final = best

    def _best(self) -> Candidate:
        """The lowest, with a bonus for being known well."""
        found = [searcher.current for searcher in self.searchers if searcher.current is not None]
        if not found:
            return Candidate(self.objective.best_z, np.full(1, np.nan))
        return min(found, key=lambda one: one.mean + one.error)

    def _num_agreeing(self) -> int:
        found = [searcher.current for searcher in self.searchers if searcher.current is not None]
        best = self._best()
        return sum(bool(one.mean - best.mean <= _ERRORS * np.hypot(one.error, best.error)) for one in found)

    def _agrees(self) -> bool:
        return self.objective.target == -np.inf and self._num_agreeing() >= self.num_agreeing
