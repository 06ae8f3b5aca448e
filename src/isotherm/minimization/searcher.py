"""Independent searchers, and a search that ends when enough of them agree."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from isotherm.foundation.errors import refuse
from isotherm.minimization.descent import descend
from isotherm.minimization.jumps import FAR, Jumps, Tally
from isotherm.minimization.objective import REACHED, SPENT, Objective, SearchOver

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# Random points of which the best is the start, and how many are tried until enough are finite.
_NUM_STARTS, _MAX_STARTS = 2, 200
# Smallest improvement, and tolerance within which values agree, in the unit of values.
_LOWER, _ALIKE = 1e-9, 1e-6
RUNNING, INTERRUPTED, AGREED = "The search is running.", "The search was interrupted.", "Enough searchers agree."


class Searcher:
    """A chain of descending minima from its own start.

    Attributes:
        current: its lowest minimum, or None before the end of its first descent.
        stall: jumps in a row without success after which it ends: this many, and more per coordinate.
    """

    stall: tuple[int, int] = (60, 30)

    def __init__(self, objective: Objective, rng: np.random.Generator, tally: Tally):
        self.objective, self.rng, self.tally = objective, rng, tally
        self.jumps = Jumps(objective, rng, tally)
        self.current: Any = None

    def run(self, given: np.ndarray | None) -> None:
        """Search until no jump helps."""
        current = self.begin(given)
        num_failures = 0
        while num_failures < self.stall[0] + self.stall[1] * current.z.size:
            after = self.attempt(self.jumps.choose(), current)
            num_failures = 0 if after.z is not current.z else num_failures + 1
            # A jump that helped is repeated.
            while after.z is not current.z:
                move, current = after.z - current.z, self.keep(after)
                after = self.descend(self.objective.space.inside(current.z + move), current)
            self.current = current = after

    def begin(self, given: np.ndarray | None) -> Any:
        """The first minimum, from the given start or a random one."""
        start, known = self._start(given)
        self.tally.num_descents += 1
        current = descend(self.objective, start, known=known)
        self.jumps.remember(current.z)
        return self.keep(current)

    def keep(self, current: Any) -> Any:
        """Make a minimum the current one."""
        self.current = current
        return current

    def attempt(self, kind: str, current: Any) -> Any:
        """The minimum after one jump: `current` if that is not higher."""
        before = self.objective.num_evaluations
        start, expected = self.jumps.start(kind, current)
        after = current if expected >= current.value else self.descend(start, current, kind in FAR)
        self.jumps.learn(kind, self.objective.num_evaluations - before, after is not current)
        return after

    def descend(self, start: np.ndarray, current: Any, is_far: bool = False) -> Any:
        """The minimum below a jump, or `current` if that is not higher."""
        if np.linalg.norm(start - current.z) == 0.0:
            return current
        self.tally.num_descents += 1
        after = descend(self.objective, start, current, is_far)
        self.jumps.remember(after.z)
        return after if after.value < current.value - _LOWER * self.objective.unit(current.value) else current

    def _start(self, given: np.ndarray | None) -> tuple[np.ndarray, tuple[float, np.ndarray]]:
        """A finite start with value and gradient: the given one, or the best of some random points."""
        found = []
        for number in range(_MAX_STARTS):
            z = given if number == 0 and given is not None else self.objective.space.draw(self.rng)
            value, gradient = self.objective.value_and_gradient(z)
            if np.isfinite(value):
                found.append((value, z, gradient))
                if z is given or len(found) == _NUM_STARTS:
                    break
        if not found:
            refuse("fun", "finite somewhere", f"not finite at {_MAX_STARTS} starts", "Give other bounds, or `x0`.")
        value, z, gradient = min(found, key=lambda one: one[0])
        return z, (value, gradient)


class Search:
    """Searchers one after another."""

    searcher: Any = Searcher

    def __init__(
        self,
        objective: Objective,
        seed: int,
        num_agreeing: int,
        patience: int | None,
        callback: Callable[["OptimizeResult"], Any] | None,
    ):
        self.objective, self.rng, self.num_agreeing = objective, np.random.default_rng(seed), num_agreeing
        self.tally, self.searchers = Tally(), []
        objective.patience = patience
        objective.callback = None if callback is None else lambda: callback(self.result(RUNNING))

    def run(self) -> "OptimizeResult":
        """The whole search."""
        return self.result(self.search())

    def search(self) -> str:
        """Run searchers until enough agree; returns why the search ended."""
        try:
            self.objective.check()
            while self.objective.target > -np.inf or self.num_alike() < self.num_agreeing:
                self.searchers.append(self.searcher(self.objective, self.rng.spawn(1)[0], self.tally))
                self.searchers[-1].run(self.objective.space.start if len(self.searchers) == 1 else None)
        except SearchOver as over:
            return str(over)
        except KeyboardInterrupt:
            if not np.isfinite(self.objective.best) and not self.minima():
                raise
            return INTERRUPTED
        return AGREED

    def minima(self) -> list[Any]:
        """The lowest minimum of every searcher that has one."""
        return [searcher.current for searcher in self.searchers if searcher.current is not None]

    def num_alike(self) -> int:
        """Number of searchers with the lowest value."""
        values = [minimum.value for minimum in self.minima()]
        return agreement(values, _ALIKE * self.objective.unit(min(values))) if values else 0

    def result(self, why: str) -> "OptimizeResult":
        """The best point so far. At the end its value is the function's own."""
        number = self.num_alike()
        value = self.objective.best if why == RUNNING else self.objective.finish()
        return self.report(why, self.objective.best_z, number, fun=value)

    def report(self, why: str, z: np.ndarray, num_agreeing: int, **values: float) -> "OptimizeResult":
        """SciPy's result, with counts."""
        from scipy.optimize import OptimizeResult

        number, jumps = len(self.searchers), {kind: dict(row) for kind, row in self.tally.jumps.items()}
        success, message = verdict(why, self.objective.target > -np.inf, num_agreeing, number)
        return OptimizeResult(
            x=self.objective.space.point(z),
            **values,
            nfev=self.objective.num_evaluations,
            success=success,
            message=message,
            num_agreeing=num_agreeing,
            nit=sum(row["number"] for row in jumps.values()),
            num_searchers=number,
            num_descents=self.tally.num_descents,
            jumps=jumps,
        )


