"""Whether dropout that is asked for drops anything."""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array

from isotherm.foundation.errors import refuse
from isotherm.foundation.user_functions import call_traced

_REMEDY = (
    'Wake its layers of dropout: in linen by `train_argument="train"`, say, in nnx by calls without `deterministic`, in Equinox by '
    "handing them the `key` that the model is called with."
)


def check_dropout(outputs: Callable[..., Array], weights: Any, inputs: Any) -> None:
    """Refuse `dropout="on"` for a network whose outputs in training do not depend on the key that masks are drawn with.

    Args:
        outputs: maps (weights, inputs), with `key` and `is_training`, to outputs.
        weights: or their shapes.
        inputs: of some examples, or their shapes.
    """

    def trained(key, weights, inputs):
        return outputs(weights, inputs, key=key, is_training=True)

    rule = '"off" for a network that fails with a key of masks'
    program = call_traced(
        "dropout", rule, jax.make_jaxpr(trained), jax.random.key(0), weights, inputs, where=_REMEDY
    ).jaxpr
    # What the key has gone into, operation by operation.
    reached = {id(program.invars[0])}
    for operation in program.eqns:
        if any(id(given) in reached for given in operation.invars):
            reached.update(id(result) for result in operation.outvars)
    if not any(id(result) in reached for result in program.outvars):
        refuse("dropout", '"off" for a network that drops nothing in training', '"on"', _REMEDY)
