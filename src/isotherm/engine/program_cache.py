"""Compiled programs: one per structure and shapes, whatever the numbers; released with the user's functions in them."""

import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.engine.graphs import compile_with_graphs
from isotherm.engine.whole_loops import MAX_WHOLE_LOOP, whole_loops
from isotherm.foundation.dependencies import dependencies
from isotherm.foundation.parts import functions_of
from isotherm.foundation.transfers import transfers_on_purpose

_PROGRAMS: dict[Any, Callable[..., Any]] = {}
# What functions read when `drop_stale` last saw them.
_READ: dict[Any, Any] = {}


@transfers_on_purpose
def call(
    function: Callable[..., Any],
    *arguments: Any,
    donated: tuple[int, ...] = (),
    options: tuple[Any, ...] = (),
    max_whole_loop: int = MAX_WHOLE_LOOP,
) -> Any:
    """`function(*arguments)`, compiled. Arguments at the places `donated` are overwritten; `options` are pairs for the compiler.

    Programs take flat lists of arrays, so they hold none of the user's functions, and are released with these. Under JAX's debug
    settings, `jax_disable_jit` runs a program operation by operation, so that `print` and `pdb` in an energy see values; loops are
    then Python's, and results differ by rounding. `jax_debug_nans` and `jax_debug_infs` are off inside programs: carries hold NaN
    and infinities by design, and a run reports energies that are not finite itself, with chain and iteration.
    """
    config: Any = jax.config
    if config.jax_disable_jit:
        return function(*jax.tree.map(jnp.asarray, arguments))
    if config.jax_debug_nans or config.jax_debug_infs:
        with jax.debug_nans(False), jax.debug_infs(False):
            return call(function, *arguments, donated=donated, options=options, max_whole_loop=max_whole_loop)
    parts = [jax.tree.flatten(argument) for argument in arguments]
    leaves, structures = [part[0] for part in parts], tuple(part[1] for part in parts)
    shapes = tuple((np.shape(leaf), _dtype(leaf)) for part in leaves for leaf in part)
    # Default dtypes inside a function follow `jax_enable_x64`, whatever the arguments.
    key = (function, structures, shapes, donated, options, max_whole_loop, jnp.result_type(float))
    program = _PROGRAMS.get(key)
    if program is None:
        program = _PROGRAMS[key] = _compile(function, structures, leaves, donated, dict(options), max_whole_loop)
        for structure in structures:
            for held in functions_of(structure):
                weakref.finalize(held, _PROGRAMS.pop, key, None).atexit = False
    return program(*leaves)


def drop_stale(tree: Any, potential: Any, shapes: str, fingerprint: int) -> None:
    """Drop programs whose functions in `tree` read other values than before, such as a global that was assigned again.

    `fingerprint` is that of the energy of `potential`, a part of the tree, traced for `shapes`. It covers all values that its
    functions read, however deep.
    """
    changed = [f for f in functions_of(jax.tree.structure(tree)) if _has_changed(id(f), (f,), dependencies(f))]
    structure = jax.tree.structure(potential)
    own = tuple(functions_of(structure))
    # Potentials of one function may differ in static fields, such as the batch size.
    if own and _has_changed((structure, shapes), own, fingerprint):
        changed += own
    for key in list(_PROGRAMS) if changed else []:
        if any(f is g for part in key[1] for f in functions_of(part) for g in changed):
            _PROGRAMS.pop(key, None)


def _has_changed(key: Any, functions: tuple[Any, ...], now: Any) -> bool:
    """Whether functions read other values than at the last call."""
    before = _READ.get(key)
    if before is None:
        for function in functions:
            weakref.finalize(function, _READ.pop, key, None).atexit = False
    _READ[key] = now
    return before is not None and before != now


def read_by(tree: Any) -> tuple[Any, ...]:
    """The values that the functions of a tree read."""
    return tuple(dependencies(function) for function in functions_of(jax.tree.structure(tree)))


def forget() -> None:
    """Drop all programs."""
    _PROGRAMS.clear()


def num_programs() -> int:
    """The number of compiled programs."""
    return len(_PROGRAMS)


def _compile(function, structures, leaves, donated, options, max_whole_loop) -> Callable[..., Any]:
    found = []

    def flat(*given):
        arguments = [jax.tree.unflatten(*pair) for pair in zip(structures, given, strict=True)]
        results, structure = jax.tree.flatten(function(*arguments))
        found.append(structure)
        return results

    lowered = jax.jit(flat, donate_argnums=donated, keep_unused=True).lower(*leaves)
    with whole_loops(max_whole_loop):
        program = _with_options(lowered, options) if options else lowered.compile()
    structure = found[0]
    return lambda *given: jax.tree.unflatten(structure, program(*given))


def _with_options(lowered: Any, options: dict[str, str]) -> Callable[..., Any]:
    try:
        return compile_with_graphs(lowered, options)
    except (jax.errors.JaxRuntimeError, AttributeError, TypeError, ValueError):
        return lowered.compile()


def _dtype(leaf: Any) -> Any:
    # Weak types are part of a program's signature.
    return np.dtype(leaf.dtype) if hasattr(leaf, "dtype") else type(leaf), getattr(leaf, "weak_type", False)