def agreement(values: Any, tolerance: Any) -> int:
    """Number of values within `tolerance` of the lowest.

    Example:
        >>> agreement([3.0, 1.0, 1.0 + 1e-9], 1e-6)
        2
    """
    values = np.asarray(values, float)
    return int(np.sum(values - values.min() <= tolerance))


def verdict(why: str, has_target: bool, num_agreeing: int, num_searchers: int) -> tuple[bool, str]:
    """Success, which only a target can establish, and the message of a result."""
    if why == REACHED:
        return True, why
    advice = " Raise `max_evaluations`." if why == SPENT else ""
    if has_target:
        return False, f"{why} The target was not reached.{advice}"
    if why == AGREED:
        # The share with (1 - share)^n = 0.05 for n independent searchers.
        share = 1.0 - 0.05 ** (1.0 / num_searchers)
        return False, (
            f"{num_agreeing} searchers with independent starts found the same lowest value. That is evidence, not proof: "
            f"{num_searchers} searchers miss a minimum that {100 * share:.2g} % of them reach in one search of 20. Pass the value "
            "that you need as `target`."
        )
    if num_searchers < 2:
        return False, f"{why} There was only one searcher, so its lowest value is not confirmed.{advice}"
    if num_agreeing < 2:
        return False, f"{why} No two searchers with independent starts found the same lowest value.{advice}"
    return False, f"{why} {num_agreeing} of {num_searchers} searchers found the same lowest value.{advice}"
