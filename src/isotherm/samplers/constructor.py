"""The decorator of constructors, which checks calls and completes docstrings."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from isotherm.foundation.calls import checked_call
from isotherm.foundation.docstrings import defaults_of, documented, entries
from isotherm.foundation.errors import refuse
from isotherm.kernels.wrapped import Box as Box
from isotherm.kernels.wrapped import scaled
from isotherm.samplers.sampler import AnySampler, FoundStep, Specification, StepSearch

# A number, a function of the iteration, an array or a tree like the position, or "auto".
StepSize = Any

F = TypeVar("F", bound=Callable[..., AnySampler])

# Descriptions of arguments that constructors share.
_ARGUMENTS = """
    step_size: eps, a number above 0 or a function of the iteration, in units of position^2 / energy. An array, or a tree like the
        position, has one for every coordinate; "auto" finds them by a pilot run.
    temperature: T, a number of at least 0 or a function of the iteration, in units of the energy.
    friction: alpha in (0, 1], one minus the momentum coefficient; no unit.
    decay: beta in [0, 1], the share of V that an iteration keeps; no unit.
    regularizer: lambda above 0, which keeps G below 1 / lambda; in units of s g.
    gradient_scale: s above 0, on the gradient in V alone; 1 / N brings that of a sum over N examples to the scale of a mean.
    freeze_after: the iteration from which V is constant, at most the run's `burn_in`; None adapts to the end.
    cycle_length: L, iterations in a cycle.
    sampling_from: the fraction of a cycle, in [0, 1), from which T is on and draws are collected.
    hold_from: the fraction of a cycle, in [0, 1], from which eps_k is constant; 1 never holds it.
    floor: eps_k at the end of a whole cycle, from 0 to `step_size`, in its units.
    exploration_temperature: T_0, at least 0, in units of the energy; 0 descends without noise.
    zeta: strength of the flattening, at least 0: 0 is the plain sampler, 1 gives a flat energy histogram; no unit.
    slopes: "backward" takes the slope of log theta from the bin below, "forward" from the bin above.
    box: (low, high), numbers or arrays that broadcast against the position. Proposals outside are rejected, or reflected for
        (low, high, "reflect"); None has no walls.
"""


def constructor(
    *kinds: type, arguments: str = "", returns: str = "A `Sampler` for `iso.sample`.", searches: bool = True
) -> Callable[[F], F]:
    """A decorator for constructors.

    Args:
        *kinds: the `TypedDict` of the function's `**options`; several where one extends another.
        arguments: descriptions of arguments that a family of constructors shares, as lines `name: description`.
        returns: the section Returns.
        searches: whether `step_size="auto"` is offered.
    """
    shared = [(kind, defaults_of(kind)) for kind in kinds]
    texts = entries(_ARGUMENTS) | entries(arguments)
    options = [name for _, defaults in shared for name in defaults]
    complete = documented(*shared, arguments=texts, returns=returns)
    search = _searching if searches else lambda function: function
    return lambda function: checked_call(options)(search(complete(function)))


def _searching(function: F) -> F:
    """The constructor `function`, which makes a specification of `step_size="auto"`."""

    @functools.wraps(function)
    def build(step_size: Any, *arguments: Any, **options: Any) -> AnySampler:
        if not (isinstance(step_size, str) and step_size == "auto"):
            return function(step_size, *arguments, **options)
        if options.get("scales") is not None:
            refuse("scales", 'left out with `step_size="auto"`', "scales", "The pilot finds them.")
        if options.get("floor"):
            refuse("floor", 'left out with `step_size="auto"`', options["floor"], "Give `hold_from`, such as 0.9.")

        def complete(_: AnySampler, found: FoundStep) -> AnySampler:
            steps: Any = found.step_sizes
            if len(steps) == 1:
                steps = steps[0]
            elif options.get("num_replicas") is not None:
                steps = (steps[0], steps[-1])
            return _in_scales(function(steps, *arguments, **options), found)

        return Specification(function(1.0, *arguments, **options), StepSearch(), complete)

    return build  # pyright: ignore[reportReturnType]


def _in_scales(sampler: AnySampler, found: FoundStep) -> AnySampler:
    if found.factor is None:
        return sampler
    if isinstance(sampler, Specification):
        return dataclasses.replace(sampler, plain=_in_scales(sampler.plain, found))
    return dataclasses.replace(sampler, kernel=scaled(sampler.kernel, found.factor, found.is_dense))
