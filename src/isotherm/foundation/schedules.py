"""Schedules of step sizes and temperatures, and collection windows.

A schedule is a number or any function of the iteration, such as those of optax. The classes here are those of the thesis that optax
lacks. Their numbers are arguments of compiled programs, while each new function of optax compiles again.
"""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.foundation.parts import Part, Static, with_python_numbers
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.foundation.user_functions import call_traced

Schedule = float | Callable[[Any], Any]


class ElementwiseSchedule(Part):
    """A schedule that broadcasts over iterations. On the host it computes with NumPy, without compiling."""

    def __call__(self, iteration: Any) -> Any:
        """The value at an iteration, or at each of several."""
        raise TypeError(f"{type(self).__name__} must define `__call__`.")

    def arrays_for(self, iteration: Any) -> Any:
        """`numpy` if all values are on the host, else `jax.numpy`."""
        is_on_host = isinstance(iteration, (int, np.generic, np.ndarray))
        return jnp if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(self)) or not is_on_host else np


@dataclasses.dataclass(frozen=True, eq=False)
class CyclicalCosine(ElementwiseSchedule):
    r"""Cosine decay from `peak`, restarted every `cycle_length` iterations.

    With beta_k = (k mod L) / L the value is floor + (peak - floor) / 2 * (cos(pi * min(beta_k, hold_from)) + 1).

    Attributes:
        peak: the value at the start of a cycle.
        cycle_length: L, iterations in a cycle.
        hold_from: the fraction of the cycle from which the value is constant; 1 decays to the end.
        floor: the limit at the end of a whole cycle.

    Example:
        >>> float(CyclicalCosine(0.5, cycle_length=100)(0))
        0.5

    Reference:
        Deng 2021, section on baselines of chapter 3; Zhang et al. 2020.
    """

    peak: float
    cycle_length: Static[int]
    hold_from: float = 1.0
    floor: float = 0.0

    def __post_init__(self):
        check_real("peak", self.peak, "Give the largest value of the cycle.", above=0.0)
        check_integer("cycle_length", self.cycle_length, 1, "Give the number of iterations in a cycle.")
        check_real("hold_from", self.hold_from, "Give a fraction of the cycle.", minimum=0.0, maximum=1.0)
        check_real("floor", self.floor, "Give a value of at most the peak.", minimum=0.0, maximum=self.peak)

    def __call__(self, iteration: Any) -> Array:
        phase = (iteration % self.cycle_length) / self.cycle_length
        height = (self.peak - self.floor) / 2
        xp = self.arrays_for(iteration)
        return self.floor + height * (xp.cos(math.pi * xp.minimum(phase, self.hold_from)) + 1)


@dataclasses.dataclass(frozen=True, eq=False)
class CyclicalTemperature(ElementwiseSchedule):
    """`exploring` in the first part of each cycle, `temperature` from its fraction `sampling_from` on.

    Attributes:
        temperature: the value in the sampling stage.
        cycle_length: iterations in a cycle.
        sampling_from: the fraction of the cycle at which the sampling stage starts.
        exploring: the value in the exploration stage; 0 explores without noise.

    Example:
        >>> [float(CyclicalTemperature(2.0, 10, 0.8)(k)) for k in (7, 8, 17, 18)]
        [0.0, 2.0, 0.0, 2.0]

    Differs from the thesis: the author's code divides the temperature by 1e10 where this gives zero.
    """

    temperature: float
    cycle_length: Static[int]
    sampling_from: Static[float]
    exploring: float = 0.0

    def __post_init__(self):
        check_real("temperature", self.temperature, "Give the temperature of the sampling stage.", minimum=0.0)
        check_real("exploration_temperature", self.exploring, "Give a temperature, or 0 for no noise.", minimum=0.0)
        _first_of_window(self.cycle_length, self.sampling_from)

    def __call__(self, iteration: Any) -> Array:
        start = _first_of_window(self.cycle_length, self.sampling_from)
        xp = self.arrays_for(iteration)
        return xp.where(iteration % self.cycle_length >= start, self.temperature, self.exploring)


