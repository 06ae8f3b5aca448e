"""Weighted model averages over draws and chains. Draws are read one at a time, and may be on disk."""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse, short
from isotherm.networks.potential import NetworkPotential
from isotherm.predictive.checks import check_classifier, check_draws, check_fit, check_inputs, check_labels
from isotherm.predictive.classification import entropy, mutual_information
from isotherm.run.estimates import normalized_weights

_NEGLIGIBLE = 1e-12


class Draws(Protocol):
    """A `Run`, or draws from elsewhere. Axes (chain, draw, ...), or (run, chain, draw, ...)."""

    @property
    def draws(self) -> Any: ...
    @property
    def model_state(self) -> Any: ...
    @property
    def log_weights(self) -> Any: ...


class Prediction(NamedTuple):
    """The predictions of an ensemble of S networks for N examples.

    Attributes:
        probabilities: of the average, (N, C). A network with one logit, that of class 1, has two classes.
        logits: weighted mean of the networks' logits, (N, C); with one logit, that of class 0 is 0.
        mean_entropy: weighted mean of the networks' entropies, (N,).
        draw_weights: weights of the networks, (S,), with sum one.
        draw_accuracy: accuracy of each network alone, (S,); None without labels.
        draw_nll: mean negative log likelihood of each network alone, likewise.
    """

    probabilities: np.ndarray
    logits: np.ndarray
    mean_entropy: np.ndarray
    draw_weights: np.ndarray
    draw_accuracy: np.ndarray | None
    draw_nll: np.ndarray | None

    @property
    def entropy(self) -> np.ndarray:
        """Entropy of the average, (N,): the total uncertainty."""
        return entropy(_rows(self.probabilities)).reshape(self.probabilities.shape[:-1])

    @property
    def mutual_information(self) -> np.ndarray:
        """The part of the uncertainty that is due to disagreement of the networks, (N,)."""
        each = mutual_information(_rows(self.probabilities), self.mean_entropy.reshape(-1))
        return each.reshape(self.mean_entropy.shape)

    @property
    def best_accuracy(self) -> float:
        """Accuracy of the best single network, chosen on the same labels: the thesis' best point estimate."""
        if self.draw_accuracy is None:
            refuse("labels", "given to `predict`", "None", "Labels decide which network is the best.")
        return float(np.max(self.draw_accuracy))


@checked_call(prefix="iso.predictive.")
def predict(
    run: Draws,
    potential: NetworkPotential,
    inputs: Any,
    *,
    labels: Any = None,
    by: str = "probabilities",
    scale: float = 1.0,
    batch_size: int = 1000,
) -> Prediction:
    """The weighted average of the predictions of all networks in `run` for `inputs`.

    The loss determines the kind of the outputs: logits of classes for "cross_entropy", the logit of class 1 for
    "binary_cross_entropy", and `outputs` of the potential for a loss of your own.

    Every network uses its own BatchNorm statistics and its importance weight. Independent runs are averaged too; use
    `run.split_runs()` to get them separately.

    Args:
        run: draws of networks' weights.
        potential: the potential of these draws.
        inputs: as stored, such as uint8 images.
        labels: class numbers from 0, one for each example, to score every network alone as well.
        by: "probabilities" averages these; "logits" averages logits, as the thesis' tables do.
        scale: divides the logits of every network first (temperature scaling).
        batch_size: examples per forward pass.

    Example:
        >>> import isotherm as iso
        >>> from flax import nnx
        >>> x, y = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32), np.arange(40) % 2
        >>> potential = iso.networks.from_nnx(lambda rngs: nnx.Linear(2, 2, rngs=rngs), "cross_entropy", (x, y), batch_size=20)
        >>> run = iso.sample(potential, iso.sgld(0.001), num_steps=50)
        >>> predict(run, potential, x).probabilities.shape
        (40, 2)
    """
    check_choice("by", by, ("probabilities", "logits"))
    check_real("scale", scale, "Give the temperature of the logits.", above=0.0)
    pieces, number = _checked_pieces(run, potential, inputs, batch_size)
    kind = check_classifier(potential)
    step = _step(potential, kind, float(scale))
    targets = None
    if labels is not None:
        of_one = _shape_of_logits(run, potential, kind, inputs)
        targets = _in_pieces(check_labels(labels, (number, *of_one[:-1]), of_one[-1]), batch_size)[0]
    total: Any = None
    weights, scores = [], []
    for draw, state, weight in _each_draw(run):
        total, score = step(total, draw, state, jnp.asarray(weight, jnp.float32), pieces, targets, number)
        weights.append(weight)
        scores.append(score)
    mean, logits, mean_entropy = (np.asarray(part, np.float64)[:number] / sum(weights) for part in total)
    is_lost = ~np.isfinite(mean).all(axis=tuple(range(1, mean.ndim)))
    if is_lost.any():
        got = f"NaN for {is_lost.sum()} of {number} examples, the first of them number {np.argmax(is_lost)}"
        remedy = "Look for NaN in `inputs`; draws of diverged chains must have weight zero."
        refuse("inputs", "examples without NaN in the networks' outputs", got, remedy)
    if by == "logits":
        mean = np.asarray(jax.nn.softmax(jnp.asarray(logits, jnp.float32)), np.float64)
    mean /= mean.sum(axis=-1, keepdims=True)
    alone = (None, None) if labels is None else np.asarray(scores, np.float64).T
    return Prediction(mean, logits, mean_entropy, np.asarray(weights), *alone)


