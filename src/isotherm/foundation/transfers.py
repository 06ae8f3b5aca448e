"""Transfers between host and device that are meant, whatever `jax_transfer_guard` says of those that nobody meant."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax

F = TypeVar("F", bound=Callable[..., Any])
_GUARDS = (
    "jax_transfer_guard_host_to_device",
    "jax_transfer_guard_device_to_host",
    "jax_transfer_guard_device_to_device",
)


def transfers_on_purpose(function: F) -> F:
    """The function, whose transfers are allowed: draws, data and settings live on the host, and travel on purpose.

    Example:
        >>> with jax.transfer_guard("disallow"):
        ...     transfers_on_purpose(jax.numpy.asarray)([1.0, 2.0]).tolist()
        [1.0, 2.0]
    """

    @functools.wraps(function)
    def allowed(*arguments: Any, **options: Any) -> Any:
        if not is_guarded():
            return function(*arguments, **options)
        with jax.transfer_guard("allow"):
            return function(*arguments, **options)

    return allowed  # pyright: ignore[reportReturnType]


def is_guarded() -> bool:
    """Whether JAX reports or refuses some transfers."""
    return any(getattr(jax.config, name) not in (None, "allow") for name in _GUARDS)
