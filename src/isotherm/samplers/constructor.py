"""What all constructors share: checked calls, and docstrings with every option and its default."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from isotherm.foundation.calls import checked_call
from isotherm.foundation.docstrings import documented
from isotherm.samplers.sampler import AnySampler

Box = tuple[Any, Any] | None
F = TypeVar("F", bound=Callable[..., AnySampler])


def constructor(*shared: tuple[type, Mapping[str, Any]]) -> Callable[[F], F]:
    """A decorator for constructors.

    Args:
        *shared: the `TypedDict` of the function's `**options`, with their defaults; several where one extends another.
    """
    options = [name for _, defaults in shared for name in defaults]
    return lambda function: checked_call(options)(documented(*shared)(function))
