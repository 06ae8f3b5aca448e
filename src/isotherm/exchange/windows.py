"""How long a window should be, and how long a round trip takes."""

import math
from collections.abc import Sequence

import numpy as np

from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse


def expected_round_trip(
    num_rungs: int, rejection: float | Sequence[float], window: int = 1, scheme: str = "deo"
) -> float:
    """Expected iterations of a round trip of one replica when attempts are rejected independently.

    Deterministic even-odd with window W: 2 W P (1 + sum over pairs of r^W / (1 - r^W)). Stochastic even-odd: 2 P times the sum
    of 1 / (1 - r).

    Args:
        num_rungs: P.
        rejection: the probability that an attempt is rejected, of all pairs or of each of the P - 1.
        window: W.
        scheme: "deo" or "seo".

    Example:
        >>> round(expected_round_trip(16, 0.6, window=8), 1)
        321.6

    Reference:
        Deng 2021, Lemma of section 3.3; Syed et al. 2022 for SEO.

    Differs from the thesis: pairs may differ.
    """
    rejections = _of_pairs(num_rungs, rejection)
    check_integer("window", window, 1, "Give the number of iterations in a window.")
    if check_choice("scheme", scheme, ("deo", "seo")) == "seo":
        return float(2 * num_rungs * np.sum(1 / (1 - rejections)))
    failed = rejections**window
    return float(2 * window * num_rungs * (1 + np.sum(failed / (1 - failed))))


def optimal_window(num_rungs: int, rejection: float | Sequence[float], rule: str = "exact") -> int:
    """The window with the shortest round trip.

    Args:
        num_rungs: P.
        rejection: the probability that an attempt is rejected, of all pairs or of each of the P - 1.
        rule: "exact" is the integer that minimizes `expected_round_trip`; "formula" the thesis' approximation
            ceil((ln P + ln ln P) / -ln r), which is up to twice too long for few rungs. For P = 2 and 3 both give 1.

    Example:
        >>> optimal_window(16, 0.6), optimal_window(16, 0.6, "formula")
        (7, 8)

    Reference:
        Deng 2021, Theorem on the optimal window of section 3.3.

    Differs from the thesis: the exact minimum is the default, and P = 2, 3 give 1.
    """
    check_choice("rule", rule, ("exact", "formula"))
    rejections = _of_pairs(num_rungs, rejection)
    highest = float(rejections.max())
    if num_rungs <= 3 or highest == 0.0:
        return 1
    formula = math.ceil((math.log(num_rungs) + math.log(math.log(num_rungs))) / -math.log(highest))
    if rule == "formula":
        return formula
    windows = np.arange(1, 2 * formula + 2)
    return int(windows[np.argmin([expected_round_trip(num_rungs, tuple(rejections), int(w)) for w in windows])])


def _of_pairs(num_rungs: int, rejection: float | Sequence[float]) -> np.ndarray:
    """Rejections of the P - 1 pairs."""
    check_integer("num_rungs", num_rungs, 2, "Give the number of replicas.")
    given = np.asarray(rejection, float)
    given = np.full(num_rungs - 1, given) if given.ndim == 0 else given
    if given.shape != (num_rungs - 1,):
        refuse("rejection", f"one number, or one for each of {num_rungs - 1} pairs", repr(rejection), "Give either.")
    for value in given:
        check_real("rejection", float(value), "Give a probability.", minimum=0.0, below=1.0)
    return given
