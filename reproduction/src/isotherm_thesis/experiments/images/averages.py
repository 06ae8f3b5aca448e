"""Running averages of many networks, on the device: all images in one pass for each network, scores after each of them."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.networks.potential import NetworkPotential
from isotherm.run.estimates import normalized_weights
from isotherm.run.run import Run
from isotherm_thesis.experiments.images.problem import ImageData

_BLOCK_BYTES = 128 << 20
_IMAGES_AT_ONCE = 2_000
# Of the thesis: entropies on SVHN are those of logits divided by 1 and by 2.
SCALES = (1.0, 2.0)


class Networks(NamedTuple):
    """Some networks in the order of time; leaves have a leading axis of B.

    Attributes:
        draws: their weights.
        states: their BatchNorm statistics.
        weights: what they count in an average, (B,).
    """

    draws: Any
    states: Any
    weights: np.ndarray


class Averages(NamedTuple):
    """What networks say of the images, together and alone.

    Attributes:
        logits: the average's logits on test images, (N, C); then on held-out ones.
        probabilities: of the average of probabilities, likewise.
        outside: average probabilities on images of no class, for each of `SCALES`, (2, N, C).
        accuracy: of the average of the networks so far, after each: by logits, by probabilities, and of the network alone, (S, 3).
        nll: the mean negative log likelihood likewise.
        held_out_accuracy: like `accuracy`, on held-out images.
        held_out_nll: likewise.
        weights: of the networks, (S,).
    """

    logits: tuple[np.ndarray, np.ndarray]
    probabilities: tuple[np.ndarray, np.ndarray]
    outside: np.ndarray
    accuracy: np.ndarray
    nll: np.ndarray
    held_out_accuracy: np.ndarray
    held_out_nll: np.ndarray
    weights: np.ndarray


def average(potential: NetworkPotential, data: ImageData, blocks: Iterable[Networks]) -> Averages:
    """The averages of networks that come in blocks of one size."""
    sizes = [len(part) for part in (data.test[0], data.held_out[0], data.outside)]
    pieces = _in_pieces(np.concatenate([data.test[0], data.held_out[0], data.outside]))
    labels = jnp.asarray(np.concatenate([data.test[1], data.held_out[1]]))
    ends = sizes[0], sizes[0] + sizes[1], sum(sizes)
    add = jax.jit(lambda images, sums, networks: _add(potential, images, ends, sums, networks), donate_argnums=1)
    shape = (ends[2], data.num_classes)
    sums: Any = (jnp.zeros(shape), jnp.zeros(shape), jnp.zeros((sizes[2], data.num_classes)), jnp.zeros(()))
    scores, weights = [], []
    for block in blocks:
        sums, found = add((pieces, labels), sums, block)
        is_counted = block.weights > 0
        scores.append(np.asarray(found)[is_counted])
        weights.append(block.weights[is_counted])
    total = float(sums[3])
    logits, probabilities, softer = (np.asarray(part, np.float64) / total for part in sums[:3])
    probabilities, softer = (part / part.sum(axis=-1, keepdims=True) for part in (probabilities, softer))
    seen = np.concatenate(scores)  # (S, 2 sets, 3 kinds, 2 scores)
    return Averages(
        (logits[: ends[0]], logits[ends[0] : ends[1]]),
        (probabilities[: ends[0]], probabilities[ends[0] : ends[1]]),
        np.stack([probabilities[ends[1] :], softer]),
        seen[:, 0, :, 0],
        seen[:, 0, :, 1],
        seen[:, 1, :, 0],
        seen[:, 1, :, 1],
        np.concatenate(weights),
    )


def weights_from(run: Run, first: int) -> np.ndarray:
    """What every network of a run counts, (P, S), summing to one over those from iteration `first` on; nothing before."""
    places = np.flatnonzero(run.iterations >= first)
    weights = np.zeros(run.log_weights.shape, np.float32)
    weights[:, places] = normalized_weights(np.asarray(run.log_weights)[:, places])
    return weights


def block_size(run: Run, weights: np.ndarray) -> int:
    """Networks in a block: as many as fit into memory, whole epochs."""
    bytes_of_draw = sum(int(np.prod(leaf.shape[2:])) * 4 * leaf.shape[0] for leaf in jax.tree.leaves(run.draws))
    counted = int(np.count_nonzero(weights.any(axis=0)))
    return int(np.clip(_BLOCK_BYTES // bytes_of_draw, 1, counted)) * len(weights)


def networks_of_run(run: Run, weights: np.ndarray) -> Iterator[Networks]:
    """The networks that count, epoch by epoch, in blocks of `block_size`; the last is filled up with nothing.

    Draws may lie on a disk: they are read in stretches.
    """
    places = np.flatnonzero(weights.any(axis=0))
    size = block_size(run, weights)
    length = size // len(weights)
    for begin in range(int(places[0]), int(places[-1]) + 1, length):
        end = min(begin + length, int(places[-1]) + 1)
        yield _filled(_stretch(run, weights, begin, end), size)


def networks_of(draws: Any, states: Any, weights: np.ndarray) -> Networks:
    """Networks along one axis, from leaves (G, K, ...) and weights (G, K)."""
    flat = lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:])  # noqa: E731
    return Networks(jax.tree.map(flat, draws), jax.tree.map(flat, states), weights.reshape(-1).astype(np.float32))


def in_blocks(networks: Networks, size: int) -> Iterator[Networks]:
    """Networks in blocks of one size."""
    for begin in range(0, len(networks.weights), size):
        yield _filled(jax.tree.map(lambda leaf: leaf[begin : begin + size], networks), size)  # noqa: B023


def _stretch(run: Run, weights: np.ndarray, begin: int, end: int) -> Networks:
    def epoch_by_epoch(leaf):
        found = np.asarray(leaf[:, begin:end])
        return np.moveaxis(found, 1, 0).reshape(-1, *found.shape[2:])

    draws, states = (jax.tree.map(epoch_by_epoch, part) for part in (run.draws, run.model_state))
    return Networks(draws, states, epoch_by_epoch(weights))


def _filled(networks: Networks, size: int) -> Networks:
    def fill(leaf):
        return np.concatenate([leaf, np.zeros((size - len(leaf), *leaf.shape[1:]), leaf.dtype)])

    return networks if len(networks.weights) == size else jax.tree.map(fill, networks)


def _in_pieces(images: np.ndarray) -> Array:
    count = -(-len(images) // _IMAGES_AT_ONCE)
    size = -(-len(images) // count)
    filled = np.zeros((count * size, *images.shape[1:]), images.dtype)
    filled[: len(images)] = images
    return jnp.asarray(filled.reshape(count, size, *images.shape[1:]))


def _add(
    potential: NetworkPotential, images: tuple[Array, Array], ends: tuple[int, int, int], sums: Any, networks: Networks
) -> tuple[Any, Array]:
    """Sums after each network of a block, and the scores (B, set, kind, score) on test and held-out images."""
    pieces, labels = images

    def scores(log_probabilities: Array) -> Array:
        right = jnp.argmax(log_probabilities, axis=-1) == labels
        lost = -jnp.take_along_axis(log_probabilities, labels[:, None], axis=-1)[:, 0]
        # The mean over no images is not a number, and stays one.
        parts = [slice(0, ends[0]), slice(ends[0], ends[1])]
        return jnp.stack([jnp.stack([jnp.mean(right[part]), jnp.mean(lost[part])]) for part in parts])

    def judge(sums: Any, log_alone: Array) -> Array:
        judged = len(labels)
        by_logits = jax.nn.log_softmax(sums[0][:judged] / jnp.maximum(sums[3], 1e-30))
        by_probabilities = jnp.log(jnp.maximum(sums[1][:judged] / jnp.maximum(sums[3], 1e-30), 1e-30))
        return jnp.stack([scores(by_logits), scores(by_probabilities), scores(log_alone[:judged])], axis=1)

    def one(sums, network):
        draw, state, weight = network

        def counted(values):
            # A network that does not count may hold anything.
            return jnp.where(weight > 0, weight * values, 0.0)

        logits = lax.map(lambda inputs: potential.outputs(draw, inputs, state), pieces)
        logits = logits.reshape(-1, logits.shape[-1])[: ends[2]]
        log_alone = jax.nn.log_softmax(logits)
        softer = jax.nn.softmax(logits[ends[1] :] / SCALES[1])
        found = (logits, jnp.exp(log_alone), softer, jnp.ones(()))
        sums = jax.tree.map(lambda total, new: total + counted(new), sums, found)
        return sums, judge(sums, log_alone)

    return lax.scan(one, sums, tuple(networks))
