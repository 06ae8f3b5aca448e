"""Checks on the arguments of predictions and scores."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from isotherm.foundation.errors import refuse, short
from isotherm.networks.checks import weight_shapes


def check_draws(name: str, value: Any) -> None:
    """Refuse a value without draws, such as a potential in place of a run."""
    if not all(hasattr(value, part) for part in ("draws", "model_state", "log_weights")):
        call = "`iso.predictive.predict(run, potential, inputs)`"
        refuse(name, "a run, or draws from elsewhere", short(value), f"The run comes before the potential: {call}.")
    lead = np.shape(value.log_weights)
    if len(lead) < 2:
        remedy = "Give every leaf, and the log weights, these two axes: `leaf[None]` for one chain."
        refuse(name, "draws with axes (chain, draw, ...)", f"log weights of shape {lead}", remedy)
    for leaf in jax.tree.leaves((value.draws, value.model_state)):
        if np.shape(leaf)[: len(lead)] != lead:
            rule = f"draws with leaves of shape ({', '.join(map(str, lead))}, ...)"
            refuse(name, rule, f"a leaf of shape {np.shape(leaf)}", "Give one log weight for each draw.")


def check_fit(name: str, draws: Any, potential: Any) -> None:
    """Refuse anything but the potential of a network, and draws of another network than its own."""
    check_network(potential)
    wanted = _leaf_shapes(weight_shapes(potential))
    got = {key: shape[np.ndim(draws.log_weights) :] for key, shape in _leaf_shapes(draws.draws).items()}
    if wanted != got:
        key = next(key for key in [*wanted, *got] if wanted.get(key) != got.get(key))
        shapes = (f"shape {where[key]}" if key in where else "nothing" for where in (wanted, got))
        rule, found = (f"{shape} at {key or 'the top'}" for shape in shapes)
        remedy = "Pass the potential that was sampled."
        refuse(name, f"draws of the potential's network, with {rule}", found, remedy)


def check_network(value: Any) -> None:
    """Refuse anything but the potential of a network."""
    if not callable(getattr(value, "outputs", None)):
        remedy = (
            "Pass the result of `iso.from_nnx`, `from_linen` or `from_equinox`; for other draws use `run.estimate`."
        )
        refuse("potential", "the potential of a network", short(value), remedy)


def _leaf_shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    found = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.shape(leaf) for path, leaf in found}


def check_inputs(potential: Any, inputs: Any) -> None:
    """Refuse inputs of another shape than the data, unless the network takes them."""
    known, found = ([np.shape(leaf) for leaf in jax.tree.leaves(tree)] for tree in (potential.data[0], inputs))
    if [shape[1:] for shape in known] == [shape[1:] for shape in found]:
        return
    try:
        is_taken = [len(shape) for shape in known] == [len(shape) for shape in found]
        jax.eval_shape(potential.outputs, weight_shapes(potential), jax.tree.map(jnp.asarray, inputs))
    except Exception:
        is_taken = False
    if not is_taken:
        wanted, got = (", ".join(map(str, shapes)) for shapes in (known, found))
        remedy = "Give examples along the first axis, each as in the potential's data: `inputs[None]` for a single one."
        refuse("inputs", f"of shape {wanted} but for the number of examples", f"shape {got}", remedy)


def check_classifier(potential: Any) -> str:
    """Return the kind of the network's outputs, "logits" or "logit", or refuse any other."""
    kind = getattr(potential, "output_kind", None)
    as_they_are = "`iso.predictive.outputs_of_draws(run, potential, inputs)`"
    if kind is None:
        remedy = (
            'Make the potential with outputs="logits" (one for each class), "logit" (of class 1), or "values" (of a regression, '
            f"a rate). {as_they_are} returns raw outputs."
        )
        refuse("potential", "that of a classifier", "a loss of your own that does not say what its outputs are", remedy)
    if kind == "values":
        remedy = f"For a regression use {as_they_are} and `intervals`."
        refuse("potential", "that of a classifier", "the loss of a regression", remedy)
    return kind


def check_labels(labels: ArrayLike, shape: tuple[int, ...], num_classes: int) -> np.ndarray:
    """Return integer labels of a shape, or refuse them."""
    try:
        y = np.asarray(labels)
    except ValueError:
        refuse("labels", f"integers of shape {shape}", short(labels), "Give one class number for each example.")
    if y.shape != shape or y.dtype.kind not in "biu":
        found = f"shape {y.shape} of {y.dtype}"
        remedy = "Give one class number for each example: of one-hot labels `labels.argmax(-1)`."
        refuse("labels", f"integers of shape {shape}", found, remedy)
    if y.min() < 0 or y.max() >= num_classes:
        refuse("labels", f"in [0, {num_classes})", f"{y.min()} to {y.max()}", "Number the classes from 0.")
    return y.astype(np.int64)


def check_probabilities(name: str, values: ArrayLike) -> np.ndarray:
    """Return rows of probabilities in float64, clipped to [0, 1], or refuse them."""
    p = as_numbers(name, values)
    if p.ndim != 2 or not p.size:
        refuse(name, "of shape (examples, classes)", f"shape {p.shape}", "Give one row for each example.")
    if not (np.isfinite(p).all() and p.min() >= -1e-5 and p.max() <= 1 + 1e-5):
        refuse(name, "finite and in [0, 1]", f"values in [{p.min()}, {p.max()}]", "Apply a softmax to logits first.")
    worst = p.sum(axis=1)[np.argmax(np.abs(p.sum(axis=1) - 1))]
    if abs(worst - 1) > 1e-3:
        refuse(name, "rows that sum to 1", f"a row of sum {worst:g}", "Put classes last and divide by their sum.")
    return p.clip(0.0, 1.0)


def check_values(name: str, values: ArrayLike, length: int | None = None) -> np.ndarray:
    """Return a vector of finite numbers in float64, or refuse it."""
    array = as_numbers(name, values)
    if array.ndim != 1 or not array.size or length not in (None, array.size):
        rule = "of shape (examples,)" if length is None else f"of shape ({length},)"
        refuse(name, rule, f"shape {array.shape}", "Give one number for each example.")
    if not np.isfinite(array).all():
        refuse(name, "finite", f"{array[~np.isfinite(array)][0]}", "Leave out the examples without a value.")
    return array


def check_weights(name: str, weights: ArrayLike | None, length: int) -> np.ndarray:
    """Return weights as they are, in float64 (ones if None), or refuse them."""
    w = np.ones(length) if weights is None else as_numbers(name, weights)
    if w.shape != (length,):
        refuse(name, f"of shape ({length},)", f"shape {w.shape}", "Give one weight for each, or None for equal ones.")
    if not (np.isfinite(w).all() and (w >= 0).all() and 0 < w.sum() < np.inf):
        found = f"smallest {w.min()}, sum {w.sum()}" if length else "none"
        remedy = "Subtract the largest log weight before exp."
        refuse(name, "finite and non-negative with a positive sum", found, remedy)
    return w


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Return an array in float64, or refuse anything but numbers."""
    try:
        array = np.asarray(values)
        # Conversion drops imaginary parts, and reads numbers in text.
        if array.dtype.kind in "cSUmM":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        remedy = "Give a NumPy array."
        if hasattr(values, "log_weights"):
            made = "`iso.predictive.predict(run, potential, inputs)` or `outputs_of_draws`"
            remedy = f"A run holds networks; their predictions come from {made}."
        refuse(name, "an array of numbers", short(values), remedy)
