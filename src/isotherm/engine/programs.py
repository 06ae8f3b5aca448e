"""Compiled programs: one for each structure and shapes, whatever the numbers; released with the functions they were made of."""

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.compilation_cache import are_programs_kept
from isotherm.foundation.parts import functions_of

_PROGRAMS: dict[Any, Callable[..., Any]] = {}
_WITHOUT_GRAPHS = {"xla_gpu_enable_command_buffer": ""}


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
            return _once_without_graphs(lowered, options)
        return lowered.compile(compiler_options=options)
    except jax.errors.JaxRuntimeError:
        return lowered.compile()


def _once_without_graphs(lowered: Any, options: dict[str, str]) -> Callable[..., Any]:
    """A program that may come from the disk: its first call runs without CUDA graphs.

    Graphs cannot be captured with kernels of cuDNN that the process has not loaded yet, and fail with its status 5003. Trying
    algorithms against each other loads them; a program from the disk comes without, and running it kernel by kernel loads them.
    Compiled in one process both have the same algorithms. The one without comes first, so that a process that is killed
    between the two does not leave the other alone on the disk.
    """
    without = lowered.compile(compiler_options={**options, **_WITHOUT_GRAPHS})
    later = itertools.chain([without], itertools.repeat(lowered.compile(compiler_options=options)))
    return lambda *given: next(later)(*given)


def _dtype(leaf: Any) -> Any:
    # A weakly typed array is another argument to the compiler.
    return np.dtype(leaf.dtype) if hasattr(leaf, "dtype") else type(leaf), getattr(leaf, "weak_type", False)
