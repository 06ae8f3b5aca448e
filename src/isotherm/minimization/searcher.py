"""One independent search: descents from a start, then jumps from minimum to lower minimum until none helps."""

import numpy as np

from isotherm.foundation.errors import refuse
from isotherm.minimization.descent import Hope, Minimum, descend
from isotherm.minimization.exploration import Exploration
from isotherm.minimization.objective import Objective
from isotherm.minimization.proposals import AWSGLD, FAR, KINDS, SCANS, Proposals
from isotherm.minimization.scan import scan

# Random points of which the best is the start, and how many are tried for a finite one.
_NUM_STARTS, _MAX_STARTS = 2, 200
# The longest first step of a descent: from a start, and after a jump, per length of it, in units of the box.
_FROM_START, _AFTER_JUMP = 1.0, 0.5
# Iterations like the last that a descent may need to come below the current minimum: after a jump, and after a far one.
_HOPE, _FAR_HOPE = 4.0, 200.0
# Jumps without success after which a searcher has stagnated: some, and more for every coordinate.
_STALL, _STALL_PER_COORDINATE = 60, 30
# What counts as lower.
_LOWER = 1e-9


class Tally:
    """What a search did, over all its searchers.

    Attributes:
        num_descents: descents, those that were given up included.
        jumps: how often each kind of jump was made.
        improvements: how often it led to a lower minimum.
        evaluations: what it cost, descents included.
    """

    def __init__(self):
        self.num_descents = 0
        self.jumps = dict.fromkeys(KINDS, 0)
        self.improvements = dict.fromkeys(KINDS, 0)
        self.evaluations = dict.fromkeys(KINDS, 0)

    def note(self, kind: str, cost: int, is_better: bool) -> None:
        """Count one jump."""
        self.jumps[kind] += 1
        self.evaluations[kind] += cost
        self.improvements[kind] += int(is_better)


class Searcher:
    """A chain of descending minima from a start of its own.

    Attributes:
        current: its lowest minimum, or None before its first descent ended.
    """

    def __init__(self, objective: Objective, rng: np.random.Generator, tally: Tally):
        self.objective, self.rng, self.tally = objective, rng, tally
        self.proposals = Proposals(objective.space, rng)
        self.current: Minimum | None = None
        self.exploration = Exploration(objective, int(rng.integers(1 << 31)))

    def run(self, given: np.ndarray | None) -> None:
        """Search until no jump helps any more; `current` is the lowest minimum so far."""
        longest = _FROM_START * np.sqrt(self.objective.space.dimension)
        start, known = self._start(given)
        self.tally.num_descents += 1
        self.current = current = descend(self.objective, start, longest, known=known)
        self.proposals.remember(current.z)
        num_failures = 0
        while num_failures < _STALL + _STALL_PER_COORDINATE * current.z.size:
            kind = self.proposals.choose()
            after = self._attempt(kind, current)
            num_failures = 0 if after.value < current.value else num_failures + 1
            while after.value < current.value:
                # What helped once may help again.
                move, self.current = after.z - current.z, after
                current = after
                again = self.objective.space.inside(current.z + move)
                after = self._descend(again, current)

    def _attempt(self, kind: str, current: Minimum) -> Minimum:
        """Jump, descend, and learn what it was worth."""
        before = self.objective.num_evaluations
        if kind == AWSGLD:
            start = self.exploration.explore(current)
        elif kind in SCANS:
            start, expected = scan(self.objective, self.rng, current, self.proposals.coordinate(kind), SCANS[kind])
            if expected >= current.value:
                start = current.z
        else:
            start = self.proposals.propose(kind, current.z)
        after = self._descend(start, current, kind in FAR)
        cost = self.objective.num_evaluations - before
        is_better = after.value < current.value
        self.proposals.learn(kind, cost, is_better)
        self.tally.note(kind, cost, is_better)
        return after

    def _descend(self, start: np.ndarray, current: Minimum, is_far: bool = False) -> Minimum:
        """The minimum below a jump, or the current one if that is not higher."""
        jump = float(np.linalg.norm(start - current.z))
        if jump == 0.0:
            return current
        self.tally.num_descents += 1
        longest = _FROM_START * np.sqrt(start.size) if is_far else _AFTER_JUMP * jump
        hope = Hope(current, _FAR_HOPE if is_far else _HOPE, not is_far)
        after = descend(self.objective, start, longest, hope)
        self.proposals.remember(after.z)
        return after if after.value < current.value - _LOWER * self.objective.unit(current.value) else current

    def _start(self, given: np.ndarray | None) -> tuple[np.ndarray, tuple[float, np.ndarray]]:
        """The given start, or the best of some random ones; in either case a finite one."""
        points = [] if given is None else [given]
        found = []
        for number in range(_MAX_STARTS):
            z = points[number] if number < len(points) else self.objective.space.draw(self.rng, 1)[0]
            value, gradient = self.objective.value_and_gradient(z)
            if np.isfinite(value):
                found.append((value, number, z, gradient))
                if number < len(points) or len(found) == _NUM_STARTS:
                    break
        if not found:
            refuse("fun", "finite somewhere", f"not finite at {_MAX_STARTS} starts", "Give other bounds, or `x0`.")
        value, _, z, gradient = min(found, key=lambda one: one[:2])
        return z, (value, gradient)
