"""How long a window should be, and how long a round trip takes."""

import math

import numpy as np

from isotherm.errors import check_choice, check_integer, check_real


def expected_round_trip(num_rungs: int, rejection: float, window: int = 1, scheme: str = "deo") -> float:
    """Expected iterations of a round trip of one replica when every attempt is rejected with probability r.

    Deterministic even-odd with window W: 2 W P (1 + (P - 1) r^W / (1 - r^W)). Stochastic even-odd: 2 P (P - 1) / (1 - r).

    Example:
        >>> round(expected_round_trip(16, 0.6, window=8), 1)
        321.6

    Reference:
        Deng 2021, Lemma of section 3.3; Syed et al. 2022 for SEO.

    Differs from the thesis: Nothing.
    """
    check_integer("num_rungs", num_rungs, 2, "Give the number of replicas.")
    check_real("rejection", rejection, "Give a probability.", minimum=0.0, below=1.0)
    check_integer("window", window, 1, "Give the number of iterations in a window.")
    if check_choice("scheme", scheme, ("deo", "seo")) == "seo":
        return 2 * num_rungs * (num_rungs - 1) / (1 - rejection)
    failed = rejection**window
    return 2 * window * num_rungs * (1 + (num_rungs - 1) * failed / (1 - failed))


def optimal_window(num_rungs: int, rejection: float, rule: str = "exact") -> int:
    """The window with the shortest round trip.

    Args:
        num_rungs: P.
        rejection: the probability that an attempt is rejected.
        rule: "exact" is the integer that minimises `expected_round_trip`; "formula" the thesis' approximation
            ceil((ln P + ln ln P) / -ln r), which is up to twice too long for few rungs. For P = 2 and 3 both give 1.

    Example:
        >>> optimal_window(16, 0.6), optimal_window(16, 0.6, "formula")
        (7, 8)

    Reference:
        Deng 2021, Theorem on the optimal window of section 3.3.

    Differs from the thesis: the exact minimum is the default, and P = 2, 3 give 1.
    """
    check_choice("rule", rule, ("exact", "formula"))
    check_real("rejection", rejection, "Give a probability.", minimum=0.0, below=1.0)
    if check_integer("num_rungs", num_rungs, 2, "Give the number of replicas.") <= 3 or rejection == 0.0:
        return 1
    formula = math.ceil((math.log(num_rungs) + math.log(math.log(num_rungs))) / -math.log(rejection))
    if rule == "formula":
        return formula
    windows = np.arange(1, 2 * formula + 2)
    return int(windows[np.argmin([expected_round_trip(num_rungs, rejection, int(w)) for w in windows])])
