"""By how much the means of a run are off, from what was measured at some of its draws; where it comes from is in `tilt`."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy

from isotherm.foundation.positions import coordinate_name, shapes_of
from isotherm.run.estimates import normalized_weights

# Of larger positions only some coordinates are looked at.
MAX_COORDINATES = 64
# Coordinates that are printed.
_MAX_SHOWN = 5
# Stretches of a run, each of which is left out in turn to find the error of a bias.
NUM_GROUPS = 20
# The probability that noise alone speaks up, over all coordinates.
_FALSE_ALARMS = 1e-3
# Temperatures that draws show contradict how the kernel steps if they differ from it by this share.
_MIN_CONTRADICTION = 0.25


class RelativeBias(NamedTuple):
    """By how much the coordinates of a `Bias` are off, each of shape (d,).

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
    """How a run's distribution differs from the one that was asked for, as far as its step size and gradient noise go.

    `of(values)` gives the bias of the mean of any function, `relative()` that of every coordinate; `print` shows the worst of them.

    Attributes:
        values: the coordinates of some draws, shape (chain, S, d); of large positions, of some coordinates only.
        coordinates: which ones, counted through the leaves.
        draws: those draws, leaves (chain, S, ...); None for large positions.
        log_weights: of these draws, shape (chain, S).
        energies: of these draws, as they were recorded, likewise.
        tilts: s at these: the density of the run over that which was asked for is 1 + s, up to second order. From all of them, and
            with stretches of the run left out, shape (1 + G, chain, S).
        weight_errors: the part of the tilts that noise on energies puts into the weights of a contour sampler, shape (chain, S).
        heats: by which share the temperatures of the coordinates are higher than expected, likewise (1 + G, d); zero where unknown.
        leaf_heats: by which share the temperatures of the whole position, and then of every leaf, are higher than that of the run,
            likewise (1 + G, 1 + leaves): the mean of (x - center) . g over that of their numbers; zero where unknown.
        leaf_sizes: how many numbers the whole and every leaf hold.
        is_measured: whether the tilt comes from what gradients at the draws say alone, and not from how the kernel steps.
        rates: the share of a stiff direction's width that a step forgets, at each of these draws, shape (chain, S).
        jumps: by how many temperatures the energy around them changes without its gradient, likewise.
        unexplained: by which share of itself a change of the energy typically differs from what its gradient says.
        drift: the mean square of what gradients move in a step over that of its noise, the largest of all coordinates.
        step_size: at which the chains moved, on average.
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
        """That of one run out of several, all of which have the same."""
        return self

    def measure(self, run: Any) -> "Bias":
        """What was measured, whatever is kept of the run."""
        return self

    def reweighted(self, slope: float) -> "Bias":
        """The same draws where log weights gain `slope` times the energy."""
        tilt = np.where(np.isfinite(self.log_weights), slope * self.energies, 0.0)
        return self._replace(log_weights=self.log_weights + tilt)

    def of(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By how much the means of K functions are off, and the error of that; `values` at the draws, shape (chain, S, K)."""
        return bias_of(values, self.tilts, self.log_weights)

    def relative(self) -> RelativeBias:
        """By how much means and variances of the coordinates are off."""
        weights = normalized_weights(self.log_weights)
        values = np.where(weights[..., None] > 0, self.values, 0.0)
        mean = np.einsum("cs,csi->i", weights, values)
        variance = np.einsum("cs,csi->i", weights, (values - mean) ** 2)
        # A coordinate that never moved is not off.
        variance = np.where(variance > 0, variance, np.inf)
        moved = (part / np.sqrt(variance) for part in self.of(values))
        widened = (part / variance for part in self.of((values - mean) ** 2))
        return RelativeBias(*moved, *widened)

    def __repr__(self) -> str:
        found, number = self.relative(), len(self.coordinates)
        worst = np.argsort(-np.maximum(np.abs(found.mean), np.abs(found.variance)), kind="stable")[:_MAX_SHOWN]
        shapes = None if self.draws is None else shapes_of(self.draws, 2)
        places = [int(place) for place in self.coordinates]
        names = [f"number {place}" if shapes is None else coordinate_name(shapes, place) for place in places]
        width = max(10, *(len(names[place]) for place in worst))
        chains, draws = self.log_weights.shape
        shown = f"{len(worst)} of {number} coordinates, worst first"
        return "\n".join(
            [
                f"Bias at {chains * draws} draws, step size {self.step_size:.3g}; {shown}",
                f"{'coordinate':{width}} {'mean/sd':>9} {'error':>8} {'variance':>9} {'error':>8}",
                *(
                    f"{names[i]:{width}} {m:+9.2g} {a:8.1g} {v:+9.2g} {b:8.1g}"
                    for i, m, a, v, b in ((i, *(part[i] for part in found)) for i in worst)
                ),
            ]
        )


