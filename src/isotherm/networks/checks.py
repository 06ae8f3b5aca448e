"""Checks on networks, losses and data before any work: do the outputs suit the loss and the targets, does dropout drop anything."""

import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from isotherm.foundation.errors import InputError, refuse
from isotherm.foundation.user_functions import call_traced
from isotherm.networks.losses import LOSSES, Gaussian, Loss

# Operations that change the form or the type of an array, and not its numbers.
_SAME_NUMBERS = ("convert_element_type", "reshape", "squeeze", "transpose", "copy", "stop_gradient", "broadcast_in_dim")


def check_pair(data: Any) -> None:
    """Refuse data other than a pair of inputs and targets."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        refuse("data", "a pair (inputs, targets)", type(data).__name__, "Give the inputs first.")


def weight_shapes(potential: Any) -> Any:
    """The weights of a network, or their shapes where they are drawn."""
    init = potential.init
    return jax.eval_shape(init, jax.random.key(0)) if callable(init) else init


def check_outputs(potential: Any, stacklevel: int) -> None:
    """Refuse labels, a loss or dropout that do not suit the network; `stacklevel` is that of warnings, from the caller."""
    weights, loss, kind, targets = weight_shapes(potential), potential.loss, potential.output_kind, potential.data[1]
    two = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape[1:]), leaf.dtype), potential.data[0])
    is_own = loss not in LOSSES.values() and not isinstance(loss, Gaussian)
    traced = _traced(potential, weights, two) if is_own or kind != "values" else None
    if traced is not None:
        output = traced.out_avals[0]
        _check_logits(kind, output.shape)
        if is_own:
            _check_independence(loss, output, targets)
        elif not isinstance(targets, Tracer):
            _check_labels(targets, output.shape, is_binary=kind == "logit")
        _warn_of_probabilities(traced.jaxpr, kind, stacklevel + 1)
    if potential.has_dropout:
        _check_dropout(potential, weights, two)


def _traced(potential: Any, weights: Any, inputs: Any) -> Any:
    """The outputs as a program; None for a network that fails, which sampling reports in more detail."""
    try:
        return jax.make_jaxpr(potential.outputs)(weights, inputs)
    except InputError:
        raise
    except Exception:
        return None


def _check_logits(kind: str | None, output_shape: tuple[int, ...]) -> None:
    """Refuse outputs that cannot be the logits that the loss takes."""
    got = f"outputs {output_shape[1:]}"
    if kind == "logits" and (len(output_shape) < 2 or output_shape[-1] < 2):
        remedy = (
            'Give the network an output for each class. For one output, the logit of class 1, the loss is "binary_cross_entropy"; '
            'of a loss of your own say outputs="logit".'
        )
        refuse("network", "one with two outputs or more, the logits of classes", got, remedy)
    if kind == "logit" and (math.prod(output_shape[1:]) != 1 or len(output_shape) > 2):
        remedy = 'Give it one output, the logit of class 1, or take "cross_entropy" for one output for each class.'
        refuse("network", "one with a single output for each example", got, remedy)


def _check_labels(labels: Any, output_shape: tuple[int, ...], is_binary: bool) -> None:
    """Refuse targets of a built-in loss that are no class numbers."""
    if is_binary:
        num_classes, is_shaped, labels_of = 2, np.shape(labels)[1:] in ((), (1,)), "labels 0 and 1"
        one, to_shape = "one label for every example", 'For more classes than two the loss is "cross_entropy".'
        remedy = "Write the class of the logit as 1, and the other as 0."
    else:
        num_classes, is_shaped = output_shape[-1], np.ndim(labels) == len(output_shape) - 1
        labels_of = f"labels from 0 to {num_classes - 1}, one for each output"
        one = f"one whole number for every example, as outputs of shape {output_shape} say"
        to_shape = "Of one-hot labels take `labels.argmax(-1)`; drop an axis of one with `labels[:, 0]`."
        remedy = 'Count classes from 0, and give the network an output for each. For a regression the loss is "squared_error".'
    if not is_shaped:
        refuse("data", f"(inputs, labels) with {one}", f"targets of shape {np.shape(labels)}", to_shape)
    found = np.asarray(labels)
    is_whole = np.all(found == np.round(found))
    if not is_whole or found.min() < 0 or found.max() >= num_classes:
        got = f"targets from {found.min():g} to {found.max():g}" + ("" if is_whole else " that are not whole")
        refuse("data", f"(inputs, labels) with {labels_of}", got, remedy)


def _check_independence(loss: Loss, output: Any, targets: Any) -> None:
    """Refuse a custom loss whose value for an example depends on the other examples. What fails here fails in sampling too."""
    number = min(3, len(jax.tree.leaves(targets)[0]))
    if number < 2:
        return
    normal = np.random.default_rng(0).normal(size=(number, *output.shape[1:]))
    rows = jnp.asarray(normal, output.dtype), jax.tree.map(lambda leaf: jnp.asarray(leaf[:number]), targets)
    try:
        whole = np.asarray(loss(*rows))
        single = [loss(*jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], rows)) for k in range(number)]
        alone = np.concatenate([np.asarray(value) for value in single])
    except Exception:
        return
    if whole.shape[:1] == (number,) and not np.allclose(whole, alone, rtol=1e-2, atol=1e-5, equal_nan=True):
        rule, got = "a function whose value for an example is its own", "one that mixes the examples of a batch"
        remedy = "Return the loss of every example alone, without means over the batch: these are scaled to the sum over all data."
        refuse("loss", rule, got, remedy)


def _warn_of_probabilities(program: Any, kind: str | None, stacklevel: int) -> None:
    """Warn of a network that returns probabilities to a loss that takes logits."""
    inner, last = _maker(program, program.outvars[0])
    if last is None:
        return
    if kind == "logit" and last.primitive.name == "logistic":
        message = (
            "The network ends in a sigmoid, and its loss takes the sigmoid of what it returns: probabilities would stay "
            "between 0.5 and 0.73. Return the logit; `predict` makes probabilities of it."
        )
        warnings.warn(message, stacklevel=stacklevel + 1)
    if kind == "logits" and last.primitive.name == "div":
        _, above = _maker(inner, last.invars[0])
        if above is not None and above.primitive.name == "exp":
            message = (
                "The network ends in a softmax, and its loss takes the softmax of what it returns: the likelihood would be "
                "nearly flat. Return the logits; `predict` makes probabilities of them."
            )
            warnings.warn(message, stacklevel=stacklevel + 1)


def _maker(program: Any, variable: Any) -> tuple[Any, Any]:
    """The operation that makes the numbers of a variable, and the program around it; None for an argument."""
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


def _check_dropout(potential: Any, weights: Any, inputs: Any) -> None:
    """Refuse `dropout="on"` for a network whose training outputs do not depend on the key of the masks."""
    remedy = (
        'Enable its dropout layers: in linen pass `train_argument="train"`, say, in nnx call them without `deterministic`, in '
        "Equinox pass them the `key` that the model is called with."
    )

    def trained(key, weights, inputs):
        return potential.outputs(weights, inputs, key=key, is_training=True)

    rule, given = '"off" for a network that fails with a key of masks', (jax.random.key(0), weights, inputs)
    program = call_traced("dropout", rule, jax.make_jaxpr(trained), *given, where=remedy).jaxpr
    # All that depends on the key, operation by operation.
    reached = {id(program.invars[0])}
    for operation in program.eqns:
        if any(id(given) in reached for given in operation.invars):
            reached.update(id(result) for result in operation.outvars)
    if not any(id(result) in reached for result in program.outvars):
        refuse("dropout", '"off" for a network that drops nothing in training', '"on"', remedy)
