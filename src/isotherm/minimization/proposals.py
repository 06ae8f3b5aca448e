"""Where a search jumps to from a minimum, and which kinds of jumps are worth their evaluations."""

import numpy as np

from isotherm.minimization.space import Space

# Displacements are this share of the box, at the least, and at the most.
_MIN_SIZE, _MAX_SIZE = 0.002, 0.3
# What a success was worth fades by this factor with every jump, and every kind keeps this share of the evaluations.
_FADE, _FLOOR = 0.98, 0.03
# What a kind is thought to have cost before it was tried, and how often it was.
_PRIOR_COST, _PRIOR_JUMPS = 20.0, 2.0

AWSGLD = "awsgld"
# Scans of one coordinate, with the share of the box that they see.
SCANS = {"scan of all": 1.0, "scan of 30 %": 0.3, "scan of 10 %": 0.1, "scan of 3 %": 0.03}
KINDS = (*SCANS, "several", "difference", "exchange", "everywhere", "restart", AWSGLD)
# Kinds after which nothing is known of where the descent will end.
FAR = ("everywhere", "restart")
# Successes that a kind is thought to have had before it was tried.
_PRIOR_SUCCESSES = dict.fromkeys(KINDS, 0.5) | {"scan of all": 3.0, "restart": 1.0, AWSGLD: 0.3}


class Proposals:
    """Jumps of one searcher.

    - `scan of ...`: a few values with slopes along one coordinate; the lowest point of a cubic between any two (`scan.py`).
    - `several`: some coordinates move by heavy-tailed steps, whose scale is drawn over more than two decades.
    - `difference`: by the difference of two minima that were met, which finds the lattice of a rotated function.
    - `exchange`: some coordinates are taken from another minimum.
    - `everywhere`: a normal step of all coordinates.
    - `restart`: anywhere.
    - `awsgld`: where a chain of AWSGLD that explores from here has come to (`exploration.py`).
    """

    def __init__(self, space: Space, rng: np.random.Generator):
        self.space, self.rng = space, rng
        self.minima: list[np.ndarray] = []
        self.orders = {kind: rng.permutation(space.dimension) for kind in KINDS}
        self.turns = dict.fromkeys(KINDS, 0)
        self.successes = dict(_PRIOR_SUCCESSES)
        self.costs = dict.fromkeys(KINDS, _PRIOR_COST)
        self.jumps = dict.fromkeys(KINDS, _PRIOR_JUMPS)

    def choose(self) -> str:
        """A kind, at random, so that kinds get evaluations in proportion to their successes per evaluation."""
        rates = np.array([self.successes[kind] / self.costs[kind] for kind in KINDS])
        shares = _FLOOR + (1.0 - _FLOOR * len(KINDS)) * rates / rates.sum()
        shares *= [self.jumps[kind] / self.costs[kind] for kind in KINDS]
        return KINDS[int(self.rng.choice(len(KINDS), p=shares / shares.sum()))]

    def learn(self, kind: str, cost: int, is_better: bool) -> None:
        """Credit a kind with what it did."""
        for each in KINDS:
            prior = _PRIOR_SUCCESSES[each]
            self.successes[each] = prior + (self.successes[each] - prior) * _FADE
            self.costs[each] = _PRIOR_COST + (self.costs[each] - _PRIOR_COST) * _FADE
            self.jumps[each] = _PRIOR_JUMPS + (self.jumps[each] - _PRIOR_JUMPS) * _FADE
        self.successes[kind] += float(is_better)
        self.costs[kind] += cost
        self.jumps[kind] += 1.0

    def propose(self, kind: str, z: np.ndarray) -> np.ndarray:
        """A point to descend from."""
        if kind == "difference" and len(self.minima) >= 2:
            first, second = self.rng.choice(len(self.minima), 2, replace=False)
            return self.space.inside(z + self.minima[first] - self.minima[second])
        if kind == "exchange" and self.minima:
            other = self.minima[int(self.rng.integers(len(self.minima)))]
            return np.where(self.rng.uniform(size=z.size) < self.rng.uniform(0.1, 0.9), other, z)
        if kind == "restart":
            return self.space.draw(self.rng, 1)[0]
        if kind == "everywhere":
            return self.space.inside(z + self._scale() * self.rng.normal(size=z.size))
        after = z.copy()
        scale = self._scale()
        for _ in range(int(self.rng.integers(1, max(2, min(6, z.size + 1))))):
            after[self.coordinate(kind)] += scale * np.clip(self.rng.standard_cauchy(), -10.0, 10.0)
        return self.space.inside(after)

    def remember(self, z: np.ndarray) -> None:
        """Keep a minimum; of many, the latest."""
        self.minima = [*self.minima[-49:], z]

    def coordinate(self, kind: str) -> int:
        """The coordinates in turn: in a random order, and none before all others were."""
        if self.turns[kind] == self.space.dimension:
            self.orders[kind], self.turns[kind] = self.rng.permutation(self.space.dimension), 0
        self.turns[kind] += 1
        return int(self.orders[kind][self.turns[kind] - 1])

    def _scale(self) -> float:
        return float(np.exp(self.rng.uniform(np.log(_MIN_SIZE), np.log(_MAX_SIZE))))
