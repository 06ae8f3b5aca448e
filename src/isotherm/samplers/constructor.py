"""The decorator of constructors, which checks calls and completes docstrings."""

from collections.abc import Callable
from typing import TypeVar

from isotherm.foundation.calls import checked_call
from isotherm.foundation.docstrings import defaults_of, documented, entries
from isotherm.kernels.wrapped import Box as Box
from isotherm.samplers.sampler import AnySampler

F = TypeVar("F", bound=Callable[..., AnySampler])

# Descriptions of arguments that constructors share.
_ARGUMENTS = """
    step_size: eps, a number above 0 or a function of the iteration, in units of position^2 / energy.
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


def constructor(*kinds: type, arguments: str = "", returns: str = "A `Sampler` for `iso.sample`.") -> Callable[[F], F]:
    """A decorator for constructors.

    Args:
        *kinds: the `TypedDict` of the function's `**options`; several where one extends another.
        arguments: descriptions of arguments that a family of constructors shares, as lines `name: description`.
        returns: the section Returns.
    """
    shared = [(kind, defaults_of(kind)) for kind in kinds]
    texts = entries(_ARGUMENTS) | entries(arguments)
    options = [name for _, defaults in shared for name in defaults]
    complete = documented(*shared, arguments=texts, returns=returns)
    return lambda function: checked_call(options)(complete(function))
