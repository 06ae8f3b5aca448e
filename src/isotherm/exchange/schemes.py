"""Which pairs of rungs may swap in an iteration, and how long a window should be."""

import dataclasses
import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse
from isotherm.foundation.parts import Part, Static


class Scheme(Part):
    """Base of the schemes.

    Attributes:
        is_sequential: whether pairs are tried one after another, so that a replica may be in several. Its energy is then used more
            than once, which biases noisy energies unless each pair gets fresh ones.
    """

    is_sequential: bool = False

    def pairs(self, num_rungs: int) -> np.ndarray:
        """Lower and upper rungs of all pairs, shape (num_pairs, 2), in the order in which they are tried."""
        return np.stack([np.arange(num_rungs - 1), np.arange(1, num_rungs)], axis=1)

    def is_active(self, num_rungs: int, iteration: Array, uniform: Array) -> Array:
        """Which of the pairs may swap in an iteration."""
        return jnp.ones(len(self.pairs(num_rungs)), bool)

    def length(self, num_rungs: int) -> int:
        """W, the iterations of a window, in which a pair swaps at most once."""
        return 1

    def opens_gates(self, num_rungs: int, iteration: Array) -> Array:
        """Whether a new window begins."""
        return jnp.ones((), bool)

    def is_forced(self, num_rungs: int, iteration: Array) -> Array:
        """Whether the allowed pairs must swap now."""
        return jnp.zeros((), bool)


@dataclasses.dataclass(frozen=True, eq=False)
class Adjacent(Scheme):
    """All adjacent pairs, from the target up, one after another (ADJ)."""

    is_sequential = True


@dataclasses.dataclass(frozen=True, eq=False)
class AllPairs(Scheme):
    """All pairs, one after another (APE)."""

    is_sequential = True

    def pairs(self, num_rungs: int) -> np.ndarray:
        return np.array([(low, high) for low in range(num_rungs) for high in range(low + 1, num_rungs)])


@dataclasses.dataclass(frozen=True, eq=False)
class StochasticEvenOdd(Scheme):
    """Even or odd pairs, by a coin toss in every iteration (SEO). Reversible: replicas diffuse."""

    def is_active(self, num_rungs: int, iteration: Array, uniform: Array) -> Array:
        return jnp.arange(num_rungs - 1) % 2 == (uniform < 0.5).astype(jnp.int32)


@dataclasses.dataclass(frozen=True, eq=False)
class DeterministicEvenOdd(Scheme):
    """Even and odd pairs in turn, each for a window of W iterations in which a pair swaps at most once (DEO_W).

    Every pair has a gate. All gates open when k mod W = 0; an accepted swap closes the gate of its pair until then. W = 1 is
    the usual DEO. With rejection r, a window fails with r^W; `optimal_window` gives the best W.

    With the Metropolis rule and W above 1 the gate biases: with frozen positions the probability of a swap in a window is
    1 - (1 - a)^W, whose ratio forwards and backwards is right only when a W is far below 1. `Corrected.gate_log_correction` removes
    a part of this bias.

    Attributes:
        window: W; "optimal" minimizes the expected round trip at the rejection rate, "formula" is the thesis' approximation.
        rejection: the rejection rate for "optimal" and "formula".
        is_exact: whether every active pair swaps exactly once in a window, at its last iteration if not before: the thesis' variant
            for optimization, which follows no distribution.

    Reference:
        Deng 2021, Algorithm of section 3.3, and the remark on exact swaps in its supplement.

    Differs from the thesis: its printed gate, 1{k mod W = 0} in every iteration, would allow one attempt per window.
    """

    window: Static[int | str] = 1
    rejection: Static[float | None] = None
    is_exact: Static[bool] = False

    def __post_init__(self):
        if not isinstance(self.window, str):
            check_integer("window", self.window, 1, "Give the number of iterations in a window.")
        elif self.window not in ("optimal", "formula"):
            refuse("window", 'an integer, "optimal" or "formula"', repr(self.window), "Choose one of them.")
        elif self.rejection is None:
            remedy = "Give 1 - the acceptance rate you expect."
            refuse("rejection", f"given with window={self.window!r}", "None", remedy)

    def length(self, num_rungs: int) -> int:
        if isinstance(self.window, int):
            return self.window
        return optimal_window(num_rungs, self.rejection or 0.0, "exact" if self.window == "optimal" else "formula")

    def is_active(self, num_rungs: int, iteration: Array, uniform: Array) -> Array:
        parity = (iteration // self.length(num_rungs)) % 2
        return jnp.arange(num_rungs - 1) % 2 == parity

    def opens_gates(self, num_rungs: int, iteration: Array) -> Array:
        return iteration % self.length(num_rungs) == 0

    def is_forced(self, num_rungs: int, iteration: Array) -> Array:
        return self.is_exact & ((iteration + 1) % self.length(num_rungs) == 0)


def expected_round_trip(
    num_rungs: int, rejection: float | Sequence[float], window: int = 1, scheme: str = "deo"
) -> float:
    """Expected iterations of a round trip of one replica when attempts are rejected independently.

    Deterministic even-odd with window W: 2 W P (1 + sum over pairs of r^W / (1 - r^W)). Stochastic even-odd: 2 P times the sum
    of 1 / (1 - r).

    Args:
        num_rungs: P.
        rejection: the probability that an attempt is rejected, one for all pairs or one for each of the P - 1.
        window: W.
        scheme: "deo" or "seo".

    Example:
        >>> round(expected_round_trip(16, 0.6, window=8), 1)
        321.6

    Reference:
        Deng 2021, Lemma of section 3.3; Syed et al. 2022 for SEO.

    Differs from the thesis: pairs may differ.
    """
    rejections = _checked_rejections(num_rungs, rejection)
    check_integer("window", window, 1, "Give the number of iterations in a window.")
    if check_choice("scheme", scheme, ("deo", "seo")) == "seo":
        return float(2 * num_rungs * np.sum(1 / (1 - rejections)))
    failed = rejections**window
    return float(2 * window * num_rungs * (1 + np.sum(failed / (1 - failed))))


def optimal_window(num_rungs: int, rejection: float | Sequence[float], rule: str = "exact") -> int:
    """The window with the shortest round trip.

    Args:
        num_rungs: P.
        rejection: as in `expected_round_trip`.
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
    rejections = _checked_rejections(num_rungs, rejection)
    highest = float(rejections.max())
    if num_rungs <= 3 or highest == 0.0:
        return 1
    formula = math.ceil((math.log(num_rungs) + math.log(math.log(num_rungs))) / -math.log(highest))
    if rule == "formula":
        return formula
    windows = np.arange(1, 2 * formula + 2)
    return int(windows[np.argmin([expected_round_trip(num_rungs, tuple(rejections), int(w)) for w in windows])])


def _checked_rejections(num_rungs: int, rejection: float | Sequence[float]) -> np.ndarray:
    """Rejection probabilities of the P - 1 pairs."""
    check_integer("num_rungs", num_rungs, 2, "Give the number of replicas.")
    rejections = np.asarray(rejection, float)
    rejections = np.full(num_rungs - 1, rejections) if rejections.ndim == 0 else rejections
    if rejections.shape != (num_rungs - 1,):
        refuse("rejection", f"one number, or one for each of {num_rungs - 1} pairs", repr(rejection), "Give either.")
    for value in rejections:
        check_real("rejection", float(value), "Give a probability.", minimum=0.0, below=1.0)
    return rejections
