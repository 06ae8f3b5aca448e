"""Estimates from weighted draws. Every one honors the weights, and none needs all draws in memory at once."""

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.checks import Check
from isotherm.foundation.dependencies import dependencies
from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.foundation.user_functions import call_traced, check_function
from isotherm.run.agreement import Stretches, num_stretches
from isotherm.run.standard_errors import Errors, checks_of, errors_of, half_width

if TYPE_CHECKING:
    from isotherm.run.bias import Bias

_PIECE_BYTES = 64 << 20
_MAX_LINES = 50


def normalized_weights(log_weights: np.ndarray) -> np.ndarray:
    """Weights over all draws of all chains that sum to one."""
    flat = np.asarray(log_weights, np.float64)
    highest = flat.max()
    if not np.isfinite(highest):
        refuse("log_weights", "finite for some draw", f"{highest} at most", "Every chain diverged: lower `step_size`.")
    weights = np.exp(flat - highest)
    return weights / weights.sum()


def effective_sample_size(log_weights: np.ndarray) -> float:
    """Kish's effective number of draws, from the weights alone: 1 / sum of squared weights. Knows nothing of autocorrelation."""
    return float(1.0 / np.sum(normalized_weights(log_weights) ** 2))


def pieces(
    draws: Any, weights: np.ndarray, first: int = 0, last: int | None = None
) -> Iterator[tuple[Any, np.ndarray]]:
    """The draws first, ..., last - 1 and their weights, flattened over chains and draws, in pieces that fit in memory.

    The draws are along the last axis of the weights; the axes before it are those of chains.
    """
    axis = weights.ndim - 1
    end = weights.shape[axis] if last is None else last
    leaves = jax.tree.leaves(draws)
    row = sum(leaf.size // max(leaf.shape[axis], 1) * leaf.dtype.itemsize for leaf in leaves)
    length = max(1, _PIECE_BYTES // max(row, 1))
    for start in range(first, end, length):
        span = (..., slice(start, min(start + length, end)))
        place = (*(slice(None),) * axis, span[1])
        piece = jax.tree.map(lambda leaf: flat(np.asarray(leaf[place]), axis), draws)  # noqa: B023
        yield piece, flat(weights[span], axis)


def for_each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function for many draws at once, compiled once while nothing that it reads changes: the last few are kept."""
    check_function("function", function, "lambda x: x[0]")
    return _for_each(function, dependencies(function))


@functools.lru_cache(maxsize=32)
def _for_each(function: Callable[[Any], Any], read: Any) -> Callable[[Any], Any]:  # noqa: ARG001
    each = jax.jit(jax.vmap(lambda x: jax.tree.map(jnp.asarray, function(x))))
    return functools.partial(
        transfers_on_purpose(call_traced), "function", "a function of a position that returns numbers", each
    )


def expectation(function: Callable[[Any], Any], draws: Any, log_weights: np.ndarray) -> Any:
    """The weighted mean of `function` over draws."""
    weights = normalized_weights(log_weights)
    each = for_each(function)
    total: Any = None
    for piece, mass in pieces(draws, weights):
        is_used = mass > 0
        values = each(jax.tree.map(lambda leaf: leaf[is_used], piece))  # noqa: B023
        part = jax.tree.map(lambda leaf: np.tensordot(mass[is_used], np.asarray(leaf, np.float64), 1), values)  # noqa: B023
        total = part if total is None else jax.tree.map(np.add, total, part)
    return total


class Estimate(NamedTuple):
    """A weighted mean with its error. Leaves have the shapes of the function's values.

    Attributes:
        mean: the weighted mean of a function over draws.
        std_error: of the mean, with autocorrelation and the noise of the weights in it; NaN where it is unknown.
        effective_draws: how many independent draws of equal weight would have that error.
        spread: the standard deviation of the function under the weights.
        r_hat: how far halves of chains disagree, each counting with its weight: 1 if they agree; see `standard_errors`.
        degrees: of freedom of the error, for intervals.
        checks: what limits the estimate, such as chains that disagree; nothing where all is well. `notes` has them in words.
        bias: by how much the step size and gradient noise raise the mean, to first order; NaN where that is not known.
        bias_error: the standard error of that.
    """

    mean: Any
    std_error: Any
    effective_draws: Any
    spread: Any
    r_hat: Any
    degrees: Any
    checks: tuple[Check, ...]
    bias: Any
    bias_error: Any

    def __str__(self) -> str:
        """A line for every number, and the notes."""
        parts = (self.mean, self.std_error, self.bias, self.spread, self.effective_draws, self.r_hat)
        columns = [np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(part)]) for part in parts]
        names = [
            jax.tree_util.keystr(path, simple=True, separator=".") + str(list(place)) * bool(place)
            for path, leaf in jax.tree_util.tree_leaves_with_path(self.mean)
            for place in np.ndindex(np.shape(leaf))
        ]
        shown = min(len(names), _MAX_LINES)
        width = max(len(name) for name in names[:shown])
        lines = [f"{'':{width}} {'mean':>11} {'error':>9} {'bias':>9} {'sd':>11} {'ess':>9} {'r_hat':>7}"]
        for name, *row in zip(names[:shown], *columns, strict=False):
            mean, error, bias, spread, draws, r_hat = row
            lines.append(
                f"{name:{width}} {mean:11.4g} {error:9.2g} {bias:9.2g} {spread:11.4g} {draws:9.0f} {r_hat:7.3f}"
            )
        lines += [f"... {len(names) - shown} more"] * (len(names) > shown)
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        """The checks in words."""
        return tuple(map(str, self.checks))

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """The ends of an interval that holds the true mean with probability `level`; NaN where the error is unknown.

        It reaches from the mean to the mean without its bias, and beyond both by what the two standard errors say together. Where
        the bias is not known, which is noted, it holds the standard error alone.
        """
        check_real("level", level, "Give a probability, such as 0.95.", above=0.0, below=1.0)

        def ends(mean, error, degrees, bias, bias_error):
            bias, bias_error = np.nan_to_num(bias), np.nan_to_num(bias_error)
            half = half_width(np.hypot(error, bias_error), degrees, level)
            return mean - np.maximum(bias, 0.0) - half, mean - np.minimum(bias, 0.0) + half

        parts = (self.mean, self.std_error, self.degrees, self.bias, self.bias_error)
        both = jax.tree.map(ends, *parts)
        return tuple(jax.tree.map(lambda _, pair, s=side: pair[s], self.mean, both) for side in (0, 1))


def estimate(
    function: Callable[[Any], Any],
    draws: Any,
    log_weights: np.ndarray,
    bias: "Bias | None" = None,
    are_particles: bool = False,
    shares_noise: bool = False,
) -> Estimate:
    """The weighted mean of `function` with its standard error and bias; see `estimate_each`."""
    return estimate_each(for_each(function), draws, log_weights, bias, are_particles, shares_noise)


def estimate_each(
    each: Callable[[Any], Any],
    draws: Any,
    log_weights: np.ndarray,
    bias: "Bias | None",
    are_particles: bool,
    shares_noise: bool,
) -> Estimate:
    """The same for a function of many draws at once; see `standard_errors` and `bias`.

    Particles stand for the distribution together: that each of them has its own place says nothing. Chains of a run may share the
    noise of their gradients.
    """
    shapes: Any = None

    def rows(piece):
        nonlocal shapes
        values = jax.tree.map(np.asarray, each(piece))
        shapes = jax.tree.map(lambda leaf: np.zeros(leaf.shape[1:]), values)
        leaves = [np.asarray(leaf, np.float64).reshape(len(leaf), -1) for leaf in jax.tree.leaves(values)]
        return np.concatenate(leaves, axis=1)

    errors = errors_over(rows, draws, log_weights, shares_noise)
    if are_particles:
        errors = errors._replace(r_hat=np.full_like(errors.r_hat, np.nan))
    structure = jax.tree.structure(shapes)
    ends = np.cumsum([leaf.size for leaf in jax.tree.leaves(shapes)])[:-1]

    def as_tree(flat):
        parts = zip(np.split(flat, ends), jax.tree.leaves(shapes), strict=True)
        return jax.tree.unflatten(structure, [part.reshape(like.shape) for part, like in parts])

    unknown = np.full(errors.mean.shape, np.nan)
    off, off_error = (unknown, unknown)
    if bias is not None and bias.draws is not None:
        sizes = bias.log_weights.shape
        values = rows(jax.tree.map(lambda leaf: flat(np.asarray(leaf), 1), bias.draws)).reshape(*sizes, -1)
        off, off_error = bias.of(values)
    return Estimate(
        mean=as_tree(errors.mean),
        std_error=as_tree(errors.std_error),
        effective_draws=as_tree(errors.effective_draws),
        spread=as_tree(errors.spread),
        r_hat=as_tree(errors.r_hat),
        degrees=as_tree(errors.degrees),
        checks=checks_of(errors),
        bias=as_tree(off),
        bias_error=as_tree(off_error),
    )


def errors_over(rows: Callable[[Any], np.ndarray], draws: Any, log_weights: np.ndarray, shares_noise: bool) -> Errors:
    """Errors of the means of K functions; `rows` maps flat draws to values of shape (draws, K)."""
    stretches = _sum_stretches(rows, draws, normalized_weights(log_weights), shares_noise)
    return errors_of(stretches, log_weights, log_weights.shape[-2] if shares_noise else 1)


def _sum_stretches(rows: Callable[[Any], np.ndarray], draws: Any, weights: np.ndarray, shares_noise: bool) -> Stretches:
    """Sums over stretches of every chain of all runs."""
    *lead, number = weights.shape
    chains, sums = math.prod(lead), []
    for span in np.array_split(np.arange(number), num_stretches(chains, number, shares_noise)):
        parts = []
        for piece, mass in pieces(draws, weights, int(span[0]), int(span[-1]) + 1):
            mass = mass.reshape(chains, -1)
            values = rows(piece).reshape(*mass.shape, -1)
            # A draw without weight may hold anything, such as the NaN of a chain that diverged.
            values = np.where(mass[..., None] > 0, values, 0.0)
            moments = (np.einsum("cn,cnk->ck", mass, values**power) for power in (1, 2))
            parts.append((mass.sum(axis=1), *moments))
        sums.append([sum(part) for part in zip(*parts, strict=True)])
    return Stretches(*(np.stack(part, axis=1) for part in zip(*sums, strict=True)))


def systematic_indices(weights: np.ndarray, num: int, seed: int) -> np.ndarray:
    """`num` indices of flat weights, each drawn about num * weight times, with one random offset."""
    check_integer("num", num, 1, "Give the number of draws wanted.")
    points = (np.random.default_rng(seed).random() + np.arange(num)) / num
    total = np.cumsum(weights)
    return np.searchsorted(total / total[-1], points, side="right").clip(0, len(weights) - 1)


def resample(draws: Any, log_weights: np.ndarray, num: int, seed: int) -> Any:
    """`num` draws of equal weight, by systematic resampling over all draws of all chains."""
    weights = normalized_weights(log_weights)
    chosen = systematic_indices(weights.reshape(-1), num, seed)
    places = np.unravel_index(chosen, weights.shape)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[places], draws)


def flat(array: np.ndarray, axis: int) -> np.ndarray:
    """All axes up to that of the draws as one."""
    return array.reshape(math.prod(array.shape[: axis + 1]), *array.shape[axis + 1 :])
