"""Calls of functions that users write, and messages where they fail under JAX's tracing."""

import inspect
from collections.abc import Callable
from typing import Any

import jax

from isotherm.foundation.errors import InputError, refuse, short

_HINTS = {
    jax.errors.TracerArrayConversionError: (
        "NumPy was called on an array of JAX. Write it with `jax.numpy` (`jnp.sum`)."
    ),
    jax.errors.TracerBoolConversionError: "`if` on a value that JAX traces. Write `jnp.where(condition, a, b)`.",
    jax.errors.ConcretizationTypeError: "a Python number made of a value that JAX traces. Leave out float() and int().",
}


def check_function(name: str, value: Any, example: str, num_arguments: int | None = None) -> None:
    """Refuse a value that cannot be called, or not with `num_arguments` arguments."""
    remedy = f"Write `{example}`, say."
    if not callable(value):
        refuse(name, "a function", short(value), remedy)
    if num_arguments is None:
        return
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # Some built-in functions have none.
        return
    try:
        signature.bind(*[None] * num_arguments)
    except TypeError:
        count = "one argument" if num_arguments == 1 else f"{num_arguments} arguments"
        refuse(name, f"a function of {count}", f"one of {signature}", remedy)


def call_traced(name: str, rule: str, function: Callable[..., Any], *arguments: Any, where: str = "") -> Any:
    """`function(*arguments)` of the user's, with every exception as a message about `name`."""
    try:
        return function(*arguments)
    except InputError:
        raise
    except Exception as error:  # The function is the user's.
        first_line = f"{type(error).__name__}: {error}".splitlines()[0][:200].rstrip(".")
        hints = (hint for kind, hint in _HINTS.items() if isinstance(error, kind))
        got = next(hints, f"{first_line}. Call it yourself to see more.")
        raise InputError(f"`{name}` must be {rule}; got {got} {where}".strip()) from error
