"""Losses of networks, minus the log likelihood of every example, and the outputs that they take."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from isotherm.foundation.errors import check_choice, check_real, refuse
from isotherm.foundation.parts import Part, Static

Loss = Callable[[Array, Array], Array]

# Logits of classes along the last axis, one logit of class 1, or values other than logits.
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
    """Targets in the shape of the outputs. Axes of one may differ, and one side may have its axes flattened."""
    own, wanted = ([size for size in array.shape[1:] if size != 1] for array in (targets, outputs))
    if own != wanted and len(own) > 1 and len(wanted) > 1:
        remedy = "Transpose the targets, or the outputs: their axes are in another order."
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
        errors = (outputs - _like(targets, outputs)) / self.scale
        constant = jnp.log(self.scale) + 0.5 * math.log(2 * math.pi)
        return jnp.sum(0.5 * errors**2 + constant, axis=tuple(range(1, outputs.ndim)))


@dataclasses.dataclass(frozen=True, eq=False)
class OwnLoss(Part):
    """A custom loss, `function`, with its kind of `outputs`."""

    function: Loss
    outputs: Static[str]

    def __call__(self, outputs: Array, targets: Array) -> Array:
        return self.function(outputs, targets)


LOSSES: dict[str, Loss] = {
    "cross_entropy": cross_entropy,
    "binary_cross_entropy": binary_cross_entropy,
    "squared_error": squared_error,
}
_KINDS = ((cross_entropy, "logits"), (binary_cross_entropy, "logit"), (squared_error, "values"))


def as_loss(loss: str | Loss, outputs: str | None = None) -> Loss:
    """A loss from its name, or the function itself, with the kind of its outputs where the user gives it."""
    found = loss if callable(loss) else LOSSES[check_choice("loss", loss, tuple(LOSSES))]
    if outputs is None:
        return found
    known = output_kind(found)
    if check_choice("outputs", outputs, OUTPUTS) == known:
        return found
    if known is not None:
        rule = f'"{known}" for the loss "{getattr(found, "__name__", type(found).__name__)}"'
        refuse("outputs", rule, repr(outputs), "Leave it out: it is for losses of your own.")
    return OwnLoss(found, outputs)


def output_kind(loss: Any) -> str | None:
    """Which of `OUTPUTS` a loss takes; None where neither the loss nor the user said.

    Example:
        >>> output_kind(squared_error), output_kind(lambda outputs, targets: outputs)
        ('values', None)
    """
    known = [kind for built_in, kind in _KINDS if loss is built_in]
    kind = known[0] if known else getattr(loss, "outputs", None)
    return kind if isinstance(kind, str) and kind in OUTPUTS else None


def constant_loss(loss: Loss, targets: Any) -> float | None:
    """The lowest sum of losses of a constant prediction; None where it is not known."""
    if isinstance(targets, Tracer) or not hasattr(targets, "dtype") or targets.ndim > 2:
        return None
    if loss is binary_cross_entropy or (loss is cross_entropy and targets.ndim == 1):
        counts = np.unique(np.asarray(targets), return_counts=True)[1]
        return float(-np.sum(counts * np.log(counts / counts.sum())))
    if loss is squared_error or isinstance(loss, Gaussian):
        values = np.asarray(targets, np.float64).reshape(len(targets), -1)
        mean = np.broadcast_to(values.mean(axis=0), values.shape)
        return float(jnp.sum(loss(jnp.asarray(mean), jnp.asarray(values))))
    return None
