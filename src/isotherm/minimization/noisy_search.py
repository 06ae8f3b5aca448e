"""One independent search of a noisy function: averaged stochastic descents, and races between what they find."""

import dataclasses

import numpy as np

from isotherm.minimization.descent import Minimum
from isotherm.minimization.exploration import Exploration
from isotherm.minimization.noisy_objective import NoisyObjective
from isotherm.minimization.proposals import AWSGLD, FAR, SCANS, Proposals
from isotherm.minimization.scan import scan
from isotherm.minimization.searcher import Tally

# Iterations and first step of a descent, in units of the box: after a jump, after a far one, and to refine the result.
_NEAR, _FAR, _REFINE = (40, 0.01), (120, 0.05), (400, 0.005)
# Adam's averages of gradients and of their squares.
_MEMORY, _SQUARES = 0.8, 0.95
# Values of a candidate in the first round of a race, and how many errors decide one.
_FIRST_ROUND, _ERRORS = 4, 2.0
# The most values of a candidate, as a share of the budget, and in any case.
_SHARE, _MAX_VALUES = 1 / 400, 512
_STALL, _STALL_PER_COORDINATE = 40, 15


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """A point with what is known of its value.

    Attributes:
        z: the point.
        values: noisy ones, all at `z`.
    """

    z: np.ndarray
    values: np.ndarray

    @property
    def mean(self) -> float:
        """The estimate."""
        return float(np.mean(self.values))

    @property
    def error(self) -> float:
        """Its standard error; not known from fewer than two values."""
        return float(np.std(self.values, ddof=1) / np.sqrt(len(self.values))) if len(self.values) > 1 else np.inf


class NoisySearcher:
    """A chain of minima, each lower than the last by more than the noise explains.

    Attributes:
        current: the lowest so far, or None before the first descent ended.
    """

    def __init__(self, objective: NoisyObjective, rng: np.random.Generator, tally: Tally):
        self.objective, self.rng, self.tally = objective, rng, tally
        self.proposals = Proposals(objective.space, rng)
        self.exploration = Exploration(objective, int(rng.integers(1 << 31)))
        self.current: Candidate | None = None
        self.most_values = min(max(int(_SHARE * objective.budget), 4 * _FIRST_ROUND), _MAX_VALUES)

    def run(self, given: np.ndarray | None) -> None:
        """Search until no jump helps any more."""
        start = self.objective.space.draw(self.rng, 1)[0] if given is None else given
        self.tally.num_descents += 1
        # Wherever a descent leads, the start stays a candidate.
        self.current = current = Candidate(start, self.objective.values(start, _FIRST_ROUND))
        current = self._settle(self.race(current, self.descend(start, *_FAR)))
        num_failures = 0
        while num_failures < _STALL + _STALL_PER_COORDINATE * start.size:
            after = self._attempt(self.proposals.choose(), current)
            num_failures = 0 if after.z is not current.z else num_failures + 1
            while after.z is not current.z:
                move, current = after.z - current.z, self._settle(after)
                again = self.objective.space.inside(current.z + move)
                after = self.race(current, self.descend(again, *_NEAR))
            self.current = current = after

    def refine(self, current: Candidate, allowed: int) -> Candidate:
        """A long descent from the current point, which stays if that is surely not higher."""
        number = min(_REFINE[0], allowed // (2 * self.objective.cost))
        return self.race(current, self.descend(current.z, number, _REFINE[1]), is_trusted=True)

    def _settle(self, current: Candidate) -> Candidate:
        self.current = current
        self.objective.judge(current.mean, current.error)
        return current

    def _attempt(self, kind: str, current: Candidate) -> Candidate:
        before = self.objective.num_evaluations
        here = Minimum(current.z, current.mean, 0.0)
        if kind == AWSGLD:
            start = self.exploration.explore(here)
        elif kind in SCANS:
            start, _ = scan(self.objective, self.rng, here, self.proposals.coordinate(kind), SCANS[kind])
        else:
            start = self.proposals.propose(kind, current.z)
        self.tally.num_descents += 1
        after = self.race(current, self.descend(start, *(_FAR if kind in FAR else _NEAR)))
        cost, is_better = self.objective.num_evaluations - before, after.z is not current.z
        self.proposals.learn(kind, cost, is_better)
        self.tally.note(kind, cost, is_better)
        return after

    def descend(self, start: np.ndarray, num_iterations: int, step: float) -> np.ndarray:
        """Adam with steps that fall to zero; the mean of the second half of its path."""
        z, total = start.copy(), np.zeros_like(start)
        mean, square = np.zeros_like(z), np.zeros_like(z)
        for number in range(num_iterations):
            _, gradient = self.objective.value_and_gradient(z)
            mean = _MEMORY * mean + (1 - _MEMORY) * gradient
            square = _SQUARES * square + (1 - _SQUARES) * gradient**2
            unbiased = mean / (1 - _MEMORY ** (number + 1))
            root = np.sqrt(square / (1 - _SQUARES ** (number + 1)))
            length = step * 0.5 * (1 + np.cos(np.pi * number / num_iterations))
            z = z - length * unbiased / np.maximum(root, 1e-300)
            if self.objective.space.is_bounded:
                z = np.clip(z, 0.0, 1.0)
            if number >= num_iterations // 2:
                total += z
        self.proposals.remember(total / (num_iterations - num_iterations // 2))
        return self.proposals.minima[-1]

    def race(self, current: Candidate, z: np.ndarray, is_trusted: bool = False) -> Candidate:
        """The candidate at `z` if it is lower than the current one, told from ever more values of both; else the current one.

        A trusted candidate is the end of a long descent from the current point: it wins unless it is surely higher.
        """
        values = self.objective.values(z, _FIRST_ROUND)
        while True:
            rival = Candidate(z, values)
            spread = np.sqrt(np.var(current.values, ddof=1) / len(values) + current.error**2)
            difference = rival.mean - current.mean
            if difference > _ERRORS * spread or len(values) >= self.most_values:
                is_lower = difference <= _ERRORS * spread if is_trusted else difference < -_ERRORS * spread
                return rival if is_lower else current
            if difference < -_ERRORS * spread and len(values) > _FIRST_ROUND:
                return rival
            values = np.append(values, self.objective.values(z, len(values)))
            missing = len(values) - len(current.values)
            if missing > 0:
                current = Candidate(current.z, np.append(current.values, self.objective.values(current.z, missing)))
                self.current = current
