"""Jumps of a searcher from its minimum, and which kinds of them are worth their evaluations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.contour import uniform_partition
from isotherm.foundation.randomness import seed_key
from isotherm.minimization.objective import Objective
from isotherm.samplers import awsgld

# Smallest and largest displacement, as shares of the box.
_MIN_SIZE, _MAX_SIZE = 0.002, 0.3
# Factor by which credit fades with every jump, and minimum share of the evaluations of every kind.
_FADE, _FLOOR = 0.98, 0.03
AWSGLD = "awsgld"
# Scans of one coordinate, with the share of the box that they cover, and their number of points.
SCANS = {"scan of all": 1.0, "scan of 30 %": 0.3, "scan of 10 %": 0.1, "scan of 3 %": 0.03}
_NUM_POINTS = 8
KINDS = (*SCANS, "several", "difference", "exchange", "everywhere", "restart", AWSGLD)
# Kinds whose descent may end anywhere.
FAR = ("everywhere", "restart")
# Prior successes, evaluations and jumps of every kind.
_SUCCESSES = {"scan of all": 3.0, "restart": 1.0, AWSGLD: 0.3}
_PRIOR = np.array([(_SUCCESSES.get(kind, 0.5), 20.0, 2.0) for kind in KINDS]).T
# Of AWSGLD, in units of the box per coordinate: displacement by a typical gradient, noise, and maximum displacement.
_DRIFT, _NOISE, _REACH = 0.01, 0.02, 0.1
_NUM_BINS = 64
# Iterations of AWSGLD per jump.
NUM_STEPS = 24


class Tally:
    """Counts over all searchers of a search. Descents that were stopped early count; evaluations of jumps include descents."""

    def __init__(self):
        self.num_descents = 0
        self.jumps = {kind: {"number": 0, "evaluations": 0, "better": 0} for kind in KINDS}


class Jumps:
    """Jumps of one searcher.

    - `scan of ...`: values with slopes along one coordinate; the lowest point of a cubic between any two.
    - `several`: heavy-tailed steps of some coordinates, with a scale drawn over more than two decades.
    - `difference`: the difference of two earlier minima, which finds the lattice of a rotated function.
    - `exchange`: some coordinates of another minimum.
    - `everywhere`: a normal step of all coordinates.
    - `restart`: a random point.
    - `awsgld`: the end of an excursion of AWSGLD.
    """

    def __init__(self, objective: Objective, rng: np.random.Generator, tally: Tally):
        self.objective, self.space, self.rng, self.tally = objective, objective.space, rng, tally
        self.minima: list[np.ndarray] = []
        self.orders = {kind: list(rng.permutation(self.space.dimension)) for kind in KINDS}
        self.credit = _PRIOR
        self.exploration = Exploration(objective, int(rng.integers(1 << 31)))

    def choose(self) -> str:
        """A random kind. Expected evaluations of kinds are proportional to their successes per evaluation."""
        successes, costs, jumps = self.credit
        rates = successes / costs
        shares = (_FLOOR + (1.0 - _FLOOR * len(KINDS)) * rates / rates.sum()) * (jumps / costs)
        return KINDS[int(self.rng.choice(len(KINDS), p=shares / shares.sum()))]

    def learn(self, kind: str, cost: int, is_better: bool) -> None:
        """Credit a kind with the result of a jump."""
        self.credit = _PRIOR + (self.credit - _PRIOR) * _FADE
        self.credit[:, KINDS.index(kind)] += is_better, cost, 1
        row = self.tally.jumps[kind]
        row["number"] += 1
        row["evaluations"] += cost
        row["better"] += int(is_better)

    def start(self, kind: str, current: Any) -> tuple[np.ndarray, float]:
        """A point to descend from, and the value expected there by a scan (-inf for other kinds)."""
        z, rng = current.z, self.rng
        if kind in SCANS:
            return self._scan(current, self._coordinate(kind), SCANS[kind])
        if kind == AWSGLD:
            after = self.exploration.explore(current)
        elif kind == "difference" and len(self.minima) >= 2:
            first, second = rng.choice(len(self.minima), 2, replace=False)
            after = self.space.inside(z + self.minima[first] - self.minima[second])
        elif kind == "exchange" and self.minima:
            other = self.minima[int(rng.integers(len(self.minima)))]
            after = np.where(rng.uniform(size=z.size) < rng.uniform(0.1, 0.9), other, z)
        elif kind == "restart":
            after = self.space.draw(rng)
        elif kind == "everywhere":
            after = self.space.inside(z + self._scale() * rng.normal(size=z.size))
        else:
            after, scale = z.copy(), self._scale()
            for _ in range(int(rng.integers(1, max(2, min(6, z.size + 1))))):
                after[self._coordinate(kind)] += scale * np.clip(rng.standard_cauchy(), -10.0, 10.0)
            after = self.space.inside(after)
        return after, -np.inf

    def remember(self, z: np.ndarray) -> None:
        """Keep a minimum, and the 49 before it."""
        self.minima = [*self.minima[-49:], z]

    def _coordinate(self, kind: str) -> int:
        """The next coordinate: all in a random order, then all in another one."""
        if not self.orders[kind]:
            self.orders[kind] = list(self.rng.permutation(self.space.dimension))
        return int(self.orders[kind].pop(0))

    def _scale(self) -> float:
        return float(np.exp(self.rng.uniform(np.log(_MIN_SIZE), np.log(_MAX_SIZE))))

    def _scan(self, current: Any, place: int, share: float) -> tuple[np.ndarray, float]:
        """The point with the lowest expected value on a line through a minimum, and that value."""
        middle = current.z[place]
        low, high = middle - share / 2, middle + share / 2
        if self.space.is_bounded:
            low, high = (0.0, 1.0) if share >= 1.0 else (max(low, 0.0), min(high, 1.0))
        # One point in each of eight equal parts.
        places = low + (high - low) * (np.arange(_NUM_POINTS) + self.rng.uniform(size=_NUM_POINTS)) / _NUM_POINTS
        points = np.repeat(current.z[None], _NUM_POINTS, axis=0)
        points[:, place] = places
        values, gradients = self.objective.many(points)
        nodes = np.append(places, middle)
        heights, slopes = np.append(values, current.value), np.append(gradients[:, place], 0.0)
        found = current.z.copy()
        found[place], expected = lowest_of_cubics(nodes, heights, slopes, middle)
        return found, expected


def lowest_of_cubics(nodes: np.ndarray, values: np.ndarray, slopes: np.ndarray, but: float) -> tuple[float, float]:
    """The lowest interior minimum of the cubics through neighboring nodes, or the lowest node other than `but`.

    Example:
        >>> place, value = lowest_of_cubics(np.array([0.0, 2.0]), np.array([1.0, 1.0]), np.array([-2.0, 2.0]), 0.0)
        >>> place, value
        (1.0, 0.0)
    """
    order = np.argsort(nodes)
    nodes, values, slopes = nodes[order], values[order], slopes[order]
    lowest = int(np.argmin(np.where(nodes != but, values, np.inf)))
    best, expected = float(nodes[lowest]), float(values[lowest])
    width = np.diff(nodes)
    # On [0, 1] the cubic is a t^3 + b t^2 + c t + value.
    c, after, rise = slopes[:-1] * width, slopes[1:] * width, np.diff(values)
    a, b = c + after - 2 * rise, 3 * rise - 2 * c - after
    discriminant = b**2 - 3 * a * c
    # The root of the derivative with a positive second derivative, which is twice `root`.
    root = np.sqrt(np.maximum(discriminant, 0.0))
    below = b + root
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(b >= 0, -c / below, (root - b) / (3 * a))
    is_inside = (discriminant > 0) & (t > 0) & (t < 1)
    t = np.where(is_inside, t, 0.0)
    bottoms = np.where(is_inside, ((a * t + b) * t + c) * t + values[:-1], np.inf)
    first = int(np.argmin(bottoms)) if bottoms.size else 0
    if bottoms.size and bottoms[first] < expected:
        return float(nodes[first] + t[first] * width[first]), float(bottoms[first])
    return best, expected


class Exploration:
    """A chain of AWSGLD, which keeps its position, weights of bins and iteration between excursions."""

    def __init__(self, objective: Objective, seed: int):
        self.objective, self.key = objective, seed_key(seed)
        self.state: Any = None

    def explore(self, current: Any) -> np.ndarray:
        """End of another excursion. The first one starts at `current`."""
        objective = self.objective
        if self.state is None:
            self._begin(current)
        objective.spend(NUM_STEPS * objective.cost)
        # A new function, because JAX would keep programs of `_advance` after the search.
        advance = objective.programs.setdefault("advance", jax.jit(lambda *given: _advance(*given)))
        with objective.precision():
            self.state, positions, energies = advance(self.sampler, self.key, self.state)
            positions, energies = np.asarray(positions, float), np.asarray(energies, float)
        lowest = int(np.argmin(energies))
        objective.take(positions[lowest], float(energies[lowest]))
        return objective.space.inside(np.asarray(self.state.position[0], float))

    def _begin(self, current: Any) -> None:
        """Set step size, temperature and bins from the value and gradient near `current`."""
        objective, dimension = self.objective, current.z.size
        value, gradient = objective.value_and_gradient(objective.space.inside(current.z + _DRIFT * np.ones(dimension)))
        root = np.sqrt(dimension)
        step_size = _DRIFT * root / max(float(np.linalg.norm(gradient)), 1e-12)
        temperature = _NOISE**2 / (2 * step_size)
        spread = max(value - current.value, temperature, 1e-6 * max(1.0, abs(current.value)))
        partition = uniform_partition(current.value - spread, current.value + 20 * spread, _NUM_BINS)
        self.sampler = awsgld(
            step_size,
            temperature=temperature,
            partition=partition,
            zeta=partition.width / temperature,
            max_displacement=_REACH * root,
            box=(0.0, 1.0) if objective.space.is_bounded else None,
        )
        with objective.precision():
            self.state = self.sampler.init(objective.potential, jnp.asarray(current.z))


def _advance(sampler: Any, key: Array, state: Any) -> tuple[Any, Array, Array]:
    def once(state, _):
        after, info = sampler.step(key, state)
        return after, (state.position[0], info.energy[0])

    state, (positions, energies) = jax.lax.scan(once, state, length=NUM_STEPS)
    return state, positions, energies
