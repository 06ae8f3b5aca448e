"""Compiled programs: one for each structure and shapes, whatever the numbers; released with the functions they were made of."""

import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.engine.debugging import under_debug_settings
from isotherm.engine.graphs import compile_with_graphs
from isotherm.foundation.compilation_cache import are_programs_kept
from isotherm.foundation.dependencies import dependencies
from isotherm.foundation.parts import functions_of

_PROGRAMS: dict[Any, Callable[..., Any]] = {}
# What the functions of the programs read when they were last looked at.
_READ: dict[int, Any] = {}


@under_debug_settings
def call(
    function: Callable[..., Any], *arguments: Any, donated: tuple[int, ...] = (), options: tuple[Any, ...] = ()
) -> Any:
    """`function(*arguments)`, compiled. Arguments whose places are in `donated` give up their memory.

    `options` are pairs for the compiler, left out where it does not know them.
    Programs take flat lists of arrays, so that they hold none of the user's functions, and go when these do.
    """
    parts = [jax.tree.flatten(argument) for argument in arguments]
    leaves, structures = [part[0] for part in parts], tuple(part[1] for part in parts)
    shapes = tuple((np.shape(leaf), _dtype(leaf)) for part in leaves for leaf in part)
    # Types that are left open inside a function follow this setting, whatever those of its arguments.
    key = (function, structures, shapes, donated, options, jnp.result_type(float))
    program = _PROGRAMS.get(key)
    if program is None:
        program = _PROGRAMS[key] = _compile(function, structures, leaves, donated, dict(options))
        for structure in structures:
            for held in functions_of(structure):
                weakref.finalize(held, _PROGRAMS.pop, key, None).atexit = False
    return program(*leaves)


def look_again(tree: Any) -> None:
    """Drop the programs of those functions in a tree that read other values now, such as a global that was assigned anew."""
    for function in functions_of(jax.tree.structure(tree)):
        now, before = dependencies(function), _READ.get(id(function))
        if before is None:
            weakref.finalize(function, _READ.pop, id(function), None).atexit = False
        _READ[id(function)] = now
        if before is not None and before != now:
            for key in [key for key in _PROGRAMS if any(f is function for part in key[1] for f in functions_of(part))]:
                _PROGRAMS.pop(key, None)


def read_by(tree: Any) -> tuple[Any, ...]:
    """All that the functions of a tree read."""
    return tuple(dependencies(function) for function in functions_of(jax.tree.structure(tree)))


def forget() -> None:
    """Drop all programs. They are compiled again when they are needed."""
    _PROGRAMS.clear()


def num_programs() -> int:
    """How many programs there are."""
    return len(_PROGRAMS)


def _compile(function, structures, leaves, donated, options) -> Callable[..., Any]:
    found = []

    def flat(*given):
        arguments = [jax.tree.unflatten(*pair) for pair in zip(structures, given, strict=True)]
        results, structure = jax.tree.flatten(function(*arguments))
        found.append(structure)
        return results

    lowered = jax.jit(flat, donate_argnums=donated, keep_unused=True).lower(*leaves)
    program = _with_options(lowered, options) if options else lowered.compile()
    structure = found[0]
    return lambda *given: jax.tree.unflatten(structure, program(*given))


def _with_options(lowered: Any, options: dict[str, str]) -> Callable[..., Any]:
    try:
        if are_programs_kept():
            return compile_with_graphs(lowered, options)
        return lowered.compile(compiler_options=options)
    except jax.errors.JaxRuntimeError:
        return lowered.compile()


def _dtype(leaf: Any) -> Any:
    # A weakly typed array is another argument to the compiler.
    return np.dtype(leaf.dtype) if hasattr(leaf, "dtype") else type(leaf), getattr(leaf, "weak_type", False)
