"""The bias of the weights of contour samplers by energy noise, and its correction.

With noise e on the energy, a chain moves by the mean of psi over the noise, so that it follows exp(-U / T) / exp(E W(U + e)), where
W is the integral of (psi - 1) / T. Its draws carry exp(W(U + e)), whose mean is larger by a factor exp(delta(U)):

    delta(u) = log E exp(W(u + e)) - E W(u + e)

The correction D(U + e) is subtracted from W, with E exp(W(u + e) - D(u + e)) = exp(E W(u + e)) for all u. It is exact for normal
noise of one variance. With a tilt a, which takes draws to another temperature, W is W(u) + a u.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy

# Nodes of Gauss-Hermite quadrature; rounds of the correction.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_ROUNDS = 30
# Rounds end when they do not lower the error by this factor.
_MIN_GAIN = 0.98
# Cells of the grid of a correction, and its reach beyond the energies, in standard deviations of the noise.
_NUM_CELLS, _REACH = 600, 8.0
# Quantiles of the energies at which a correction is judged.
_TYPICAL = np.linspace(0.02, 0.98, 49)
# Groups of draws by energy, each with one noise, and the fewest draws of a group.
_MAX_GROUPS, _MIN_IN_GROUP = 12, 60


class WeightFunction(NamedTuple):
    """Log weights as a function of the energy, of one theta."""

    low: float  # The first edge.
    width: float  # Of a bin.
    slopes: np.ndarray  # Of the log weight in every bin, (psi - 1) / T; the first and the last bin are open.
    masses: np.ndarray | None = (
        None  # Of the bins, which place the grid of a correction; None places it by the energies given.
    )

    def at(self, energies: np.ndarray) -> np.ndarray:
        """W, up to a constant."""
        edges = self.low + self.width * np.arange(len(self.slopes) - 1)
        values = np.concatenate([[0.0], np.cumsum(self.slopes[1:-1]) * self.width])
        inside = np.interp(energies, edges, values)
        below, above = np.minimum(energies - edges[0], 0.0), np.maximum(energies - edges[-1], 0.0)
        return inside + self.slopes[0] * below + self.slopes[-1] * above

    def correction(self, energies: np.ndarray, noise: float, tilt: float = 0.0) -> tuple[np.ndarray, float]:
        """D for W + tilt * u at noisy energies, and the largest error of log weights left at typical energies.

        Each round on the grid adds the excess that the last correction left.
        """
        is_finite = np.isfinite(energies)
        if noise == 0.0 or not np.any(is_finite):
            return np.zeros_like(energies), 0.0
        if self.masses is None:
            typical = np.quantile(energies[is_finite], _TYPICAL)
            low, high = np.min(energies[is_finite]), np.max(energies[is_finite])
        else:
            edges = self.low + self.width * np.arange(-1, len(self.slopes))
            below = np.cumsum(self.masses) / np.sum(self.masses)
            low, *typical, high = np.interp([1e-4, *_TYPICAL, 1.0 - 1e-4], below, edges[1:])
        grid = np.linspace(low - _REACH * noise, high + _REACH * noise, _NUM_CELLS)
        nodes = grid[:, None] + noise * _NODES
        wanted = self.at(nodes) @ _WEIGHTS + tilt * grid
        exponents = self.at(nodes) + tilt * nodes
        found, best, least = np.zeros_like(grid), np.zeros_like(grid), np.inf
        for _ in range(_ROUNDS):
            left = scipy.special.logsumexp(exponents - np.interp(nodes, grid, found), axis=-1, b=_WEIGHTS) - wanted
            there = np.interp(typical, grid, left)
            # A constant error changes normalizing constants, though no mean.
            worst = max(float(np.ptp(there)), abs(float(np.mean(there))))
            if worst > _MIN_GAIN * least:
                break
            best, least = found, worst
            found = found + left
        # Clipped to the range at typical energies: rounds diverge in the tails if noise is as wide as the flattened range.
        at_typical = np.interp(typical, grid, best)
        taken = np.interp(np.where(is_finite, energies, low), grid, best)
        return np.clip(taken, at_typical.min(), at_typical.max()), least


def noise_correction(
    energies: np.ndarray, stats: dict[str, Any], config: dict[str, Any], tilt: float = 0.0
) -> tuple[np.ndarray, float] | None:
    """The correction of log weights, and of a tilt, for energy noise, and the largest error that it leaves.

    Energies are (chain, draw), or (run, chain, draw) with statistics of every run. None for exact energies, for weights that are no
    integral of psi, and for couplings that read other energies than were recorded.
    """
    if energies.ndim == 3:
        needed = {name: np.asarray(stats[name]) for name in ("weight_slopes", "energy_noise", "theta")}
        runs = [{name: value[number] for name, value in needed.items()} for number in range(len(energies))]
        found = [noise_correction(own, one, config, tilt) for own, one in zip(energies, runs, strict=True)]
        return _stacked([one for one in found if one is not None]) if None not in found else None
    functions = weight_functions(stats, config)
    if functions is None or config.get("is_exact") or not config.get("reads_whole_energy", True):
        return None
    if not np.all(np.isfinite(stats["energy_noise"])):
        return None
    squares = np.broadcast_to(np.square(stats["energy_noise"]), len(energies))
    energies = np.asarray(energies, np.float64)
    if len(functions) == 1:
        return functions[0].correction(energies, float(np.sqrt(np.mean(squares))), tilt)
    chains = zip(functions, energies, np.sqrt(squares), strict=True)
    return _stacked([function.correction(own, float(noise), tilt) for function, own, noise in chains])


def _stacked(found: list[tuple[np.ndarray, float]]) -> tuple[np.ndarray, float]:
    return np.stack([correction for correction, _ in found]), max(left for _, left in found)


def weight_functions(stats: dict[str, Any], config: dict[str, Any]) -> list[WeightFunction] | None:
    """The weight function of every theta of one run; None for weights that are no integral of psi."""
    edges, slopes = config.get("weight_edges"), stats.get("weight_slopes")
    if slopes is None or edges is None:
        return None
    low, width, is_cumulative = edges
    theta = np.asarray(stats["theta"], np.float64)
    if is_cumulative:
        theta = np.diff(theta, axis=-1, prepend=0.0)
    return [WeightFunction(low, width, *rows) for rows in zip(np.asarray(slopes, np.float64), theta, strict=True)]


def local_noise(energies: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The standard deviation of the noise at every draw, from two independent energies, pooled over draws of similar energy."""
    mean, square = 0.5 * (energies + others).reshape(-1), 0.5 * ((energies - others) ** 2).reshape(-1)
    is_known = np.isfinite(mean) & np.isfinite(square)
    found = np.zeros_like(mean)
    order = np.flatnonzero(is_known)[np.argsort(mean[is_known])]
    for group in np.array_split(order, max(min(len(order) // _MIN_IN_GROUP, _MAX_GROUPS), 1)):
        found[group] = np.sqrt(np.mean(square[group])) if len(group) else 0.0
    return found.reshape(energies.shape)
