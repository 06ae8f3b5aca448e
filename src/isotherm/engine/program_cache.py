"""Compiled programs: one for each structure and shapes, whatever the numbers; released with the functions they were made of."""

import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.engine.debugging import under_debug_settings
from isotherm.engine.graphs import compile_with_graphs
from isotherm.engine.whole_loops import whole_loops
from isotherm.foundation.compilation_cache import are_programs_kept
from isotherm.foundation.dependencies import dependencies
from isotherm.foundation.parts import functions_of

_PROGRAMS: dict[Any, Callable[..., Any]] = {}
# What the functions of the programs read when they were last looked at.
_READ: dict[Any, Any] = {}


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


def look_again(tree: Any, potential: Any, shapes: str, fingerprint: int) -> None:
    """Drop the programs of those functions in a tree that read other values now, such as a global that was assigned anew.

    Args:
        tree: what holds the functions.
        potential: the part of it that has the energy.
        shapes: with which the energy was traced.
        fingerprint: of what was traced, which sees all that any of its functions reads, however deep.
    """
    changed = [f for f in functions_of(jax.tree.structure(tree)) if _has_changed(id(f), (f,), dependencies(f))]
    structure = jax.tree.structure(potential)
    own = tuple(functions_of(structure))
    # Potentials of one function may differ in what is static, such as the size of batches.
    if own and _has_changed((structure, shapes), own, fingerprint):
        changed += own
    if changed:
        for key in [
            key for key in _PROGRAMS if any(f is g for part in key[1] for f in functions_of(part) for g in changed)
        ]:
            _PROGRAMS.pop(key, None)


def _has_changed(key: Any, functions: tuple[Any, ...], now: Any) -> bool:
    """Whether what functions read is not what it was when they were last looked at."""
    before = _READ.get(key)
    if before is None:
        for function in functions:
            weakref.finalize(function, _READ.pop, key, None).atexit = False
    _READ[key] = now
    return before is not None and before != now


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
    with whole_loops():
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
