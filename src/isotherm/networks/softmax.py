"""Whether a network ends in a softmax or a sigmoid, where a loss takes what goes into one."""

import warnings
from collections.abc import Callable
from typing import Any

import jax

from isotherm.foundation.errors import InputError

# What changes the form or the type of an array, and not its numbers.
_SAME_NUMBERS = ("convert_element_type", "reshape", "squeeze", "transpose", "copy", "stop_gradient", "broadcast_in_dim")


def traced_outputs(outputs: Callable[..., Any], weights: Any, inputs: Any) -> Any:
    """The outputs at weights and inputs of these shapes, traced; None for a network that fails, of which sampling says more."""
    try:
        return jax.make_jaxpr(outputs)(weights, inputs)
    except InputError:
        raise
    except Exception:
        return None


def warn_of_probabilities(program: Any, kind: str | None, stacklevel: int) -> None:
    """Warn of a network, traced, that returns probabilities where its loss takes logits.

    `kind` is that of the outputs, as the loss says; `stacklevel` that of the warning, from the caller.
    """
    if kind == "logits" and _is_softmax(program, program.outvars[0]):
        message = (
            "The network ends in a softmax, and its loss takes the softmax of what it returns: the likelihood would be "
            "nearly flat. Return the logits; `predict` makes probabilities of them."
        )
    elif kind == "logit" and _is_sigmoid(program, program.outvars[0]):
        message = (
            "The network ends in a sigmoid, and its loss takes the sigmoid of what it returns: probabilities would stay "
            "between 0.5 and 0.73. Return the logit; `predict` makes probabilities of it."
        )
    else:
        return
    warnings.warn(message, stacklevel=stacklevel + 1)


def _is_sigmoid(program: Any, variable: Any) -> bool:
    _, operation = _maker(program, variable)
    return operation is not None and operation.primitive.name == "logistic"


def _is_softmax(program: Any, variable: Any) -> bool:
    """Whether a variable of a program is exp(...) over something."""
    inner, operation = _maker(program, variable)
    if operation is None or operation.primitive.name != "div":
        return False
    _, above = _maker(inner, operation.invars[0])
    return above is not None and above.primitive.name == "exp"


def _maker(program: Any, variable: Any) -> tuple[Any, Any]:
    """The operation that makes the numbers of a variable, and the program it stands in; None for an argument."""
    operation = next((each for each in program.eqns if variable in each.outvars), None)
    if operation is None:
        return program, None
    if operation.primitive.name in _SAME_NUMBERS:
        return _maker(program, operation.invars[0])
    within = operation.params.get("jaxpr") or operation.params.get("call_jaxpr")
    if within is None:
        return program, operation
    within = getattr(within, "jaxpr", within)
    return _maker(within, within.outvars[operation.outvars.index(variable)])
