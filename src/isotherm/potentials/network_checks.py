"""Whether the outputs of a network suit its loss and its data, before any work."""

from typing import Any

import jax

from isotherm.potentials.dropout import check_dropout
from isotherm.potentials.losses import LOSSES, Gaussian, check_apart, check_classes, cross_entropy
from isotherm.potentials.softmax import traced_outputs, warn_of_softmax


def check_outputs(potential: Any, stacklevel: int) -> None:
    """Refuse labels, losses and dropout that a network cannot have; `stacklevel` is that of warnings, from the caller."""
    shapes, loss = _shapes_of_two(potential), potential.loss
    is_own = loss not in LOSSES.values() and not isinstance(loss, Gaussian)
    traced = traced_outputs(potential.outputs, *shapes) if is_own or loss is cross_entropy else None
    if traced is not None and is_own:
        check_apart(loss, traced.out_avals[0], potential.data[1])
    elif traced is not None:
        check_classes(potential.data[1], traced.out_avals[0].shape)
        warn_of_softmax(traced.jaxpr, stacklevel=stacklevel + 1)
    if potential.has_dropout:
        check_dropout(potential.outputs, *shapes)


def _shapes_of_two(potential: Any) -> tuple[Any, Any]:
    """Shapes of the weights, and of the inputs of two examples."""
    init = potential.init
    weights = jax.eval_shape(init, jax.random.key(0)) if callable(init) else init
    inputs = potential.data[0]
    return weights, jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape[1:]), leaf.dtype), inputs)
