"""Estimates from weighted draws. Every one honours the weights, and none needs all draws in memory at once."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.errors import check_integer, refuse

_PIECE_BYTES = 64 << 20


def normalised_weights(log_weights: np.ndarray) -> np.ndarray:
    """Weights over runs, chains and draws that sum to one."""
    flat = np.asarray(log_weights, np.float64)
    highest = flat.max()
    if not np.isfinite(highest):
        refuse("log_weights", "finite for some draw", f"{highest} at most", "Every chain diverged: lower `step_size`.")
    weights = np.exp(flat - highest)
    return weights / weights.sum()


def effective_sample_size(log_weights: np.ndarray) -> float:
    """Kish's effective number of draws, from the weights alone: 1 / sum of squared weights. Knows nothing of autocorrelation."""
    return float(1.0 / np.sum(normalised_weights(log_weights) ** 2))


def pieces(draws: Any, weights: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Draws and weights, flattened over runs and chains, in pieces along the draws that fit in memory."""
    leaves = jax.tree.leaves(draws)
    row = sum(leaf.size // max(leaf.shape[2], 1) * leaf.dtype.itemsize for leaf in leaves)
    length = max(1, _PIECE_BYTES // max(row, 1))
    for start in range(0, weights.shape[2], length):
        span = slice(start, start + length)
        piece = jax.tree.map(lambda leaf: _flat(np.asarray(leaf[:, :, span])), draws)  # noqa: B023
        yield piece, _flat(weights[:, :, span])


def expectation(function: Callable[[Any], Any], draws: Any, log_weights: np.ndarray) -> Any:
    """The weighted mean of `function` over draws."""
    weights = normalised_weights(log_weights)
    each = jax.jit(jax.vmap(function))
    total: Any = None
    for piece, mass in pieces(draws, weights):
        is_used = mass > 0
        values = each(jax.tree.map(lambda leaf: leaf[is_used], piece))  # noqa: B023
        part = jax.tree.map(lambda leaf: np.tensordot(mass[is_used], np.asarray(leaf, np.float64), 1), values)  # noqa: B023
        total = part if total is None else jax.tree.map(np.add, total, part)
    return total


class Estimate(NamedTuple):
    """A weighted mean with its standard error.

    Attributes:
        mean: the weighted mean of a function over draws.
        std_error: by the jackknife over stretches of draws, so that autocorrelation and the weights' noise are in it.
        effective_draws: how many independent draws of equal weight would have that error.
    """

    mean: Any
    std_error: Any
    effective_draws: Any


def estimate(function: Callable[[Any], Any], draws: Any, log_weights: np.ndarray, num_blocks: int = 20) -> Estimate:
    """The weighted mean of `function`, with the error that its stretches of draws show.

    Every chain is cut into stretches, at least `num_blocks` in all; leaving one out at a time shows how far the mean varies.
    """
    runs, chains, number = log_weights.shape
    per_chain = min(max(2, -(-num_blocks // (runs * chains))), number)
    weights = normalised_weights(log_weights)
    each = jax.jit(jax.vmap(lambda x: jax.tree.map(lambda leaf: jnp.asarray(leaf, float), function(x))))
    masses, firsts, seconds = [], [], []
    shapes: Any = None
    for span in np.array_split(np.arange(number), per_chain):
        part = slice(int(span[0]), int(span[-1]) + 1)
        values = each(jax.tree.map(lambda leaf: _flat(np.asarray(leaf[:, :, part])), draws))  # noqa: B023
        mass = weights[:, :, part].reshape(runs * chains, -1)

        def moment(leaf, power, mass=mass):
            leaf = np.nan_to_num(np.asarray(leaf, np.float64)).reshape(*mass.shape, -1)
            return np.einsum("bn,bnk->bk", mass, leaf**power).reshape(len(mass), *np.shape(leaf)[2:])

        masses.append(mass.sum(axis=1))
        firsts.append(jax.tree.map(lambda leaf: moment(leaf, 1), values))
        seconds.append(jax.tree.map(lambda leaf: moment(leaf, 2), values))
        shapes = jax.tree.map(lambda leaf: np.shape(leaf)[1:], values)
    mass = np.concatenate(masses)

    def finish(shape, *parts):
        half = len(parts) // 2
        first, second = np.concatenate(parts[:half]), np.concatenate(parts[half:])
        mean = first.sum(axis=0) / mass.sum()
        others = (first.sum(axis=0) - first) / (mass.sum() - mass)[:, None]
        count = len(mass)
        error = np.sqrt((count - 1) / count * np.sum((others - others.mean(axis=0)) ** 2, axis=0))
        spread = np.maximum(second.sum(axis=0) / mass.sum() - mean**2, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            draws = np.where(error > 0, spread / error**2, np.inf)
        return tuple(array.reshape(shape) for array in (mean, error, draws))

    is_shape = lambda leaf: isinstance(leaf, tuple) and all(isinstance(n, int) for n in leaf)  # noqa: E731
    found = jax.tree.map(finish, shapes, *firsts, *seconds, is_leaf=is_shape)
    is_found = lambda leaf: isinstance(leaf, tuple) and len(leaf) == 3 and isinstance(leaf[0], np.ndarray)  # noqa: E731
    return Estimate(*(jax.tree.map(lambda leaf, i=i: leaf[i], found, is_leaf=is_found) for i in range(3)))


def systematic_indices(weights: np.ndarray, num: int, seed: int) -> np.ndarray:
    """`num` indices of flat weights, each drawn about num * weight times, with one random offset."""
    check_integer("num", num, 1, "Give the number of draws wanted.")
    points = (np.random.default_rng(seed).random() + np.arange(num)) / num
    total = np.cumsum(weights)
    return np.searchsorted(total / total[-1], points, side="right").clip(0, len(weights) - 1)


def resample(draws: Any, log_weights: np.ndarray, num: int, seed: int) -> Any:
    """`num` draws of equal weight, by systematic resampling over runs, chains and draws."""
    weights = normalised_weights(log_weights)
    chosen = systematic_indices(weights.reshape(-1), num, seed)
    run, chain, draw = np.unravel_index(chosen, weights.shape)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[run, chain, draw], draws)


def mode_masses(modes: Any, draws: Any, log_weights: np.ndarray, num_modes: int | None = None) -> np.ndarray:
    """Weight of the draws that belong to each mode.

    Args:
        modes: centres, shape (num_modes, *position shape): a draw belongs to the nearest one; or a function that maps a
            position to the number of its mode.
        draws: axes (run, chain, draw, ...).
        log_weights: axes (run, chain, draw).
        num_modes: how many modes there are, where `modes` is a function.
    """
    if callable(modes):
        count = check_integer("num_modes", num_modes, 1, "Say how many modes the function names.")
        label = jax.jit(jax.vmap(modes))
    else:
        centres = np.asarray(modes)
        count = len(centres)

        def label(positions):
            squares = ((positions - centre) ** 2 for centre in centres)
            return np.argmin([square.reshape(len(positions), -1).sum(axis=1) for square in squares], axis=0)

    masses = np.zeros(count)
    for piece, mass in pieces(draws, normalised_weights(log_weights)):
        is_used = mass > 0
        labels = np.asarray(label(jax.tree.map(lambda leaf: leaf[is_used], piece)), int)  # noqa: B023
        masses += np.bincount(labels, mass[is_used], minlength=count)[:count]
    return masses


def _flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, *array.shape[3:])
