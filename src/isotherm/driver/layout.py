"""How the runs of a program are laid out for the user: repeats, ladders, and the samplers of a sweep.

A program knows R independent runs of P chains, or one without an axis for it. The user sees (run, chain, ...) where repeats were
asked for and (chain, ...) else. Independent ladders of an exchange sampler are runs of the program, and chains for the user, who
sees the replica on the target rung of each.
"""

import dataclasses
from typing import Any

import jax
import numpy as np


@dataclasses.dataclass(frozen=True)
class Layout:
    """Sizes of what is laid out.

    Attributes:
        num_samplers: of a sweep; None for a single sampler.
        num_runs: repeats; None for one without an axis.
        num_ladders: of an exchange sampler; None for samplers without a ladder.
    """

    num_samplers: int | None
    num_runs: int | None
    num_ladders: int | None

    @property
    def total(self) -> int | None:
        """Runs of the program; None for one, without an axis."""
        number = (self.num_samplers or 1) * (self.num_runs or 1) * (self.num_ladders or 1)
        return None if number == 1 else number

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that stand for the runs of the program."""
        return tuple(size for size in (self.num_samplers, self.num_runs, self.num_ladders) if size is not None)

    @property
    def draw_axis(self) -> int:
        """The place of the draws among the axes of a record."""
        return len(self.axes) + (self.num_ladders is None)

    @property
    def run_numbers(self) -> np.ndarray:
        """The number of every run of the program: samplers of a sweep see the same random numbers."""
        number = (self.num_runs or 1) * (self.num_ladders or 1)
        return np.tile(np.arange(number, dtype=np.int32), self.num_samplers or 1)

    def state(self, tree: Any) -> Any:
        """Leaves (R, ...) or (...) of a program as the user sees them."""
        return jax.tree.map(lambda leaf: self._split(np.asarray(leaf)), tree)

    def draws(self, tree: Any, count: int) -> Any:
        """Records (slots, R, Q, ...) or (slots, Q, ...): the first `count`, with the draws after the chains."""

        def move(leaf):
            moved = self._split(np.moveaxis(leaf[:count], 0, 1 + (self.total is not None)))
            if self.num_ladders is None:
                return moved
            place = len(self.axes)
            # One replica of every ladder is recorded.
            return moved.reshape((*moved.shape[:place], *moved.shape[place + 1 :]))

        return jax.tree.map(move, tree)

    def observed(self, tree: Any, count: int) -> Any:
        """Observations (slots, R, ...) or (slots, ...): the first `count`, with the draws where those of positions are."""
        place = (self.total is not None) + (self.num_ladders is None)
        return jax.tree.map(lambda leaf: self._split(np.moveaxis(leaf[:count], 0, place)), tree)

    def _split(self, leaf: np.ndarray) -> np.ndarray:
        return leaf.reshape((*self.axes, *(leaf.shape if self.total is None else leaf.shape[1:])))
