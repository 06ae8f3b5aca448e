"""What noise on the energies does to the weights of contour samplers.

A chain feels the mean of psi over the noise, so that it follows exp(-U / T) over exp(E W(U + e)), where W is the integral of
(psi - 1) / T and e the noise. Its draws carry exp(W(U + e)), whose mean is larger, by a factor exp(delta(U)) that changes with the
energy wherever psi does:

    delta(u) = log E exp(W(u + e)) - E W(u + e)

So a run takes a correction D(U + e) off, found such that E exp(W(u + e) - D(u + e)) = exp(E W(u + e)) for all u: exact for normal
noise that is the same everywhere. With a further tilt a, which takes draws to another temperature, W is W(u) + a u.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy

# Nodes of Gauss and Hermite; rounds of the correction, each of which sees what the last one left.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_ROUNDS = 30
# Rounds end where they do not lower what is left by this factor.
_MIN_GAIN = 0.98
# Cells of the table that a correction is found on, and how far noise reaches beyond the energies, in its standard deviations.
_NUM_CELLS, _REACH = 600, 8.0
# Quantiles of the energies at which a correction is judged.
_TYPICAL = np.linspace(0.02, 0.98, 49)
# Groups of draws by energy, in each of which noise is taken as one, and the fewest draws of a group.
_MAX_GROUPS, _MIN_IN_GROUP = 12, 60


class WeightFunction(NamedTuple):
    """Log weights as a function of the energy, of one theta.

    Attributes:
        low: the first edge.
        width: of a bin.
        slopes: of the log weight in every bin, (psi - 1) / T; the first and the last are open.
        masses: of the bins, by which a correction is found, whatever draws are kept; None goes by the energies at hand.
    """

    low: float
    width: float
    slopes: np.ndarray
    masses: np.ndarray | None = None

    def at(self, energies: np.ndarray) -> np.ndarray:
        """W, up to a constant."""
        edges = self.low + self.width * np.arange(len(self.slopes) - 1)
        values = np.concatenate([[0.0], np.cumsum(self.slopes[1:-1]) * self.width])
        inside = np.interp(energies, edges, values)
        below, above = np.minimum(energies - edges[0], 0.0), np.maximum(energies - edges[-1], 0.0)
        return inside + self.slopes[0] * below + self.slopes[-1] * above

    def correction(self, energies: np.ndarray, noise: float, tilt: float = 0.0) -> tuple[np.ndarray, float]:
        """What to take off W + tilt * u at noisy energies, and the most that is still wrong with log weights where draws are.

        Found on a grid, round by round: what is left of the excess after the last correction is taken off too.
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
            left = _log_mean_exp(exponents - np.interp(nodes, grid, found)) - wanted
            there = np.interp(typical, grid, left)
            # A constant moves no mean, but normalizing constants.
            worst = max(float(np.ptp(there)), abs(float(np.mean(there))))
            if worst > _MIN_GAIN * least:
                break
            best, least = found, worst
            found = found + left
        # Rare energies take what typical ones take: where noise is as wide as what is flattened, rounds run away in the tails.
        at_typical = np.interp(typical, grid, best)
        taken = np.interp(np.where(is_finite, energies, low), grid, best)
        return np.clip(taken, at_typical.min(), at_typical.max()), least


def noise_to_take_off(
    energies: np.ndarray, stats: dict[str, Any], config: dict[str, Any], tilt: float = 0.0
) -> tuple[np.ndarray, float] | None:
    """What noise adds to log weights, and to a tilt, at energies (chain, draw), and the most that is left when it is taken off.

    None where it cannot be told: of exact energies, of weights that are no integral of psi, or where the coupling read other
    energies than were recorded.
    """
    functions = weight_functions(stats, config)
    if functions is None or config.get("is_exact") or not config.get("reads_whole_energy", True):
        return None
    if not np.all(np.isfinite(stats["energy_noise"])):
        return None
    squares = np.broadcast_to(np.square(stats["energy_noise"]), len(energies))
    energies = np.asarray(energies, np.float64)
    if len(functions) == 1:
        return functions[0].correction(energies, float(np.sqrt(np.mean(squares))), tilt)
    found = [
        f.correction(own, float(noise), tilt)
        for f, own, noise in zip(functions, energies, np.sqrt(squares), strict=True)
    ]
    return np.stack([taken for taken, _ in found]), max(left for _, left in found)


def of_runs(
    energies: np.ndarray, stats: dict[str, Any], config: dict[str, Any], tilt: float = 0.0
) -> tuple[np.ndarray, float] | None:
    """The same for energies (chain, draw), or (run, chain, draw) with statistics of every run."""
    if energies.ndim == 2:
        return noise_to_take_off(energies, stats, config, tilt)
    needed = {name: np.asarray(stats[name]) for name in ("weight_slopes", "energy_noise", "theta")}
    found = []
    for number, own in enumerate(energies):
        one = noise_to_take_off(own, {name: value[number] for name, value in needed.items()}, config, tilt)
        if one is None:
            return None
        found.append(one)
    return np.stack([taken for taken, _ in found]), max(left for _, left in found)


def weight_functions(stats: dict[str, Any], config: dict[str, Any]) -> list[WeightFunction] | None:
    """Those of a run without an axis of runs, one for every theta; None where weights are not such integrals."""
    edges, slopes = config.get("weight_edges"), stats.get("weight_slopes")
    if slopes is None or edges is None:
        return None
    low, width, is_cumulative = edges
    theta = np.asarray(stats["theta"], np.float64)
    if is_cumulative:
        theta = np.diff(theta, axis=-1, prepend=0.0)
    return [WeightFunction(low, width, *rows) for rows in zip(np.asarray(slopes, np.float64), theta, strict=True)]


def local_noise(energies: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The standard deviation of energies at every draw, from two independent ones, as it is among draws of like energy."""
    mean, square = 0.5 * (energies + others).reshape(-1), 0.5 * ((energies - others) ** 2).reshape(-1)
    is_known = np.isfinite(mean) & np.isfinite(square)
    found = np.zeros_like(mean)
    order = np.flatnonzero(is_known)[np.argsort(mean[is_known])]
    for group in np.array_split(order, max(min(len(order) // _MIN_IN_GROUP, _MAX_GROUPS), 1)):
        found[group] = np.sqrt(np.mean(square[group])) if len(group) else 0.0
    return found.reshape(energies.shape)


def _log_mean_exp(values: np.ndarray) -> np.ndarray:
    return scipy.special.logsumexp(values, axis=-1, b=_WEIGHTS)
