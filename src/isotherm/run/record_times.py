"""The iterations at which draws are recorded, by arithmetic."""

import dataclasses
import math
from typing import Any, Self

import numpy as np

from isotherm.foundation.schedules import CollectionWindow


@dataclasses.dataclass(frozen=True)
class RecordTimes:
    """The iterations burn_in, burn_in + thinning, ... below num_steps that lie in a window. It has a length and can be indexed.

    Example:
        >>> times = RecordTimes(100, 10, 30, None)
        >>> len(times), times[1], times[1:].tolist()
        (3, 40, [40, 70])
    """

    num_steps: int
    burn_in: int  # The first candidate.
    thinning: int  # Iterations between candidates.
    window: CollectionWindow | None  # The part of every cycle that is recorded; None for all.

    def __len__(self) -> int:
        whole, rest = divmod(self._num_candidates, self._period)
        return whole * len(self._chosen) + int(np.searchsorted(self._chosen, rest))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            numbers = np.arange(*index.indices(len(self)))
        else:
            numbers = np.flatnonzero(index) if np.asarray(index).dtype == bool else np.asarray(index)
            numbers = np.where(numbers < 0, numbers + len(self), numbers)
            if np.any((numbers < 0) | (numbers >= len(self))):
                raise IndexError(f"There are {len(self)} draws; got {index}.")
        whole, rest = np.divmod(numbers, max(len(self._chosen), 1))
        found = self.burn_in + self.thinning * (whole * self._period + self._chosen[rest])
        return found if np.ndim(found) else int(found)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """From `dataclasses.asdict` of the times."""
        window = stored["window"]
        return cls(**{**stored, "window": None if window is None else CollectionWindow(**window)})

    @property
    def rule(self) -> tuple[int, int, int, np.ndarray]:
        """The first candidate, the stride of candidates, the period, and the recorded candidates of a period, at least one."""
        chosen = self._chosen if len(self._chosen) else np.zeros(1, int)
        return self.burn_in, self.thinning, self._period, chosen

    def before(self, iteration: int) -> int:
        """The number of draws before an iteration."""
        return len(dataclasses.replace(self, num_steps=min(iteration, self.num_steps)))

    @property
    def _num_candidates(self) -> int:
        return max(-(-(self.num_steps - self.burn_in) // self.thinning), 0)

    @property
    def _period(self) -> int:
        """Candidates until the window repeats."""
        return 1 if self.window is None else math.lcm(self.window.cycle_length, self.thinning) // self.thinning

    @property
    def _chosen(self) -> np.ndarray:
        """The recorded candidates of a period."""
        candidates = np.arange(self._period)
        if self.window is None:
            return candidates
        return candidates[self.window.holds(self.burn_in + self.thinning * candidates)]
