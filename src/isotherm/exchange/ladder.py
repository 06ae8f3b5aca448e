"""Ladders of rungs: a step size and a temperature for each, from the target at rung 0 up to the hottest."""

import dataclasses
import itertools
from typing import Any

import numpy as np

from isotherm.foundation.errors import check_integer, check_real, refuse, short
from isotherm.foundation.parts import Part


@dataclasses.dataclass(frozen=True, eq=False)
class Ladder(Part):
    """Step sizes and temperatures of P rungs; rung 0 is the target.

    A sampler's schedules give the values of rung 0; the others keep their ratio to it.

    Attributes:
        step_sizes: epsilon of each rung.
        temperatures: tau of each rung; zero switches the noise of a rung off.

    Example:
        >>> geometric_ladder(3, (0.01, 0.04), (1.0, 4.0)).temperatures
        (1.0, 2.0, 4.0)
    """

    step_sizes: tuple[float, ...]
    temperatures: tuple[float, ...]

    def __post_init__(self):
        for name, given in (("step_sizes", self.step_sizes), ("temperatures", self.temperatures)):
            if np.ndim(given) != 1:
                refuse(name, "a tuple, one number for every rung", short(given), "Write `(1.0, 2.0, 4.0)`, say.")
        if len(self.step_sizes) != len(self.temperatures):
            got = f"{len(self.step_sizes)} step sizes and {len(self.temperatures)} temperatures"
            refuse("ladder", "as many step sizes as temperatures", got, "Give one of each for every rung.")
        if len(self.temperatures) < 2:
            refuse("ladder", "of at least 2 rungs", f"{len(self.temperatures)}", "Replica exchange needs two replicas.")
        for step_size in self.step_sizes:
            check_real("step_sizes", step_size, "Give positive step sizes.", above=0.0)
        for temperature in self.temperatures:
            check_real("temperatures", temperature, "Give temperatures of at least 0.", minimum=0.0)

    @property
    def num_rungs(self) -> int:
        """P."""
        return len(self.temperatures)

    def as_json(self) -> dict[str, Any]:
        """The ladder in types that JSON can hold."""
        return {name: [float(value) for value in getattr(self, name)] for name in ("step_sizes", "temperatures")}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Ladder":
        """A ladder from its `as_json`."""
        return cls(tuple(stored["step_sizes"]), tuple(stored["temperatures"]))


@dataclasses.dataclass(frozen=True)
class LadderSearch:
    """A ladder that pilot runs find: they keep the step size and the temperature of the target, and find the rungs above.

    Attributes:
        num_steps: iterations of the pilot's chains, of which there are 8 at each of 11 temperatures, twice.
    """

    num_steps: int = 10_000
    name = "ladder"

    def __post_init__(self):
        check_integer("num_steps", self.num_steps, 100, "A pilot needs some iterations to see energies.")

    def example(self, plain: Any) -> Ladder:
        """A ladder on which options can be checked."""
        return Ladder((1.0,) * 3, (1.0, 2.0, 4.0))


def geometric_ladder(num_rungs: int, step_sizes: tuple[float, float], temperatures: tuple[float, float]) -> Ladder:
    """A ladder whose step sizes and temperatures grow by constant factors from the first end to the last."""
    check_integer("num_rungs", num_rungs, 2, "Replica exchange needs two replicas.")
    for name, ends in (("step_sizes", step_sizes), ("temperatures", temperatures)):
        if len(ends) != 2:
            refuse(name, "(first, last)", repr(ends), "Give the ends; the rungs between are filled in.")
        for end in ends:
            check_real(name, end, "Give positive ends.", above=0.0)
        if ends[1] < ends[0]:
            refuse(name, "(first, last) with the target's first", repr(ends), "The ends are the wrong way round.")
    filled = [tuple(float(value) for value in np.geomspace(*ends, num_rungs)) for ends in (step_sizes, temperatures)]
    return Ladder(*filled)


def check_rising(name: str, values: tuple[float, ...]) -> None:
    """Refuse values that do not rise strictly from rung to rung."""
    if not all(low < high for low, high in itertools.pairwise(values)):
        remedy = "Sort them, with the target's first, and let no two be equal."
        refuse(name, "strictly rising from the target to the hottest rung", repr(values), remedy)
