"""Estimates from weighted draws. All of them honor the weights, and none needs all draws in memory at once."""

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.checks import Check
from isotherm.foundation.dependencies import dependencies
from isotherm.foundation.errors import check_integer, check_real, refuse, short
from isotherm.foundation.nearest import nearest_centers
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.foundation.user_functions import call_traced, check_function
from isotherm.run.standard_errors import Errors, Stretches, checks_of, errors_of, half_width, num_stretches

if TYPE_CHECKING:
    from isotherm.run.bias import Bias

_PIECE_BYTES = 64 << 20
# Quantiles sort all draws of a coordinate: coordinates are read in groups of this size.
GROUP_BYTES = 256 << 20
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
    """Kish's effective number of draws, 1 / sum of squared weights. It ignores autocorrelation."""
    return float(1.0 / np.sum(normalized_weights(log_weights) ** 2))


def pieces(
    draws: Any, weights: np.ndarray, first: int = 0, last: int | None = None
) -> Iterator[tuple[Any, np.ndarray]]:
    """Draws `first` to `last` - 1 of every chain and their weights, all along one axis, in pieces that fit in memory."""
    axis = weights.ndim - 1
    end = weights.shape[axis] if last is None else last
    leaves = jax.tree.leaves(draws)
    row = sum(leaf.size // max(leaf.shape[axis], 1) * leaf.dtype.itemsize for leaf in leaves)
    length = max(1, _PIECE_BYTES // max(row, 1))
    for start in range(first, end, length):
        place = (*(slice(None),) * axis, slice(start, min(start + length, end)))
        yield jax.tree.map(lambda leaf: flat(np.asarray(leaf[place]), axis), draws), flat(weights[place], axis)  # noqa: B023


def used_pieces(draws: Any, weights: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """`pieces` without draws of weight zero, such as the NaN of a diverged chain."""
    for piece, mass in pieces(draws, weights):
        is_used = mass > 0
        yield jax.tree.map(lambda leaf: leaf[is_used], piece), mass[is_used]  # noqa: B023


def flat(array: np.ndarray, axis: int) -> np.ndarray:
    """The axes up to `axis` as one."""
    return array.reshape(math.prod(array.shape[: axis + 1]), *array.shape[axis + 1 :])


def for_each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`function` over many draws, compiled. The last few are cached until something that they read changes."""
    check_function("function", function, "lambda x: x[0]")
    return _for_each(function, dependencies(function))


@functools.lru_cache(maxsize=32)
def _for_each(function: Callable[[Any], Any], read: Any) -> Callable[[Any], Any]:  # noqa: ARG001
    each = jax.jit(jax.vmap(lambda x: jax.tree.map(jnp.asarray, function(x))))
    return functools.partial(
        transfers_on_purpose(call_traced), "function", "a function of a position that returns numbers", each
    )


def mean(draws: Any, log_weights: np.ndarray, each: Callable[[Any], Any] = lambda piece: piece) -> Any:
    """The weighted mean of a function of many draws, or of every coordinate, in double precision."""
    total: Any = None
    for piece, mass in used_pieces(draws, normalized_weights(log_weights)):
        part = jax.tree.map(lambda leaf: np.tensordot(mass, np.asarray(leaf, np.float64), 1), each(piece))  # noqa: B023
        total = part if total is None else jax.tree.map(np.add, total, part)
    return total


def std(draws: Any, log_weights: np.ndarray) -> Any:
    """The weighted standard deviation of every coordinate, in two passes for precision."""
    center = mean(draws, log_weights)

    def squares(piece):
        return jax.tree.map(lambda leaf, middle: (leaf.astype(np.float64) - middle) ** 2, piece, center)

    return jax.tree.map(lambda leaf: np.asarray(np.sqrt(leaf)), mean(draws, log_weights, squares))


def quantile(q: Any, draws: Any, log_weights: np.ndarray) -> Any:
    """See `Run.quantile`."""
    try:
        levels = np.asarray(q, np.float64)
    except (TypeError, ValueError):
        levels = np.asarray(np.nan)
    if not np.all((levels >= 0.0) & (levels <= 1.0)):
        refuse("q", "between 0 and 1", short(q), "Give probabilities, such as 0.5 or [0.05, 0.95].")
    weights = normalized_weights(log_weights)
    group = max(1, GROUP_BYTES // (8 * int(np.count_nonzero(weights))))
    return jax.tree.map(lambda leaf: _leaf_quantile(levels, leaf, weights, group), draws)


def _leaf_quantile(levels: np.ndarray, leaf: Any, weights: np.ndarray, group: int) -> np.ndarray:
    shape = leaf.shape[weights.ndim :]
    size, found = math.prod(shape), [np.zeros((levels.size, 0))]
    for first in range(0, size, group):
        used = [(piece.reshape(-1, size)[:, first : first + group], mass) for piece, mass in used_pieces(leaf, weights)]
        columns, masses = (np.concatenate(part) for part in zip(*used, strict=True))
        found.append(_column_quantiles(levels.reshape(-1), columns, masses))
    return np.concatenate(found, axis=1).reshape((*levels.shape, *shape))


def _column_quantiles(levels: np.ndarray, values: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Quantiles of every column, shape (levels, columns)."""
    order = np.argsort(values, axis=0, kind="stable")
    below = np.cumsum(mass[order], axis=0)
    found = np.empty((len(levels), values.shape[1]))
    for column in range(values.shape[1]):
        # Rounding must not push a level past the draw that reaches it.
        total = below[-1, column]
        places = np.searchsorted(below[:, column], levels * total - 1e-12 * total, side="left")
        found[:, column] = values[order[np.minimum(places, len(values) - 1), column], column]
    return found


class Estimate(NamedTuple):
    """A weighted mean with its error. Leaves have the shapes of the function's values.

    Attributes:
        mean: the weighted mean of a function over draws.
        std_error: of the mean, with autocorrelation and the noise of the weights; NaN if unknown.
        effective_draws: independent draws of equal weight with that error.
        spread: the weighted standard deviation of the function.
        r_hat: R-hat of weighted half-chains, 1 if they agree; see `standard_errors`.
        degrees: of freedom of the error, for intervals.
        checks: what limits the estimate, such as chains that disagree; empty if nothing does. `notes` has them in words.
        bias: of the mean by the step size and gradient noise, to first order; NaN if unknown.
        bias_error: the standard error of the bias.
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
        """A table with a row for every number, and the notes."""
        parts = (self.mean, self.std_error, self.bias, self.spread, self.effective_draws, self.r_hat)
        columns = [np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(part)]) for part in parts]
        names = [
            jax.tree_util.keystr(path, simple=True, separator=".") + str(list(place)) * bool(place)
            for path, leaf in jax.tree_util.tree_leaves_with_path(self.mean)
            for place in np.ndindex(np.shape(leaf))
        ]
        shown = names[:_MAX_LINES]
        width = max(map(len, shown))
        lines = [f"{'':{width}} {'mean':>11} {'error':>9} {'bias':>9} {'sd':>11} {'ess':>9} {'r_hat':>7}"]
        for name, m, error, bias, sd, ess, r_hat in zip(shown, *columns, strict=False):
            lines.append(f"{name:{width}} {m:11.4g} {error:9.2g} {bias:9.2g} {sd:11.4g} {ess:9.0f} {r_hat:7.3f}")
        lines += [f"... {len(names) - len(shown)} more"] * (len(names) > len(shown))
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        """The checks in words."""
        return tuple(map(str, self.checks))

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """The ends of an interval that holds the true mean with probability `level`; NaN if the error is unknown.

        It covers the mean with and without its bias, widened by both standard errors. If the bias is unknown, which a note says,
        the interval is that of the standard error alone.
        """
        check_real("level", level, "Give a probability, such as 0.95.", above=0.0, below=1.0)

        def ends(mean, error, degrees, bias, bias_error):
            bias, bias_error = np.nan_to_num(bias), np.nan_to_num(bias_error)
            half = half_width(np.hypot(error, bias_error), degrees, level)
            return mean - np.maximum(bias, 0.0) - half, mean - np.minimum(bias, 0.0) + half

        both = jax.tree.map(ends, self.mean, self.std_error, self.degrees, self.bias, self.bias_error)
        return jax.tree.transpose(jax.tree.structure(self.mean), jax.tree.structure((0, 0)), both)


def estimate(
    each: Callable[[Any], Any],
    draws: Any,
    log_weights: np.ndarray,
    bias: "Bias | None" = None,
    are_particles: bool = False,
    shares_noise: bool = False,
) -> Estimate:
    """The weighted mean, standard error and bias of a function of many draws. Particles get no R-hat: each has its own place."""
    shapes: Any = None

    def rows(piece):
        nonlocal shapes
        values = jax.tree.map(np.asarray, each(piece))
        shapes = jax.tree.map(lambda leaf: np.zeros(leaf.shape[1:]), values)
        leaves = [np.asarray(leaf, np.float64).reshape(len(leaf), -1) for leaf in jax.tree.leaves(values)]
        return np.concatenate(leaves, axis=1)

    errors = errors_over(rows, draws, log_weights, shares_noise)
    unknown = np.full(errors.mean.shape, np.nan)
    if are_particles:
        errors = errors._replace(r_hat=unknown)
    off, off_error = unknown, unknown
    if bias is not None and bias.draws is not None:
        values = rows(jax.tree.map(lambda leaf: flat(np.asarray(leaf), 1), bias.draws))
        off, off_error = bias.of(values.reshape(*bias.log_weights.shape, -1))
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def as_tree(flat):
        parts = zip(np.split(flat, ends), leaves, strict=True)
        return jax.tree.unflatten(structure, [part.reshape(like.shape) for part, like in parts])

    names = ("mean", "std_error", "effective_draws", "spread", "r_hat", "degrees")
    known = {name: as_tree(getattr(errors, name)) for name in names}
    return Estimate(**known, checks=checks_of(errors), bias=as_tree(off), bias_error=as_tree(off_error))


def errors_over(rows: Callable[[Any], np.ndarray], draws: Any, log_weights: np.ndarray, shares_noise: bool) -> Errors:
    """Errors of the means of K functions; `rows` maps flat draws to values of shape (draws, K)."""
    stretches = _sum_stretches(rows, draws, normalized_weights(log_weights), shares_noise)
    return errors_of(stretches, log_weights, log_weights.shape[-2] if shares_noise else 1)


def _sum_stretches(rows: Callable[[Any], np.ndarray], draws: Any, weights: np.ndarray, shares_noise: bool) -> Stretches:
    *lead, number = weights.shape
    chains, sums = math.prod(lead), []
    for span in np.array_split(np.arange(number), num_stretches(chains, number, shares_noise)):
        parts = []
        for piece, mass in pieces(draws, weights, int(span[0]), int(span[-1]) + 1):
            mass = mass.reshape(chains, -1)
            values = rows(piece).reshape(*mass.shape, -1)
            # A draw of weight zero may be NaN.
            values = np.where(mass[..., None] > 0, values, 0.0)
            parts.append((mass.sum(axis=1), *(np.einsum("cn,cnk->ck", mass, values**power) for power in (1, 2))))
        sums.append([sum(part) for part in zip(*parts, strict=True)])
    return Stretches(*(np.stack(part, axis=1) for part in zip(*sums, strict=True)))


def systematic_indices(weights: np.ndarray, num: int, seed: int) -> np.ndarray:
    """`num` indices of flat weights, each drawn about num * weight times, with one random offset."""
    check_integer("num", num, 1, "Give the number of draws wanted.")
    points = (np.random.default_rng(seed).random() + np.arange(num)) / num
    total = np.cumsum(weights)
    return np.searchsorted(total / total[-1], points, side="right").clip(0, len(weights) - 1)


def mode_masses(modes: Any, draws: Any, log_weights: np.ndarray, num_modes: int | None = None) -> np.ndarray:
    """See `Run.mode_masses`; draws and weights have axes (chain, draw, ...) or (run, chain, draw, ...)."""
    label, count = _labels(modes, draws, np.ndim(log_weights), num_modes)
    masses = np.zeros(count)
    for piece, mass in used_pieces(draws, normalized_weights(log_weights)):
        masses += np.bincount(np.asarray(label(piece), int), mass, minlength=count)[:count]
    return masses


def mode_indicators(modes: Any, draws: Any, lead: int, num_modes: int | None) -> Callable[[Any], np.ndarray]:
    """A function of many positions that returns a row of zeros for each, with a one at its mode."""
    label, count = _labels(modes, draws, lead, num_modes)
    return lambda positions: (np.asarray(label(positions), int)[:, None] == np.arange(count)).astype(float)


def _labels(modes: Any, draws: Any, lead: int, num_modes: int | None) -> tuple[Callable[[Any], Any], int]:
    """A function from many positions to the numbers of their modes, and how many modes there are."""
    if callable(modes):
        number = check_integer("num_modes", num_modes, 1, "Give the number of modes that the function returns.")
        return _checked(for_each(modes), number), number
    if not jax.tree_util.all_leaves([draws]):
        remedy = "Write `lambda x: jnp.argmin(...)` with `num_modes`, say."
        refuse(
            "modes", "a function from a position to a number, where positions are not one array", short(modes), remedy
        )
    centers, shape = np.asarray(modes), jax.tree.leaves(draws)[0].shape[lead:]
    if centers.dtype.kind not in "fiu" or centers.shape[1:] != shape or centers.ndim != len(shape) + 1:
        rule = f"centers of shape (num_modes, {', '.join(map(str, shape))}), or a function from a position to a number"
        refuse("modes", rule, short(modes), "Give one row for every mode.")
    size = math.prod(shape)
    rows = centers.reshape(len(centers), size)
    return lambda positions: nearest_centers(positions.reshape(len(positions), size), rows)[0], len(centers)


def _checked(label: Callable[[Any], Any], number: int) -> Callable[[Any], np.ndarray]:
    """`label`, which must return modes below `number`: other draws would be lost."""

    def checked(positions: Any) -> np.ndarray:
        found = np.asarray(label(positions), int)
        if found.size and not 0 <= found.min() <= found.max() < number:
            got = f"modes from {found.min()} to {found.max()}"
            remedy = "Count from 0; give draws outside all modes a number of their own."
            refuse("modes", f"a function that returns modes from 0 to {number - 1}", got, remedy)
        return found

    return checked
