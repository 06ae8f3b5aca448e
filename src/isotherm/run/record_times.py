"""When draws are taken: arithmetic, whatever their number."""

import dataclasses
import math
from typing import Any, Self

import numpy as np

from isotherm.foundation.schedules import CollectionWindow


@dataclasses.dataclass(frozen=True)
class RecordTimes:
    """The iterations burn_in, burn_in + thinning, ... below num_steps that lie in a window. Index it, or ask for its length.

    Attributes:
        num_steps: iterations.
        burn_in: the first one that may be recorded.
        thinning: iterations between two that may be.
        window: those of every cycle that are; None is all of them.

    Example:
        >>> times = RecordTimes(100, 10, 30, None)
        >>> len(times), times[1], times[1:].tolist()
        (3, 40, [40, 70])
    """

    num_steps: int
    burn_in: int
    thinning: int
    window: CollectionWindow | None

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
        """From what `dataclasses.asdict` made."""
        window = stored["window"]
        return cls(**{**stored, "window": None if window is None else CollectionWindow(**window)})

    @property
    def rule(self) -> tuple[int, int, int, np.ndarray]:
        """The first candidate, the stride of candidates, the period, and those of a period that are recorded; one at least."""
        chosen = self._chosen if len(self._chosen) else np.zeros(1, int)
        return self.burn_in, self.thinning, self._period, chosen

    def before(self, iteration: int) -> int:
        """How many of them lie before an iteration."""
        return len(dataclasses.replace(self, num_steps=min(iteration, self.num_steps)))

    @property
    def _num_candidates(self) -> int:
        return max(-(-(self.num_steps - self.burn_in) // self.thinning), 0)

    @property
    def _period(self) -> int:
        """Candidates after which the window is met in the same way again."""
        return (
            1 if self.window is None else self.window.cycle_length // math.gcd(self.window.cycle_length, self.thinning)
        )

    @property
    def _chosen(self) -> np.ndarray:
        """Those of a period's candidates that are recorded."""
        candidates = np.arange(self._period)
        if self.window is None:
            return candidates
        return candidates[self.window.holds(self.burn_in + self.thinning * candidates)]
