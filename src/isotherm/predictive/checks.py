"""What the scores demand of their arguments."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from isotherm.foundation.errors import refuse, short
from isotherm.potentials.losses import Gaussian, cross_entropy, squared_error


def check_draws(name: str, value: Any) -> None:
    """Refuse what holds no draws, such as a potential in the place of a run."""
    if not all(hasattr(value, part) for part in ("draws", "model_state", "log_weights")):
        call = "`iso.predictive.predict(run, potential, inputs)`"
        refuse(name, "a run, or draws from elsewhere", short(value), f"The run comes before the potential: {call}.")


def check_network(value: Any) -> None:
    """Refuse what computes no outputs."""
    if not callable(getattr(value, "outputs", None)):
        remedy = (
            "Pass what `iso.from_nnx`, `from_linen` or `from_equinox` gave; for other draws there is `run.estimate`."
        )
        refuse("potential", "the potential of a network", short(value), remedy)


def check_classifier(potential: Any) -> None:
    """Refuse a network whose outputs are no logits of classes."""
    check_network(potential)
    loss = getattr(potential, "loss", None)
    if loss is squared_error or isinstance(loss, Gaussian) or (loss is not cross_entropy and _are_values(potential)):
        remedy = "For a regression use `iso.predictive.outputs_of_draws(run, potential, inputs)` and `intervals`."
        refuse("potential", "that of a classifier", "the loss of a regression", remedy)


def _are_values(potential: Any) -> bool:
    """Whether the targets of a loss of a user's are real numbers, and no shares of classes."""
    data: Any = getattr(potential, "data", None)
    targets: Any = data[1] if isinstance(data, tuple) and len(data) == 2 else None
    if not hasattr(targets, "dtype") or not np.issubdtype(targets.dtype, np.floating):
        return False
    rows = np.asarray(targets[:100], np.float64)
    are_shares = rows.ndim == 2 and np.all(rows >= 0) and np.allclose(rows.sum(axis=1), 1.0, atol=1e-3)
    return not are_shares and bool(np.any(rows != np.round(rows)))


def check_inputs(potential: Any, inputs: Any) -> None:
    """Refuse inputs that the network does not take, of another shape than those that it was trained on."""
    known, found = ([np.shape(leaf) for leaf in jax.tree.leaves(tree)] for tree in (potential.data[0], inputs))
    if [shape[1:] for shape in known] == [shape[1:] for shape in found]:
        return
    weights = potential.init(jax.random.key(0)) if callable(potential.init) else potential.init
    try:
        is_taken = [len(shape) for shape in known] == [len(shape) for shape in found]
        jax.eval_shape(potential.outputs, weights, jax.tree.map(jnp.asarray, inputs))
    except Exception:
        is_taken = False
    if not is_taken:
        wanted, got = (", ".join(str(shape) for shape in shapes) for shapes in (known, found))
        remedy = (
            "Give examples along the first axis, each as in the data of the potential: `inputs[None]` for a single one."
        )
        refuse("inputs", f"of shape {wanted} but for the number of examples", f"shape {got}", remedy)


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Return an array in float64, or refuse what is none."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        is_run = hasattr(values, "log_weights")
        made = "`iso.predictive.predict(run, potential, inputs)` or `outputs_of_draws`"
        remedy = f"A run holds networks; their predictions come from {made}." if is_run else "Give a NumPy array."
        refuse(name, "an array of numbers", short(values), remedy)


def check_weights(name: str, weights: ArrayLike | None, length: int) -> np.ndarray:
    """Return weights as they are, in float64 (ones if None), or refuse them."""
    w = np.ones(length) if weights is None else as_numbers(name, weights)
    if w.shape != (length,):
        refuse(name, f"of shape ({length},)", f"shape {w.shape}", "Give one weight for each, or None for equal ones.")
    if not (np.isfinite(w).all() and (w >= 0).all() and 0 < w.sum() < np.inf):
        found = f"smallest {w.min()}, sum {w.sum()}" if length else "none"
        refuse(
            name, "finite and non-negative with a positive sum", found, "Subtract the largest log weight before exp."
        )
    return w


def check_values(name: str, values: ArrayLike, length: int | None = None) -> np.ndarray:
    """Return a vector of finite numbers in float64, or refuse it."""
    array = as_numbers(name, values)
    if array.ndim != 1 or not array.size or length not in (None, array.size):
        rule = "of shape (examples,)" if length is None else f"of shape ({length},)"
        refuse(name, rule, f"shape {array.shape}", "Give one number for each example.")
    if not np.isfinite(array).all():
        refuse(name, "finite", f"{array[~np.isfinite(array)][0]}", "Leave out the examples that have none.")
    return array


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


def check_labels(labels: ArrayLike, num_examples: int, num_classes: int) -> np.ndarray:
    """Return integer labels, or refuse them."""
    y = np.asarray(labels)
    if y.shape != (num_examples,) or y.dtype.kind not in "iu":
        found = f"shape {y.shape} of {y.dtype}"
        refuse("labels", f"integers of shape ({num_examples},)", found, "Give one class number for each example.")
    if y.min() < 0 or y.max() >= num_classes:
        refuse("labels", f"in [0, {num_classes})", f"{y.min()} to {y.max()}", "Number the classes from 0.")
    return y
