"""Compiled programs under JAX's settings for debugging.

- `jax_disable_jit` runs a program operation by operation, so that `print` and `pdb` in an energy see values. Loops are Python's,
  and slow: take few steps. Results differ from those of the compiled program by rounding.
- `jax_debug_nans` and `jax_debug_infs` inspect every result of a program. Carries hold NaN and infinities by design, such as the
  best energy before the first one, so programs run without the two: a run finds energies that are not finite itself, and names
  chain and iteration.
- `jax_transfer_guard` finds transfers that nobody meant; arguments of programs travel on purpose.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from isotherm.foundation.transfers import transfers_on_purpose

F = TypeVar("F", bound=Callable[..., Any])


def under_debug_settings(call: F) -> F:
    """`call(function, *arguments, ...)`, which compiles and runs `function`, whichever of these settings are on."""
    call_freely = transfers_on_purpose(call)

    @functools.wraps(call)
    def called(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        config: Any = jax.config
        if config.jax_disable_jit:
            return function(*jax.tree.map(jnp.asarray, arguments))
        if not (config.jax_debug_nans or config.jax_debug_infs):
            return call_freely(function, *arguments, **options)
        with jax.debug_nans(False), jax.debug_infs(False):
            return call_freely(function, *arguments, **options)

    return called  # pyright: ignore[reportReturnType]
