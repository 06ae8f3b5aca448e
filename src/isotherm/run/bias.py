"""The bias of a run by its step size and gradient noise; `diagnostics.tilt` has the theory."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy

from isotherm.foundation.positions import coordinate_name, shapes_of
from isotherm.run.estimates import normalized_weights

# Larger positions are measured at some of their coordinates.
MAX_COORDINATES = 64
# Coordinates that are printed.
_MAX_SHOWN = 5
# Groups of draws that the jackknife leaves out in turn.
NUM_GROUPS = 20
# The probability that noise alone is reported, over all coordinates.
_FALSE_ALARMS = 1e-3
# Relative difference in temperature above which the draws contradict the theory of the kernel.
_MIN_CONTRADICTION = 0.25


class RelativeBias(NamedTuple):
    """The bias of d coordinates, arrays of shape (d,).

    Attributes:
        mean: of means, in standard deviations.
        mean_error: the standard error of that.
        variance: of variances, relative to themselves.
        variance_error: the standard error of that.
    """

    mean: np.ndarray
    mean_error: np.ndarray
    variance: np.ndarray
    variance_error: np.ndarray


class Bias(NamedTuple):
    """How the distribution of a run differs from its target, by the step size and gradient noise.

    `of(values)` is the bias of the mean of any function, `relative()` that of every coordinate; `print` shows the largest. It is
    measured at S draws of C chains. Arrays of shape (1 + G, ...) hold the value from all of these, then those with each of G groups
    of draws left out, for the jackknife.

    Attributes:
        values: coordinates of the draws, shape (C, S, d); some of them for large positions. Circular coordinates are within half a
            period of their circular mean.
        coordinates: which ones, counted through the leaves.
        draws: the draws, leaves (C, S, ...); None for large positions.
        log_weights: of the draws, shape (C, S).
        energies: of the draws, as recorded, shape (C, S).
        tilts: s, where the density of the run over the target is 1 + s, up to second order; shape (1 + G, C, S).
        weight_errors: the part of the tilts due to noisy energies in the weights of a contour sampler, shape (C, S).
        heats: excess temperature of the coordinates, relative to what is expected, shape (1 + G, d); zero if unknown.
        leaf_heats: excess temperature of the whole position and of every leaf, relative to that of the run, from the mean of
            (x - center) . g; shape (1 + G, 1 + leaves); zero if unknown.
        leaf_sizes: how many numbers the position and every leaf hold.
        is_measured: whether the tilt comes from gradients at the draws alone, not from the theory of the kernel.
        rates: the share of a stiff direction's width that a step forgets, at each draw, shape (C, S).
        jumps: change of the energy around each draw that its gradient does not explain, in temperatures, shape (C, S).
        unexplained: the typical relative difference between a change of the energy and what its gradient says.
        drift: mean square displacement in a step by gradients over that by noise, the largest over coordinates.
        step_size: the mean step size.
        is_exact: whether gradients have no noise.
    """

    values: np.ndarray
    coordinates: np.ndarray
    draws: Any
    log_weights: np.ndarray
    energies: np.ndarray
    tilts: np.ndarray
    weight_errors: np.ndarray
    heats: np.ndarray
    leaf_heats: np.ndarray
    leaf_sizes: np.ndarray
    is_measured: bool
    rates: np.ndarray
    jumps: np.ndarray
    unexplained: float
    drift: float
    step_size: float
    is_exact: bool

    def at(self, number: int) -> "Bias":
        """The bias of one of several runs, which share it."""
        return self

    def measure(self, run: Any) -> "Bias":
        """The bias, which is measured already."""
        return self

    def reweighted(self, slope: float) -> "Bias":
        """The same draws where log weights gain `slope` times the energy."""
        tilt = np.where(np.isfinite(self.log_weights), slope * self.energies, 0.0)
        return self._replace(log_weights=self.log_weights + tilt)

    def of(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bias of the means of K functions and its standard error, from `values` at the draws, shape (C, S, K)."""
        return bias_of(values, self.tilts, self.log_weights)

    def relative(self) -> RelativeBias:
        """The bias of means and variances of the coordinates."""
        weights = normalized_weights(self.log_weights)
        values = np.where(weights[..., None] > 0, self.values, 0.0)
        mean = np.einsum("cs,csi->i", weights, values)
        variance = np.einsum("cs,csi->i", weights, (values - mean) ** 2)
        # A coordinate that never moved has no bias.
        variance = np.where(variance > 0, variance, np.inf)
        moved = (part / np.sqrt(variance) for part in self.of(values))
        widened = (part / variance for part in self.of((values - mean) ** 2))
        return RelativeBias(*moved, *widened)

    def __repr__(self) -> str:
        found, number = self.relative(), len(self.coordinates)
        worst = np.argsort(-np.maximum(np.abs(found.mean), np.abs(found.variance)), kind="stable")[:_MAX_SHOWN]
        shapes = None if self.draws is None else shapes_of(self.draws, 2)
        places = [int(place) for place in self.coordinates[worst]]
        names = [f"number {place}" if shapes is None else coordinate_name(shapes, place) for place in places]
        width = max(10, *map(len, names))
        shown = f"{len(worst)} of {number} coordinates, worst first"
        lines = [
            f"Bias at {self.log_weights.size} draws, step size {self.step_size:.3g}; {shown}",
            f"{'coordinate':{width}} {'mean/sd':>9} {'error':>8} {'variance':>9} {'error':>8}",
        ]
        for name, m, a, v, b in zip(names, *(part[worst] for part in found), strict=True):
            lines.append(f"{name:{width}} {m:+9.2g} {a:8.1g} {v:+9.2g} {b:8.1g}")
        return "\n".join(lines)


