"""Functions that users write: what is said when one of them fails while JAX traces it."""

import inspect
from collections.abc import Callable
from typing import Any

import jax

from isotherm.foundation.errors import InputError, refuse, short

_HINTS = (
    (
        jax.errors.TracerArrayConversionError,
        "NumPy was called on an array of JAX",
        "Write it with `jax.numpy` (`jnp.sum`).",
    ),
    (jax.errors.TracerBoolConversionError, "`if` on a value that JAX traces", "Write `jnp.where(condition, a, b)`."),
    (
        jax.errors.ConcretizationTypeError,
        "a Python number made of a value that JAX traces",
        "Leave out float() and int().",
    ),
)


def check_function(name: str, value: Any, example: str, num_arguments: int | None = None) -> None:
    """Refuse what cannot be called, or not with so many arguments."""
    if not callable(value):
        refuse(name, "a function", short(value), f"Write `{example}`, say.")
    if num_arguments is None:
        return
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # Some built-in functions have none.
        return
    try:
        signature.bind(*[None] * num_arguments)
    except TypeError:
        many = "one argument" if num_arguments == 1 else f"{num_arguments} arguments"
        refuse(name, f"a function of {many}", f"one of {signature}", f"Write `{example}`, say.")


def call_traced(name: str, rule: str, function: Callable[..., Any], *arguments: Any, where: str = "") -> Any:
    """`function(*arguments)` of the user's; whatever it raises becomes a message about `name`."""
    try:
        return function(*arguments)
    except InputError:
        raise
    except Exception as error:  # The function is the user's.
        known = next((hint for hint in _HINTS if isinstance(error, hint[0])), None)
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        got, remedy = (said, "Call it yourself to see more.") if known is None else known[1:]
        text = f"`{name}` must be {rule}; got {got}. {remedy} {where}"
        raise InputError(text.strip()) from error
