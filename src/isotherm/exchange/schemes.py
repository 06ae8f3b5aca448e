"""Which pairs of rungs may swap in an iteration."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.exchange.windows import optimal_window
from isotherm.foundation.errors import check_integer, refuse
from isotherm.foundation.parts import Part, Static


class Scheme(Part):
    """Base of the schemes.

    Attributes:
        is_sequential: whether pairs are tried one after another, so that a replica may take part in several. Its energy is then
            used more than once, which is wrong for noisy energies unless each pair gets fresh ones.
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
        """Whether pairs that are allowed to swap must do so now."""
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
    """Even or odd pairs by the toss of a coin in every iteration (SEO). Reversible: replicas diffuse."""

    def is_active(self, num_rungs: int, iteration: Array, uniform: Array) -> Array:
        return jnp.arange(num_rungs - 1) % 2 == (uniform < 0.5).astype(jnp.int32)


@dataclasses.dataclass(frozen=True, eq=False)
class DeterministicEvenOdd(Scheme):
    """Even and odd pairs in turn, each for a window of W iterations in which a pair swaps at most once (DEO_W).

    Every pair has a gate. All gates open when k mod W = 0; an accepted swap closes the pair's own gate until then. W = 1 is
    the usual DEO. With rejection r, a window fails with r^W, and W should be that of `optimal_window`.

    With the Metropolis rule and W above 1 the gate biases: with frozen positions the probability of a swap in a window is
    1 - (1 - a)^W, whose ratio forwards and backwards is right only when a W is far below 1. `gate_log_correction` of the rule
    makes up for a part.

    Attributes:
        window: W; "optimal" is the exact minimum of the expected round trip for the rejection rate, "formula" the thesis'.
        rejection: the rejection rate that "optimal" and "formula" are for.
        is_exact: whether a window makes exactly one swap of every active pair, at its last iteration if no earlier one was
            accepted: the thesis' variant for optimization, which follows no distribution.

    Reference:
        Deng 2021, Algorithm of section 3.3, and the remark on exact swaps in its supplement.

    Differs from the thesis: its printed gate, 1{k mod W = 0} in every iteration, would allow one attempt per window.
    """

    window: Static[int | str] = 1
    rejection: Static[float | None] = None
    is_exact: Static[bool] = False

    def __post_init__(self):
        if isinstance(self.window, str):
            if self.window not in ("optimal", "formula"):
                refuse("window", 'an integer, "optimal" or "formula"', repr(self.window), "Choose one of them.")
            if self.rejection is None:
                refuse(
                    "rejection",
                    f"given with window={self.window!r}",
                    "None",
                    "Give 1 - the acceptance rate you expect.",
                )
        else:
            check_integer("window", self.window, 1, "Give the number of iterations in a window.")

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
