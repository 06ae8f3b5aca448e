"""The axes of runs for the user, and the way of records from the device to arrays with these axes.

A run of a program is P chains that one coupling joins. The user sees (run, chain, ...) if `num_runs` is given, and (chain, ...)
otherwise. Each ladder of an exchange sampler is a run of the program and a chain for the user: the replica on the target rung.
"""

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from isotherm.engine.program import Program
from isotherm.engine.records import Records

_SMALL_BYTES = 8_000_000


@dataclasses.dataclass(frozen=True)
class Layout:
    """Sizes of the axes of runs; None for an axis that the user does not see."""

    num_samplers: int | None  # Of a sweep.
    num_runs: int | None  # Repeats.
    num_ladders: int | None  # None for samplers without a ladder.

    @property
    def total(self) -> int | None:
        """Runs of the program; None for one, without an axis."""
        number = (self.num_samplers or 1) * (self.num_runs or 1) * (self.num_ladders or 1)
        return None if number == 1 else number

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that replace the axis of the program's runs."""
        return tuple(size for size in (self.num_samplers, self.num_runs, self.num_ladders) if size is not None)

    @property
    def draw_axis(self) -> int:
        """The axis of draws in a record."""
        return len(self.axes) + (self.num_ladders is None)

    @property
    def run_numbers(self) -> np.ndarray:
        """A number for every run of the program. Samplers of a sweep see the same random numbers."""
        number = (self.num_runs or 1) * (self.num_ladders or 1)
        return np.tile(np.arange(number, dtype=np.int32), self.num_samplers or 1)

    def state(self, tree: Any) -> Any:
        """Leaves (R, ...) or (...) of a program, with the user's axes."""
        return jax.tree.map(lambda leaf: self._split(np.asarray(leaf)), tree)

    def draws(self, tree: Any, count: int) -> Any:
        """The first `count` records of leaves (slots, R, Q, ...) or (slots, Q, ...), with draws after chains."""
        if self.num_ladders is not None:
            # A ladder records one replica.
            tree = jax.tree.map(lambda leaf: np.squeeze(leaf, 1 + (self.total is not None)), tree)
        return self.observed(tree, count)

    def observed(self, tree: Any, count: int) -> Any:
        """The first `count` observations of leaves (slots, R, ...) or (slots, ...), with draws on the axis of `draws`."""
        place = (self.total is not None) + (self.num_ladders is None)
        return jax.tree.map(lambda leaf: self._split(np.moveaxis(leaf[:count], 0, place)), tree)

    def _split(self, leaf: np.ndarray) -> np.ndarray:
        return leaf.reshape((*self.axes, *(leaf.shape if self.total is None else leaf.shape[1:])))


def records_to_host(program: Program, records: Records, count: int, layout: Layout) -> dict[str, Any]:
    """The first `count` records with axes (run, chain, draw, ...) or (chain, draw, ...)."""
    records = program.records_to_host(_first(records, count))
    energies = layout.draws(records.energies, count)
    log_weights = np.zeros_like(energies) if records.log_weights is None else layout.draws(records.log_weights, count)
    return {
        "draws": layout.draws(records.draws, count),
        "model_state": layout.draws(records.model_state, count),
        "energies": energies,
        # A draw whose energy is not a number has weight zero.
        "log_weights": np.where(np.isfinite(energies), log_weights, -np.inf),
        "observed": layout.observed(records.observed, count),
    }


def without_diverged(
    kept: dict[str, Any], drawn_at: np.ndarray, diverged_at: np.ndarray, num_ladders: int | None
) -> np.ndarray:
    """Log weights, minus infinity for draws of a chain after it diverged, even if its energy became finite again.

    `diverged_at` has the axes of the chains; draws of a ladder are those of the replica on the target rung.
    """
    log_weights = kept["log_weights"]
    if np.all(diverged_at < 0):
        return log_weights
    since = diverged_at[..., None]
    if num_ladders is not None:
        replica = np.argmin(np.asarray(kept["observed"]["rung"]), axis=-1)
        since = np.take_along_axis(diverged_at, replica, axis=-1)
    return np.where((since >= 0) & (drawn_at >= since), -np.inf, log_weights)


def _first(records: Records, count: int) -> Records:
    """Buffers cut to little more than `count` records, since transfers from an accelerator cost time.

    Sizes are powers of two of at least a few megabytes, since each size is a program of its own.
    """
    if jax.default_backend() == "cpu":
        return records
    leaves = jax.tree.leaves(records)
    bytes_per_record = sum(leaf.nbytes for leaf in leaves) // len(leaves[0])
    size = max(count, _SMALL_BYTES // bytes_per_record, 1)
    return _cut(records, 1 << (size - 1).bit_length())


@functools.partial(jax.jit, static_argnums=1)
def _cut(records: Records, size: int) -> Records:
    return jax.tree.map(lambda leaf: leaf[:size], records)
