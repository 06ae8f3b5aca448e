"""Ladders: a step size and a temperature for each rung, given, geometric, found by a pilot, or adapted during a run."""

import dataclasses
import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse, short
from isotherm.foundation.parts import Part, Static
from isotherm.foundation.schedules import Schedule, as_schedule, check_schedule

# Numbers of a sampler are at least in single precision.
_LARGEST = float(np.finfo(np.float32).max)


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
            check_real("step_sizes", step_size, "Give positive step sizes.", above=0.0, maximum=_LARGEST)
        for temperature in self.temperatures:
            if temperature != np.inf:  # The reference alone, on a path.
                remedy = "Give temperatures of at least 0."
                check_real("temperatures", temperature, remedy, minimum=0.0, maximum=_LARGEST)

    @property
    def num_rungs(self) -> int:
        """P."""
        return len(self.temperatures)

    def as_json(self) -> dict[str, Any]:
        return {name: [float(value) for value in getattr(self, name)] for name in ("step_sizes", "temperatures")}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Ladder":
        return cls(tuple(stored["step_sizes"]), tuple(stored["temperatures"]))


@dataclasses.dataclass(frozen=True)
class LadderSearch:
    """A ladder found by pilot runs, which keep the step size and the temperature of the target.

    Attributes:
        num_steps: iterations of each pilot chain; there are 8 chains at each of 11 temperatures, twice.
    """

    num_steps: int = 10_000
    name = "ladder"

    def __post_init__(self):
        check_integer("num_steps", self.num_steps, 100, "A pilot needs some iterations to see energies.")

    def example(self, plain: Any) -> Ladder:
        """A ladder to check options on."""
        return Ladder((1.0,) * 3, (1.0, 2.0, 4.0))


def geometric_ladder(num_rungs: int, step_sizes: tuple[float, float], temperatures: tuple[float, float]) -> Ladder:
    """A ladder with constant ratios between neighboring step sizes and temperatures, from the first end to the last."""
    check_integer("num_rungs", num_rungs, 2, "Replica exchange needs two replicas.")
    for name, ends in (("step_sizes", step_sizes), ("temperatures", temperatures)):
        if len(ends) != 2:
            refuse(name, "(first, last)", repr(ends), "Give the ends; the rungs between are filled in.")
        for end in ends:
            remedy = "Give all rungs, such as `temperatures=(1.0, 4.0, 16.0, jnp.inf)`."
            check_real(name, end, remedy if end == np.inf else "Give positive ends.", above=0.0)
        if ends[1] < ends[0]:
            refuse(name, "(first, last) with the target's first", repr(ends), "The ends are the wrong way round.")
    filled = [tuple(float(value) for value in np.geomspace(*ends, num_rungs)) for ends in (step_sizes, temperatures)]
    return Ladder(*filled)


def check_rising(name: str, values: tuple[float, ...]) -> None:
    """Refuse values that do not rise strictly from rung to rung."""
    if not all(low < high for low, high in itertools.pairwise(values)):
        remedy = "Sort them, with the target's first, and let no two be equal."
        refuse(name, "strictly rising from the target to the hottest rung", repr(values), remedy)


@dataclasses.dataclass(frozen=True, eq=False)
class EquiAcceptance(Part):
    r"""Moves the inner rungs until all pairs accept equally often; the ends stay.

        d_i = z_i - z_{i-1},   a_i = d_i exp{ g_k A_i }
        d_i <- a_i (d_1 + ... + d_{P-1}) / (a_1 + ... + a_{P-1})

    A_i indicates whether pair (i-1, i) would accept, in every iteration, allowed to swap or not. Gaps stay positive, so rungs keep
    their order. The ends are fixed: the common rate follows from the buffer of the deterministic rule or the number of rungs.

    Attributes:
        gain: g_k, a function of the iteration.
        of: "step_size" adapts z = step sizes (for the deterministic rule), "temperature" z = log temperatures.

    Reference:
        Deng 2021, equation (double SA) of section 3.3.

    Differs from the thesis: there z_i <- (z_{i-1} + b_i + z_{i+1} - b_{i+1}) / 2 with b_i = max(0, d_i) exp{ g_k (A_i - S) }, up to
    a shift of indices by one. The fixed point, equal acceptance, is the same, but its moves scale with the wider of two gaps: a
    narrow gap beside a wide one oscillates and settles slowly. On 25 modes with 16 rungs its acceptance rates over 20,000
    iterations were between .37 and .45; these are between .397 and .400.
    """

    gain: Schedule
    of: Static[str] = "step_size"

    def __post_init__(self):
        check_schedule("gain", self.gain, allow_zero=True)
        check_choice("of", self.of, ("step_size", "temperature"))

    def move(self, values: Array, accepted: Array, iteration: Array) -> Array:
        """The next values of the rungs, from the indicators of the adjacent pairs."""
        z = jnp.log(values) if self.of == "temperature" else values
        grown = jnp.cumsum(jnp.diff(z) * jnp.exp(as_schedule(self.gain)(iteration) * accepted.astype(z.dtype)))
        z_next = z.at[1:-1].set(z[0] + (z[-1] - z[0]) * grown[:-1] / grown[-1])
        return jnp.exp(z_next) if self.of == "temperature" else z_next
