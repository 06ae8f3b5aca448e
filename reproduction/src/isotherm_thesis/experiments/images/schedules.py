"""Schedules of the image experiments that are made of others."""

import dataclasses
from typing import Any

from isotherm.foundation.parts import Static
from isotherm.foundation.schedules import ElementwiseSchedule


@dataclasses.dataclass(frozen=True, eq=False)
class Delayed(ElementwiseSchedule):
    """`schedule` from iteration `start` on; its first value before.

    Example:
        >>> from isotherm.foundation.schedules import Annealed
        >>> [float(Delayed(Annealed(8.0, rate=2.0), 3)(k)) for k in (0, 3, 4, 5)]
        [8.0, 8.0, 4.0, 2.0]
    """

    schedule: ElementwiseSchedule
    start: Static[int]

    def __call__(self, iteration: Any) -> Any:
        xp = self.arrays_for(iteration)
        return self.schedule(xp.maximum(iteration - self.start, 0))


@dataclasses.dataclass(frozen=True, eq=False)
class Stepwise(ElementwiseSchedule):
    """`initial`, multiplied by `factor` at each of the iterations `times`.

    Example:
        >>> [round(float(Stepwise(1.0, 0.2, (10, 20))(k)), 3) for k in (0, 9, 10, 20)]
        [1.0, 1.0, 0.2, 0.04]
    """

    initial: float
    factor: float
    times: Static[tuple[int, ...]]

    def __call__(self, iteration: Any) -> Any:
        xp = self.arrays_for(iteration)
        passed = sum((xp.asarray(iteration) >= time).astype("int32") for time in self.times)
        return self.initial * self.factor**passed