def is_small(draws: Any, lead: int) -> bool:
    """Whether all coordinates of draws with so many leading axes are looked at."""
    return sum(math.prod(leaf.shape[lead:]) for leaf in jax.tree.leaves(draws)) <= MAX_COORDINATES


def bias_from(stored: dict[str, Any]) -> Bias | None:
    """The bias whose `_asdict` is stored as arrays; None for one with the fields of an older version."""
    if set(stored) != set(Bias._fields):
        return None
    plain = {name: stored[name].item() for name in ("is_measured", "unexplained", "drift", "step_size", "is_exact")}
    return Bias(**{**stored, **plain})


def bias_of(values: np.ndarray, tilts: np.ndarray, log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cov(f, s) and its standard error by the jackknife, for values of shape (chain, draw, K)."""
    # Of chains that diverged; zero times infinity is no zero.
    values = np.where(np.isfinite(log_weights)[..., None], values, 0.0)
    found = []
    for weights, tilt in zip(weights_left_out(log_weights), tilts, strict=True):
        mean = np.einsum("cs,csk->k", weights, values)
        relative = weights * (tilt - np.sum(weights * tilt))
        found.append(np.einsum("cs,csk->k", relative, values - mean))
    return found[0], error_of(np.stack(found))


def weights_left_out(log_weights: np.ndarray) -> np.ndarray:
    """Weights of all draws, and those with each of G stretches of the run left out; shape (1 + G, chain, draw)."""
    weights = normalized_weights(log_weights)
    group = np.arange(log_weights.shape[1]) * NUM_GROUPS // log_weights.shape[1]
    kept = [weights, *(np.where(group == number, 0.0, weights) for number in range(NUM_GROUPS))]
    return np.stack([each / max(each.sum(), 1e-300) for each in kept])


def error_of(found: np.ndarray) -> np.ndarray:
    """The standard error by the jackknife of what was found from all draws, and with each group of them left out; (1 + G, ...)."""
    deviations = found[1:] - np.mean(found[1:], axis=0)
    return np.sqrt(np.sum(deviations**2, axis=0) * (NUM_GROUPS - 1) / NUM_GROUPS)


def contradicted(heats: np.ndarray) -> int | None:
    """The coordinate in which the temperature of the draws differs most from what is expected, if it does; (1 + G, d)."""
    is_off = (np.abs(heats[0]) > significant(heats.shape[1]) * error_of(heats)) & (
        np.abs(heats[0]) > _MIN_CONTRADICTION
    )
    return int(np.argmax(np.where(is_off, np.abs(heats[0]), 0.0))) if np.any(is_off) else None


def significant(number: int) -> float:
    """How many of their errors must biases of so many coordinates exceed, so that noise alone hardly ever speaks up."""
    return max(3.0, float(scipy.special.stdtrit(NUM_GROUPS - 1.0, 1.0 - _FALSE_ALARMS / (2.0 * number))))
