"""Losses of networks: minus the log likelihood of every example, and what the outputs that they take mean."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from scipy.special import xlogy

from isotherm.foundation.errors import check_choice, check_real, refuse
from isotherm.foundation.parts import Part, Static

Loss = Callable[[Array, Array], Array]

# Logits of classes along the last axis, one logit of class 1, or values that are no logits.
OUTPUTS = ("logits", "logit", "values")


def cross_entropy(outputs: Array, labels: Array) -> Array:
    """-log softmax(outputs) at integer labels.

    Example:
        >>> cross_entropy(jnp.zeros((1, 4)), jnp.array([2]))
        Array([1.3862944], dtype=float32)
    """
    log_probabilities = jax.nn.log_softmax(outputs)
    return -jnp.take_along_axis(log_probabilities, labels[..., None].astype(jnp.int32), axis=-1)[..., 0]


def binary_cross_entropy(outputs: Array, labels: Array) -> Array:
    """-log sigmoid(outputs) at label 1 and -log sigmoid(-outputs) at label 0, for networks with one output.

    Example:
        >>> binary_cross_entropy(jnp.zeros((2, 1)), jnp.array([0, 1]))
        Array([0.6931472, 0.6931472], dtype=float32)
    """
    logits = outputs.reshape(len(outputs))
    return jax.nn.softplus(logits) - labels.reshape(len(outputs)).astype(logits.dtype) * logits


def squared_error(outputs: Array, targets: Array) -> Array:
    """The sum of squared errors of an example: a Gaussian likelihood of variance 1/2, as in the thesis' regressions.

    Example:
        >>> squared_error(jnp.array([[3.0]]), jnp.array([1.0]))
        Array([4.], dtype=float32)
    """
    return jnp.sum((outputs - _like(targets, outputs)) ** 2, axis=tuple(range(1, outputs.ndim)))


def _like(targets: Array, outputs: Array) -> Array:
    """Targets in the shape of the outputs, but for axes of one, and for the axes of one side being written as a single one."""
    own, wanted = ([size for size in array.shape[1:] if size != 1] for array in (targets, outputs))
    if own != wanted and len(own) > 1 and len(wanted) > 1:
        remedy = "Transpose the targets, or the outputs: their axes stand in another order."
        refuse("data", f"(inputs, targets) with targets of shape {outputs.shape}", f"shape {targets.shape}", remedy)
    return targets.reshape(outputs.shape)


@dataclasses.dataclass(frozen=True, eq=False)
class Gaussian(Part):
    """A Gaussian likelihood with known standard deviation `scale`, with its normalizing constant."""

    scale: float = 1.0

    outputs: ClassVar[str] = "values"

    def __post_init__(self):
        check_real("scale", self.scale, "Give the standard deviation of the noise.", above=0.0)

    def __call__(self, outputs: Array, targets: Array) -> Array:
        """-log density of every example."""
        errors = (outputs - _like(targets, outputs)) / self.scale
        constant = jnp.log(self.scale) + 0.5 * math.log(2 * math.pi)
        return jnp.sum(0.5 * errors**2 + constant, axis=tuple(range(1, outputs.ndim)))


@dataclasses.dataclass(frozen=True, eq=False)
class OwnLoss(Part):
    """A loss of a user's, who said what the outputs mean.

    Attributes:
        function: the loss.
        outputs: one of `OUTPUTS`.
    """

    function: Loss
    outputs: Static[str]

    def __call__(self, outputs: Array, targets: Array) -> Array:
        """What the function returns."""
        return self.function(outputs, targets)


def output_kind(loss: Any) -> str | None:
    """Which of `OUTPUTS` a loss takes; None for a function that does not say.

    Example:
        >>> output_kind(squared_error), output_kind(lambda outputs, targets: outputs)
        ('values', None)
    """
    known = next((kind for built_in, kind in _KINDS if loss is built_in), None)
    said = known or getattr(loss, "outputs", None)
    return said if isinstance(said, str) and said in OUTPUTS else None


def check_logits(kind: str | None, output_shape: tuple[int, ...]) -> None:
    """Refuse a network whose outputs, of some examples, cannot be the logits that its loss takes."""
    num_rest = math.prod(output_shape[1:])
    if kind == "logits" and (len(output_shape) < 2 or output_shape[-1] < 2):
        remedy = (
            'Give the network an output for each class. For one output, the logit of class 1, the loss is "binary_cross_entropy"; '
            'of a loss of your own say outputs="logit".'
        )
        refuse("network", "one with two outputs or more, the logits of classes", f"outputs {output_shape[1:]}", remedy)
    if kind == "logit" and (num_rest != 1 or len(output_shape) > 2):
        remedy = 'Give it one output, the logit of class 1, or take "cross_entropy" for one output for each class.'
        refuse("network", "one with a single output for each example", f"outputs {output_shape[1:]}", remedy)


def check_two_classes(labels: Any) -> None:
    """Refuse targets of `binary_cross_entropy`, of all examples, that are no labels 0 and 1."""
    if isinstance(labels, Tracer):
        return
    if np.shape(labels)[1:] not in ((), (1,)):
        remedy = 'For more classes than two the loss is "cross_entropy".'
        refuse(
            "data", "(inputs, labels) with one label for every example", f"targets of shape {np.shape(labels)}", remedy
        )
    found = np.asarray(labels)
    if not np.all((found == 0) | (found == 1)):
        got = f"targets from {found.min():g} to {found.max():g}" + " that are not whole" * bool(
            np.any(found != np.round(found))
        )
        refuse(
            "data",
            "(inputs, labels) with labels 0 and 1",
            got,
            "Write the class of the logit as 1, and the other as 0.",
        )


def check_classes(labels: Any, output_shape: tuple[int, ...]) -> None:
    """Refuse targets of `cross_entropy`, of all examples, that are no labels of a network with outputs of such a shape."""
    if isinstance(labels, Tracer):
        return
    if np.ndim(labels) != len(output_shape) - 1:
        rule = f"(inputs, labels) with one whole number for every example, as outputs of shape {output_shape} say"
        remedy = "Of one-hot labels take `labels.argmax(-1)`; drop an axis of one with `labels[:, 0]`."
        refuse("data", rule, f"targets of shape {np.shape(labels)}", remedy)
    found = np.asarray(labels)
    lowest, highest, classes = found.min(), found.max(), output_shape[-1]
    if np.any(found != np.round(found)) or lowest < 0 or highest >= classes:
        got = f"targets from {lowest:g} to {highest:g}" + " that are not whole" * bool(np.any(found != np.round(found)))
        remedy = 'Count classes from 0, and give the network an output for each. For a regression the loss is "squared_error".'
        refuse("data", f"(inputs, labels) with labels from 0 to {classes - 1}, one for each output", got, remedy)


def check_apart(loss: Loss, output: Any, targets: Any) -> None:
    """Refuse a loss of a user's whose value for an example depends on the other examples of a batch.

    `output` has the shape and the type of the outputs of some examples. What fails here fails in sampling, which says more.
    """
    number = min(3, len(jax.tree.leaves(targets)[0]))
    if number < 2:
        return
    rng = np.random.default_rng(0)
    outputs = jnp.asarray(rng.normal(size=(number, *output.shape[1:])), output.dtype)
    rows = jax.tree.map(lambda leaf: jnp.asarray(leaf[:number]), targets)
    try:
        whole = np.asarray(loss(outputs, rows))
        single = [
            np.asarray(loss(outputs[k : k + 1], jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], rows)))
            for k in range(number)
        ]
    except Exception:
        return
    if whole.shape[:1] == (number,) and not np.allclose(
        whole, np.concatenate(single), rtol=1e-2, atol=1e-5, equal_nan=True
    ):
        remedy = "Return the loss of every example alone, without means over the batch: these are scaled to the sum over all data."
        refuse(
            "loss", "a function whose value for an example is its own", "one that mixes the examples of a batch", remedy
        )


def constant_loss(loss: Loss, targets: Any) -> float | None:
    """The lowest sum of losses over all examples for one prediction for all of them; None where it is not known."""
    if isinstance(targets, Tracer) or not hasattr(targets, "dtype") or targets.ndim > 2:
        return None
    if loss is cross_entropy:
        if targets.ndim != 1:
            return None
        counts = np.unique(np.asarray(targets), return_counts=True)[1]
        return float(-np.sum(counts * np.log(counts / counts.sum())))
    if loss is binary_cross_entropy:
        share = np.mean(np.asarray(targets, np.float64))
        return float(targets.size * -np.sum(xlogy([share, 1.0 - share], [share, 1.0 - share])))
    if loss is squared_error or isinstance(loss, Gaussian):
        values = np.asarray(targets, np.float64)
        mean = jnp.asarray(np.broadcast_to(values.mean(axis=0), values.shape))
        return float(jnp.sum(loss(mean.reshape(len(values), -1), jnp.asarray(values).reshape(len(values), -1))))
    return None


LOSSES: dict[str, Loss] = {
    "cross_entropy": cross_entropy,
    "binary_cross_entropy": binary_cross_entropy,
    "squared_error": squared_error,
}
_KINDS = ((cross_entropy, "logits"), (binary_cross_entropy, "logit"), (squared_error, "values"))


def as_loss(loss: str | Loss, outputs: str | None = None) -> Loss:
    """A loss from its name, or the function itself, with what a user says of the outputs that it takes."""
    found = loss if callable(loss) else LOSSES[check_choice("loss", loss, tuple(LOSSES))]
    if outputs is None:
        return found
    known = output_kind(found)
    if check_choice("outputs", outputs, OUTPUTS) == known:
        return found
    if known is not None:
        remedy = "It says what a loss of your own takes; leave it out for one that knows."
        refuse(
            "outputs",
            f'"{known}" for the loss "{getattr(found, "__name__", type(found).__name__)}"',
            repr(outputs),
            remedy,
        )
    return OwnLoss(found, outputs)
