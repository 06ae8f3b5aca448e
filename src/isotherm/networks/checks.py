"""Whether the outputs of a network suit its loss and its data, before any work."""

from typing import Any

import jax

from isotherm.foundation.errors import refuse
from isotherm.networks.dropout import check_dropout
from isotherm.networks.losses import LOSSES, Gaussian, check_apart, check_classes, check_logits, check_two_classes
from isotherm.networks.softmax import traced_outputs, warn_of_probabilities


def check_pair(data: Any) -> None:
    """Refuse data that are no inputs and targets."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        refuse("data", "a pair (inputs, targets)", type(data).__name__, "Give the inputs first.")


def check_outputs(potential: Any, stacklevel: int) -> None:
    """Refuse labels, losses and dropout that a network cannot have; `stacklevel` is that of warnings, from the caller."""
    shapes, loss, kind = _shapes_of_two(potential), potential.loss, potential.output_kind
    is_own = loss not in LOSSES.values() and not isinstance(loss, Gaussian)
    traced = traced_outputs(potential.outputs, *shapes) if is_own or kind != "values" else None
    if traced is not None:
        output = traced.out_avals[0]
        check_logits(kind, output.shape)
        if is_own:
            check_apart(loss, output, potential.data[1])
        elif kind == "logits":
            check_classes(potential.data[1], output.shape)
        elif kind == "logit":
            check_two_classes(potential.data[1])
        warn_of_probabilities(traced.jaxpr, kind, stacklevel=stacklevel + 1)
    if potential.has_dropout:
        check_dropout(potential.outputs, *shapes)


def _shapes_of_two(potential: Any) -> tuple[Any, Any]:
    """Shapes of the weights, and of the inputs of two examples."""
    init = potential.init
    weights = jax.eval_shape(init, jax.random.key(0)) if callable(init) else init
    inputs = potential.data[0]
    return weights, jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape[1:]), leaf.dtype), inputs)
