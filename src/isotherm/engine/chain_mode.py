"""How the chains of a run are computed: all at once, one after another, or side by side in one program."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import jaxpr_as_fun

from isotherm.engine.convolutions import for_loops, num_convolutions
from isotherm.foundation.parts import as_arguments, number_dtype
from isotherm.potentials.potential import Potential

CHAIN_MODES = ("vmap", "map", "unroll")
# More chains in one body compile for minutes, and run no faster. Five are the usual number of repeats, which nothing divides.
_MAX_GROUP, _MAX_WHOLE = 4, 5
# In one body, forwards and backwards. Four ResNet-20 have 248 and compile in 70 to 90 s on one GPU, two ResNet-56 508 and 100 s;
# four ResNet-56 did not compile in 800 s.
_MAX_CONVOLUTIONS = 600
# XLA leaves convolutions out of CUDA graphs unless it is told, and runs what a graph holds one after another.
_GRAPHS = (
    (
        "xla_gpu_enable_command_buffer",
        "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,DYNAMIC_SLICE_FUSION,CONDITIONAL,CONVOLUTION",
    ),
    ("xla_gpu_command_buffer_scheduling_mode", "CONCURRENT"),
)


def over_chains(mode: str, function: Callable[..., Any], *arguments: Any, drops_axis_of_one: bool = False) -> Any:
    """`function` for every chain along the leading axis.

    "vmap" computes all at once, "map" one after another. "unroll" writes the chains out one by one in the program, in groups of up
    to four (five at once), so that a GPU runs their convolutions side by side; a batched convolution is slower than several.

    With `drops_axis_of_one` a single chain is run without its axis: a batched product of one is slower than a product. For
    elementwise work it is better left in place, where the compiler fuses more.
    """
    number = len(jax.tree.leaves(arguments)[0])
    function = for_loops(function) if mode == "map" else function
    if drops_axis_of_one and number == 1:
        return jax.tree.map(lambda leaf: leaf[None], function(*jax.tree.map(lambda leaf: leaf[0], arguments)))
    if mode == "vmap":
        return jax.vmap(function)(*arguments)
    if mode == "map":
        return lax.map(lambda one: function(*one), arguments)
    return _unrolled(function, arguments, number)


def _unrolled(function: Callable[..., Any], arguments: Any, number: int) -> Any:
    one = jax.eval_shape(lambda all_: jax.tree.map(lambda leaf: leaf[0], all_), arguments)
    traced, shapes = jax.make_jaxpr(function, return_shape=True)(*one)
    size = group_size(number, num_convolutions(traced))

    def of_chain(*given):
        return jax.tree.unflatten(jax.tree.structure(shapes), jaxpr_as_fun(traced)(*jax.tree.leaves(given)))

    def of_group(group):
        found = [of_chain(*jax.tree.map(lambda leaf, k=k: leaf[k], group)) for k in range(size)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *found)

    if size == number:
        return of_group(arguments)
    groups = jax.tree.map(lambda leaf: leaf.reshape(number // size, size, *leaf.shape[1:]), arguments)
    return jax.tree.map(lambda leaf: leaf.reshape(number, *leaf.shape[2:]), lax.map(of_group, groups))


def group_size(number: int, convolutions: int = 0) -> int:
    """How many of the chains are written out: all of up to five; of more, the largest number up to four that divides them.

    Fewer where one chain has so many convolutions that they would not be compiled in minutes.
    """
    largest = number if number <= _MAX_WHOLE else _MAX_GROUP
    largest = min(largest, max(_MAX_CONVOLUTIONS // max(convolutions, 1), 1))
    return max(size for size in range(1, largest + 1) if number % size == 0)


def choose_mode(asked: str, potential: Potential, one: Any) -> str:
    """The mode that was asked for; for "auto" the fastest for the potential of positions like `one` on this device."""
    if asked != "auto":
        return asked
    # Kernels of convolutions have three axes or more; without such leaves there is no need to look.
    if all(len(leaf.shape) < 3 for leaf in jax.tree.leaves(one)) or not _convolves(potential, one):
        return "vmap"
    return "unroll" if jax.default_backend() == "gpu" else "map"


def _convolves(potential: Potential, one: Any) -> bool:
    potential = as_arguments(potential, number_dtype(one))

    def energy(position):
        key, zero = jnp.zeros(2, jnp.uint32), jnp.zeros((), jnp.int32)
        noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(key, key, zero[None], position))
        return potential.evaluate(position, potential.batch(key, zero), noise, potential.init_model_state()).energy

    return num_convolutions(jax.make_jaxpr(energy)(one)) > 0


def compiler_options(mode: str) -> tuple[tuple[str, str], ...]:
    """What the compiler is asked for: on a GPU, that chains which are written out run side by side."""
    return _GRAPHS if mode == "unroll" and jax.default_backend() == "gpu" else ()
