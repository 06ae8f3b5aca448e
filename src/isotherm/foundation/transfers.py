"""Transfers between host and device that `jax_transfer_guard` must allow."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax

F = TypeVar("F", bound=Callable[..., Any])
_GUARDS = tuple(f"jax_transfer_guard_{way}" for way in ("host_to_device", "device_to_host", "device_to_device"))


def transfers_on_purpose(function: F) -> F:
    """Allow the transfers of a function: draws, data and settings live on the host."""

    @functools.wraps(function)
    def allowed(*arguments: Any, **options: Any) -> Any:
        if all(getattr(jax.config, name) in (None, "allow") for name in _GUARDS):
            return function(*arguments, **options)
        with jax.transfer_guard("allow"):
            return function(*arguments, **options)

    return allowed  # pyright: ignore[reportReturnType]