@checked_call(prefix="iso.predictive.")
def outputs_of_draws(
    run: Draws, potential: NetworkPotential, inputs: Any, *, batch_size: int = 1000
) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of every network, (S, N, ...), and the weights of the networks, (S,). For regressions: all outputs are kept."""
    pieces, number = _checked_pieces(run, potential, inputs, batch_size)
    forward = _forward(potential)
    found, weights = [], []
    for draw, state, weight in _each_draw(run):
        outputs = np.asarray(forward(draw, state, pieces))
        found.append(outputs.reshape(-1, *outputs.shape[2:])[:number])
        weights.append(weight)
    return np.stack(found), np.asarray(weights)


def _checked_pieces(run: Draws, potential: NetworkPotential, inputs: Any, batch_size: int) -> tuple[Any, int]:
    """The inputs as in `_in_pieces`, once they and the draws fit the potential."""
    check_draws("run", run)
    check_fit("run", run, potential)
    check_integer("batch_size", batch_size, 1, "Give examples per forward pass.")
    pieces = _in_pieces(inputs, batch_size)
    check_inputs(potential, inputs)
    return pieces


def _in_pieces(inputs: Any, size: int) -> tuple[Any, int]:
    """Examples along a new axis of batches, the last one padded with zeros, and their number."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(inputs)]
    lengths = {leaf.shape[:1] for leaf in leaves}
    if len(lengths) != 1 or () in lengths or any(leaf.dtype.kind not in "biufV" for leaf in leaves):
        refuse("inputs", "arrays of examples, along the first axis", short(inputs), "Give them as to the potential.")
    ((number,),) = lengths
    if number == 0:
        refuse("inputs", "at least one example", "0 examples", "Check your selection.")
    batches = -(-number // size)

    def cut(leaf):
        leaf = np.asarray(leaf)
        filled = np.zeros((batches * size, *leaf.shape[1:]), leaf.dtype)
        filled[:number] = leaf
        return jnp.asarray(filled.reshape(batches, size, *leaf.shape[1:]))

    return jax.tree.map(cut, inputs), number


@functools.lru_cache(maxsize=32)
def _step(potential: NetworkPotential, kind: str, scale: float) -> Any:
    """A program that adds one network to the weighted sums, and scores it where there are targets."""

    def score(log_probabilities: Array, targets: Array, number: Array) -> Array:
        flat = log_probabilities.reshape(-1, log_probabilities.shape[-1])
        labels = targets.reshape(-1)
        # An example such as a sequence has several labels.
        num_labels = number * (len(labels) // (targets.shape[0] * targets.shape[1]))
        is_inside = jnp.arange(len(labels)) < num_labels
        right = (jnp.argmax(flat, axis=-1) == labels) & is_inside
        lost = -jnp.take_along_axis(flat, labels[:, None].astype(jnp.int32), axis=-1)[:, 0]
        return jnp.stack([jnp.sum(right), jnp.sum(jnp.where(is_inside, lost, 0.0))]) / num_labels

    def step(total, draw, state, weight, pieces, targets, number):
        logits = lax.map(lambda inputs: _logits(kind, potential.outputs(draw, inputs, state)), pieces) / scale
        log_probabilities = jax.nn.log_softmax(logits)
        probabilities = jnp.exp(log_probabilities)
        # A class of probability zero adds nothing.
        parts = jnp.where(probabilities > 0, probabilities * log_probabilities, 0.0)
        entropies = -jnp.sum(parts, axis=-1)
        found = (probabilities, logits, entropies)
        found = tuple(weight * part.reshape(-1, *part.shape[2:]) for part in found)
        after = found if total is None else jax.tree.map(jnp.add, total, found)
        return after, None if targets is None else score(log_probabilities, targets, number)

    return jax.jit(step)


def _shape_of_logits(run: Draws, potential: NetworkPotential, kind: str, inputs: Any) -> tuple[int, ...]:
    """The shape of the logits of one example."""
    lead = np.ndim(run.log_weights)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[lead:], leaf.dtype), (run.draws, run.model_state))
    first = jax.tree.map(lambda leaf: jnp.asarray(leaf[:1]), inputs)
    return jax.eval_shape(lambda draw, state: _logits(kind, potential.outputs(draw, first, state)), *one).shape[1:]


def _each_draw(run: Draws) -> Iterator[tuple[Any, Any, float]]:
    """Draws with their model states and normalized weights, without those of negligible weight."""
    weights = normalized_weights(np.asarray(run.log_weights))
    for place in np.argwhere(weights > _NEGLIGIBLE).tolist():
        here = tuple(place)
        draw, state = jax.tree.map(lambda leaf: np.asarray(leaf[here]), (run.draws, run.model_state))  # noqa: B023
        yield draw, state, float(weights[here])


def _logits(kind: str, outputs: Array) -> Array:
    """Logits of classes along the last axis; (0, z) for one logit z."""
    if kind == "logits":
        return outputs
    flat = outputs.reshape(len(outputs))
    return jnp.stack([jnp.zeros_like(flat), flat], axis=-1)


@functools.lru_cache(maxsize=32)
def _forward(potential: NetworkPotential) -> Any:
    return jax.jit(lambda draw, state, pieces: lax.map(lambda x: potential.outputs(draw, x, state), pieces))


def _rows(probabilities: np.ndarray) -> np.ndarray:
    """One row for every prediction; an example such as a sequence has several."""
    return probabilities.reshape(-1, probabilities.shape[-1])
