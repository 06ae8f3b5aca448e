"""Convolutions in the layout that XLA computes fast in loops on CPUs.

XLA has a fast routine for convolutions with channels last (NHWC images, HWIO kernels). Outside of loops it transposes others to
that layout; inside loops it computes them naively, among them the gradients of every convolution. `for_loops` interprets a traced
function and transposes them: a small network runs ten times as fast.

`for_loops` is the only entrance. If JAX changes what the interpreter relies on, functions run as they are: slower, with the same
results. Delete it when XLA transposes convolutions inside loops: the control in tests/unit/test_convolutions.py then fails.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array, lax

_NAME = "conv_general_dilated"
# Operations that call another program, and its name among their parameters.
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr"}


def num_convolutions(traced: Any) -> int:
    """Convolutions of a traced function."""
    return str(traced).count(f"{_NAME}[")


def for_loops(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, on CPUs with channels last; convolutions in loops of its own stay as they are."""
    if jax.default_backend() != "cpu":
        return function

    def with_channels_last(*arguments):
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        try:
            found = _evaluate(traced.jaxpr, traced.consts, jax.tree.leaves(arguments))
            return jax.tree.unflatten(jax.tree.structure(shapes), found)
        except Exception:
            return function(*arguments)

    return with_channels_last


def _evaluate(program: Any, constants: Any, arguments: list[Any]) -> list[Any]:
    values = dict(zip([*program.constvars, *program.invars], [*constants, *arguments], strict=True))

    def read(variable):
        return variable.val if hasattr(variable, "val") else values[variable]

    for operation in program.eqns:
        given, name = [read(variable) for variable in operation.invars], operation.primitive.name
        if name == _NAME:
            found = [channels_last(*given, **operation.params)]
        elif name in _CALLS:
            within = operation.params[_CALLS[name]]
            found = _evaluate(within.jaxpr, within.consts, given)
        else:
            # Some versions of JAX return functions apart from the other parameters.
            bound: Any = operation.primitive.get_bind_params(operation.params)
            functions, options = bound if isinstance(bound, tuple) else ((), bound)
            found = operation.primitive.bind(*functions, *given, **options)
            found = found if operation.primitive.multiple_results else [found]
        values.update(zip(operation.outvars, found, strict=True))
    return [read(variable) for variable in program.outvars]


def channels_last(images: Array, kernel: Array, *, dimension_numbers: Any, **options: Any) -> Array:
    """A convolution of any dimension numbers, computed with channels last; `options` are those of JAX's operation."""
    of_images, of_kernel, of_output = dimension_numbers
    last = len(of_images) - 1
    places = tuple(range(1, last))
    numbers = lax.ConvDimensionNumbers((0, last, *places), (last, last - 1, *range(last - 1)), (0, last, *places))
    images = lax.transpose(images, (of_images[0], *of_images[2:], of_images[1]))
    kernel = lax.transpose(kernel, (*of_kernel[2:], of_kernel[1], of_kernel[0]))
    found = lax.conv_general_dilated_p.bind(images, kernel, dimension_numbers=numbers, **options)
    # The axis of `found` for each axis of the output.
    back = dict(zip((of_output[0], *of_output[2:], of_output[1]), range(last + 1), strict=True))
    return lax.transpose(found, tuple(back[axis] for axis in range(last + 1)))
