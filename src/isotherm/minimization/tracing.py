"""The user's function in a program: with a gradient by JAX, in double precision where that can be, or called on the host."""

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from isotherm.foundation.errors import refuse
from isotherm.minimization.space import Space


def called_on_host(function: Callable[[np.ndarray], np.ndarray], z: Any) -> Any:
    """What `function` gives at `z`, a value and its gradient, by a call from a program.

    Words travel in the place of numbers: the thread that makes the call does not know of the search's double precision.
    """
    given = lax.bitcast_convert_type(z, jnp.uint32)
    shape = jax.ShapeDtypeStruct((z.size + 1, *given.shape[1:]), jnp.uint32)

    def call(words):
        found = function(np.asarray(words).view(z.dtype).reshape(-1).astype(float))
        return np.ascontiguousarray(found, z.dtype).view(np.uint32).reshape(shape.shape)

    return lax.bitcast_convert_type(jax.pure_callback(call, shape, given, vmap_method="sequential"), z.dtype)


def unwrapped(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What the user compiled, without his program, which would keep what it is traced with here."""
    return getattr(fun, "__wrapped__", fun) if hasattr(fun, "lower") else fun


def packed(fun: Callable[[Any], Any], x: Any) -> Any:
    """The value and the flat gradient in one array: one transfer in the place of two."""
    value, gradient = jax.value_and_grad(lambda x: jnp.reshape(fun(x), ()))(x)
    return jnp.concatenate([jnp.reshape(value, 1), jnp.reshape(gradient, -1).astype(value.dtype)])


def traced_dtype(fun: Callable[[Any], Any], space: Space) -> Any:
    """The type in which JAX can differentiate a function, double if it can be; None if it cannot at all."""
    if not callable(fun):
        refuse("fun", "a function of an array", repr(fun), "Pass a function that returns a number.")
    if _is_traced(fun, space, np.float64):
        return np.float64
    if not _is_traced(fun, space, np.float32):
        return None
    if jnp.result_type(float) != np.float64:
        # A program of the user's may hold an array of NumPy that is in `fun` too, with the type of single precision.
        jax.clear_caches()
        gc.collect()
    return np.float64 if _is_traced(fun, space, np.float64) else np.float32


def _is_traced(fun: Callable[[Any], Any], space: Space, dtype: Any) -> bool:
    """Whether a program of value and gradient can be written in a type."""
    with jax.enable_x64(dtype == np.float64), contextlib.suppress(Exception):
        program = jax.jit(lambda x: packed(fun, x)).lower(jax.ShapeDtypeStruct(space.shape, dtype))
        return program.out_info.shape == (space.dimension + 1,)
    return False
