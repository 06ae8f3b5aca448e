"""How a program computes the chains of a run: vectorized, in sequence, or written out."""

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
# More chains in one body compile for minutes and run no faster. Five is the usual number of repeats, and a prime.
_MAX_GROUP, _MAX_WHOLE = 4, 5
# In one body, forward and backward. Four ResNet-20 have 248 and compile in 70 to 90 s on one GPU, two ResNet-56 508 and 100 s; four
# ResNet-56 did not compile in 800 s.
_MAX_CONVOLUTIONS = 600


def over_chains(mode: str, function: Callable[..., Any], *arguments: Any, drops_axis_of_one: bool = False) -> Any:
    """`function` for every chain along the leading axis.

    "vmap" computes all at once, or with "vmap:8" eight at once; "map" one after another. "unroll" writes chains out in the program,
    in groups of up to four (or all five), so that a GPU runs their convolutions side by side: a batched convolution is slower than
    several.

    `drops_axis_of_one` runs a single chain without its axis: a batched product of one is slower than a product. Elementwise work
    fuses better with it.
    """
    number = len(jax.tree.leaves(arguments)[0])
    function = for_loops(function) if mode == "map" else function
    if drops_axis_of_one and number == 1:
        return jax.tree.map(lambda leaf: leaf[None], function(*jax.tree.map(lambda leaf: leaf[0], arguments)))
    mode, _, at_once = mode.partition(":")
    if mode == "vmap" and at_once and number > int(at_once):
        return lax.map(lambda one: function(*one), arguments, batch_size=int(at_once))
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
        results = [of_chain(*jax.tree.map(lambda leaf, k=k: leaf[k], group)) for k in range(size)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)

    if size == number:
        return of_group(arguments)
    groups = jax.tree.map(lambda leaf: leaf.reshape(number // size, size, *leaf.shape[1:]), arguments)
    return jax.tree.map(lambda leaf: leaf.reshape(number, *leaf.shape[2:]), lax.map(of_group, groups))


def group_size(number: int, convolutions: int = 0) -> int:
    """Chains per body: all of up to five, or the largest divisor up to four. Fewer if their convolutions compile too long."""
    largest = number if number <= _MAX_WHOLE else _MAX_GROUP
    largest = min(largest, max(_MAX_CONVOLUTIONS // max(convolutions, 1), 1))
    return max(size for size in range(1, largest + 1) if number % size == 0)


def choose_mode(asked: str, potential: Potential, one: Any) -> str:
    """The mode asked for; "auto" is the fastest on this device for positions like `one`."""
    if asked != "auto":
        return asked
    # Kernels of convolutions have three axes or more.
    if all(len(leaf.shape) < 3 for leaf in jax.tree.leaves(one)):
        return "vmap"
    potential = as_arguments(potential, number_dtype(one))

    def energy(position):
        key, zero = jnp.zeros(2, jnp.uint32), jnp.zeros((), jnp.int32)
        noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(key, key, zero[None], position))
        return potential.evaluate(position, potential.batch(key, zero), noise, potential.init_model_state()).energy

    if num_convolutions(jax.make_jaxpr(energy)(one)) == 0:
        return "vmap"
    return "unroll" if jax.default_backend() == "gpu" else "map"
