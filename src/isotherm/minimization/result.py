"""What a search says: the best point, and whether there is reason to trust it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from isotherm.minimization.objective import REACHED, SPENT, Objective
from isotherm.minimization.searcher import Tally

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

GOES_ON, INTERRUPTED, AGREED = "The search goes on.", "The search was interrupted.", "Enough searchers agree."


def agreement(values: Any, tolerance: Any) -> int:
    """How many searchers have the lowest value, or one within the tolerance of it.

    Example:
        >>> agreement([3.0, 1.0, 1.0 + 1e-9], 1e-6)
        2
    """
    values = np.asarray(values, float)
    return int(np.sum(values - values.min() <= tolerance)) if values.size else 0


def verdict(why: str, has_target: bool, num_agreeing: int, num_searchers: int) -> tuple[bool, str]:
    """Whether a search succeeded, which a target alone can tell, and what to say about it."""
    if why == REACHED:
        return True, why
    advice = " Raise `max_evaluations`." if why == SPENT else ""
    if has_target:
        return False, f"{why} The target was not reached.{advice}"
    if why == AGREED:
        # (1 - share)^n = 0.05 for n searchers, each of which reaches it or not.
        share = 1.0 - 0.05 ** (1.0 / num_searchers)
        return False, (
            f"{num_agreeing} searchers with independent starts found the same lowest value. That is evidence, not proof: "
            f"{num_searchers} searchers miss a minimum that {100 * share:.2g} % of them reach in one search of 20. Pass the value "
            "that you need as `target`."
        )
    if num_searchers < 2:
        return False, f"{why} There was only one searcher, and nobody to confirm its lowest value.{advice}"
    if num_agreeing < 2:
        return False, f"{why} No two searchers with independent starts found the same lowest value.{advice}"
    return False, f"{why} {num_agreeing} of {num_searchers} searchers found the same lowest value.{advice}"


def result_of(objective: Objective, tally: Tally, num_searchers: int, why: str, num_agreeing: int) -> "OptimizeResult":
    """The result of a search without noise, whose value, at the end, is the function's own at its point."""
    from scipy.optimize import OptimizeResult

    is_going_on = why == GOES_ON
    success, message = verdict(why, objective.target > -np.inf, num_agreeing, num_searchers)
    value = objective.best if is_going_on else objective.finish()
    return OptimizeResult(
        x=objective.space.point(objective.best_z),
        fun=value,
        nfev=objective.num_evaluations,
        success=success,
        message=message,
        num_agreeing=num_agreeing,
        **counts(tally, num_searchers),
    )


def counts(tally: Tally, num_searchers: int) -> dict[str, Any]:
    """What a search did."""
    table = {
        kind: {"number": tally.jumps[kind], "evaluations": tally.evaluations[kind], "better": tally.improvements[kind]}
        for kind in tally.jumps
    }
    return {
        "nit": sum(tally.jumps.values()),
        "num_searchers": num_searchers,
        "num_descents": tally.num_descents,
        "jumps": table,
    }