def is_small(draws: Any, lead: int) -> bool:
    """Whether the bias is measured at all coordinates of draws with `lead` leading axes."""
    return sum(math.prod(leaf.shape[lead:]) for leaf in jax.tree.leaves(draws)) <= MAX_COORDINATES


def bias_from(stored: dict[str, Any]) -> Bias | None:
    """The bias whose `_asdict` is stored as arrays; None for one with the fields of an older version."""
    if set(stored) != set(Bias._fields):
        return None
    plain = {name: stored[name].item() for name in ("is_measured", "unexplained", "drift", "step_size", "is_exact")}
    return Bias(**{**stored, **plain})


def bias_of(values: np.ndarray, tilts: np.ndarray, log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cov(f, s) and its standard error by the jackknife, for values of shape (chain, draw, K)."""
    # Diverged chains may hold infinities, and zero times infinity is not zero.
    values = np.where(np.isfinite(log_weights)[..., None], values, 0.0)
    found = []
    for weights, tilt in zip(weights_left_out(log_weights), tilts, strict=True):
        mean = np.einsum("cs,csk->k", weights, values)
        relative = weights * (tilt - np.sum(weights * tilt))
        found.append(np.einsum("cs,csk->k", relative, values - mean))
    return found[0], error_of(np.stack(found))


def weights_left_out(log_weights: np.ndarray) -> np.ndarray:
    """Weights of all draws, and those with each group of draws left out; shape (1 + G, chain, draw)."""
    weights = normalized_weights(log_weights)
    group = np.arange(log_weights.shape[1]) * NUM_GROUPS // log_weights.shape[1]
    kept = [weights, *(np.where(group == number, 0.0, weights) for number in range(NUM_GROUPS))]
    return np.stack([each / max(each.sum(), 1e-300) for each in kept])


def error_of(found: np.ndarray) -> np.ndarray:
    """The jackknife standard error of values of shape (1 + G, ...)."""
    deviations = found[1:] - np.mean(found[1:], axis=0)
    return np.sqrt(np.sum(deviations**2, axis=0) * (NUM_GROUPS - 1) / NUM_GROUPS)


def contradicted(heats: np.ndarray) -> int | None:
    """The coordinate whose temperature differs most from what is expected; None if none does significantly."""
    is_off = (np.abs(heats[0]) > significant(heats.shape[1]) * error_of(heats)) & (
        np.abs(heats[0]) > _MIN_CONTRADICTION
    )
    return int(np.argmax(np.where(is_off, np.abs(heats[0]), 0.0))) if np.any(is_off) else None


def significant(number: int) -> float:
    """The number of standard errors above which one of `number` biases is significant."""
    return max(3.0, float(scipy.special.stdtrit(NUM_GROUPS - 1.0, 1.0 - _FALSE_ALARMS / (2.0 * number))))
