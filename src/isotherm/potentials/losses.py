"""Losses of networks: minus the log likelihood of every example."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from isotherm.foundation.errors import check_choice, check_real, refuse
from isotherm.foundation.parts import Part

Loss = Callable[[Array, Array], Array]


def cross_entropy(outputs: Array, labels: Array) -> Array:
    """-log softmax(outputs) at integer labels.

    Example:
        >>> cross_entropy(jnp.zeros((1, 4)), jnp.array([2]))
        Array([1.3862944], dtype=float32)
    """
    log_probabilities = jax.nn.log_softmax(outputs)
    return -jnp.take_along_axis(log_probabilities, labels[..., None].astype(jnp.int32), axis=-1)[..., 0]


def squared_error(outputs: Array, targets: Array) -> Array:
    """The sum of squared errors of an example: a Gaussian likelihood of variance 1/2, as in the thesis' regressions.

    Example:
        >>> squared_error(jnp.array([[3.0]]), jnp.array([1.0]))
        Array([4.], dtype=float32)
    """
    return jnp.sum((outputs - targets.reshape(outputs.shape)) ** 2, axis=tuple(range(1, outputs.ndim)))


@dataclasses.dataclass(frozen=True, eq=False)
class Gaussian(Part):
    """A Gaussian likelihood with known standard deviation `scale`, with its normalizing constant."""

    scale: float = 1.0

    def __post_init__(self):
        check_real("scale", self.scale, "Give the standard deviation of the noise.", above=0.0)

    def __call__(self, outputs: Array, targets: Array) -> Array:
        """-log density of every example."""
        errors = (outputs - targets.reshape(outputs.shape)) / self.scale
        constant = jnp.log(self.scale) + 0.5 * math.log(2 * math.pi)
        return jnp.sum(0.5 * errors**2 + constant, axis=tuple(range(1, outputs.ndim)))


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
    if loss is squared_error or isinstance(loss, Gaussian):
        values = np.asarray(targets, np.float64)
        mean = jnp.asarray(np.broadcast_to(values.mean(axis=0), values.shape))
        return float(jnp.sum(loss(mean.reshape(len(values), -1), jnp.asarray(values).reshape(len(values), -1))))
    return None


LOSSES: dict[str, Loss] = {"cross_entropy": cross_entropy, "squared_error": squared_error}


def as_loss(loss: str | Loss) -> Loss:
    """A loss from its name, or the function itself."""
    if callable(loss):
        return loss
    return LOSSES[check_choice("loss", loss, tuple(LOSSES))]