@dataclasses.dataclass(frozen=True, eq=False)
class Annealed(ElementwiseSchedule):
    """Exponential annealing: initial / rate ** floor(k / every), held from iteration `stop_at` on.

    Attributes:
        initial: the value at iteration 0.
        rate: the factor per change; above 1 the value falls, below 1 it grows.
        every: iterations between two changes, such as those of an epoch.
        stop_at: the iteration from which the value is constant; None never stops.

    Example:
        >>> float(Annealed(8.0, rate=2.0, every=10)(25))
        2.0

    Reference:
        Deng 2021, tau_k = tau_0 / 1.02^epoch of the image experiments.
    """

    initial: float
    rate: float
    every: Static[int] = 1
    stop_at: Static[int | None] = None
    log_rate: float = dataclasses.field(default=0.0, init=False, repr=False)

    def __post_init__(self):
        check_real("initial", self.initial, "Give the value at iteration 0.", minimum=0.0)
        check_real("rate", self.rate, "Give the factor by which the value falls, such as 1.02.", above=0.0)
        check_integer("every", self.every, 1, "Give the number of iterations between two changes.")
        # In double precision: single loses the logarithm of a rate close to 1.
        object.__setattr__(self, "log_rate", math.log(self.rate))

    def __call__(self, iteration: Any) -> Array:
        xp = self.arrays_for(iteration)
        last = iteration if self.stop_at is None else xp.minimum(iteration, self.stop_at)
        return self.initial * xp.exp(-self.log_rate * (last // self.every))


@dataclasses.dataclass(frozen=True)
class CollectionWindow:
    """Collects the draws of iterations k with k mod cycle_length >= ceil(sampling_from * cycle_length).

    Attributes:
        cycle_length: iterations in a cycle.
        sampling_from: the fraction of the cycle at which collection starts.

    Example:
        >>> np.flatnonzero(CollectionWindow(10, 0.7).holds(np.arange(20))).tolist()
        [7, 8, 9, 17, 18, 19]
    """

    cycle_length: int
    sampling_from: float

    def __post_init__(self):
        with_python_numbers(self)
        _first_of_window(self.cycle_length, self.sampling_from)

    def holds(self, iterations: np.ndarray) -> np.ndarray:
        """Which of `iterations` lie in the window."""
        return iterations % self.cycle_length >= _first_of_window(self.cycle_length, self.sampling_from)


@dataclasses.dataclass(frozen=True, eq=False)
class Following(Part):
    """value * s(0) / s(k): a correction factor F that grows as an annealed temperature s falls, so that F * s is constant.

    Example:
        >>> float(Following(3.0, lambda k: 2.0 ** -k)(2))
        12.0
    """

    value: float
    schedule: Schedule

    def __call__(self, iteration: Any) -> Any:
        function = as_schedule(self.schedule)
        return self.value * function(0) / function(iteration)


@dataclasses.dataclass(frozen=True, eq=False)
class Scaled(Part):
    """value * factor(k): the step size or temperature of a rung when the ladder changes with the iteration.

    Example:
        >>> float(Scaled(0.5, Annealed(1.0, rate=2.0, every=10))(25))
        0.125
    """

    value: float
    factor: Schedule

    def __call__(self, iteration: Any) -> Any:
        return self.value * as_schedule(self.factor)(iteration)


@transfers_on_purpose
def values_at(schedule: Schedule, iterations: np.ndarray) -> np.ndarray:
    """The values of a schedule at several iterations."""
    if not callable(schedule):
        return np.full(len(iterations), schedule)
    elementwise = schedule if isinstance(schedule, ElementwiseSchedule) else jax.jit(jax.vmap(schedule))
    return np.asarray(elementwise(iterations))


def as_schedule(value: Schedule) -> Callable[[Any], Any]:
    """A number or a function as a function of the iteration."""
    return value if callable(value) else lambda iteration: jnp.asarray(value)


@transfers_on_purpose
def check_schedule(name: str, value: Any, *, allow_zero: bool) -> None:
    """Refuse a value unless it is a number in range, or a schedule of real scalars in range at iteration 0."""
    rule = "at least 0" if allow_zero else "above 0"
    remedy = f"Give a number {rule} or an optax schedule."
    if callable(value):
        called = f"a function of the iteration {rule}"
        shape = call_traced(name, called, jax.eval_shape, value, jax.ShapeDtypeStruct((), jnp.int32))
        if getattr(shape, "shape", None) != () or not jnp.issubdtype(shape.dtype, jnp.floating):
            refuse(name, f"a schedule of real scalars {rule}", f"one of {shape}", remedy)
        value = np.asarray(value(0)).item()
    check_real(name, value, remedy, **{"minimum" if allow_zero else "above": 0.0})


def _first_of_window(cycle_length: int, sampling_from: float) -> int:
    check_integer("cycle_length", cycle_length, 1, "Give the number of iterations in a cycle.")
    check_real("sampling_from", sampling_from, "Give a fraction of the cycle.", minimum=0.0, below=1.0)
    # Exact arithmetic on the decimal that was typed: in floating point 0.7 * 10 is 7.000000000000001.
    first = math.ceil(Fraction(str(sampling_from)) * cycle_length)
    if first >= cycle_length:
        remedy = "Lengthen the cycle or lower the fraction."
        refuse("sampling_from", f"such that a cycle of {cycle_length} has an iteration left", sampling_from, remedy)
    return first
