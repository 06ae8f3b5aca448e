"""Local descents of a global search: SciPy's L-BFGS-B, given up where it leads to a worse well."""

import collections
import dataclasses
from typing import Any

import numpy as np

from isotherm.minimization.objective import Objective

# A descent ends when an iteration lowers the value by less than this share of it, or of what the last ten iterations did.
_RELATIVE, _OF_GAIN, _LATE = 1e-9, 1e-14, 10
# And when it comes back: this close, in units of the jump.
_BACK = 0.1
_MAX_ITERATIONS = 500


@dataclasses.dataclass(frozen=True, eq=False)
class Minimum:
    """Where a descent ended.

    Attributes:
        z: the point, in units of the box.
        value: there.
        curvature_radius: the length of a step per length of a gradient, from the last two iterations.
    """

    z: np.ndarray
    value: float
    curvature_radius: float


@dataclasses.dataclass(frozen=True)
class Hope:
    """When a descent that came from another minimum is given up.

    Attributes:
        origin: the minimum that it has to come below.
        num_iterations: how many iterations like its last one it may need for that.
        is_near: whether the start looks like the surroundings of `origin`, so that its curvature gives the first step.
    """

    origin: Minimum
    num_iterations: float
    is_near: bool


def descend(
    objective: Objective, start: np.ndarray, longest: float, hope: Hope | None = None, known: Any = None
) -> Minimum:
    """The minimum below `start`, or where the descent to it was given up.

    Args:
        objective: what is minimized.
        start: where from.
        longest: the length of the first step, at most.
        hope: when it is given up; None goes to the end.
        known: value and gradient at `start`, where they were computed before.
    """
    from scipy.optimize import minimize

    origin = None if hope is None else hope.origin
    value, gradient = objective.value_and_gradient(start) if known is None else known
    norm = float(np.linalg.norm(gradient))
    if norm == 0.0:
        return Minimum(start, value, 0.0 if origin is None else origin.curvature_radius)
    radius = hope.origin.curvature_radius if hope is not None and hope.is_near else 0.0
    radius = radius if radius > 0 else longest / norm
    trace = _Trace(objective, start, value, gradient, min(radius, longest / norm), hope)
    bounds = [(0.0, 1.0)] * start.size if objective.space.is_bounded else None
    options = {"maxiter": _MAX_ITERATIONS, "maxfun": 10 * _MAX_ITERATIONS, "ftol": 0.0, "gtol": 0.0}
    # The function is scaled so that the first step, which is as long as the gradient, has the right length.
    minimize(trace.scaled, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=trace.iterate)
    return trace.end()


class _Trace:
    """The path of one descent."""

    def __init__(self, objective, start, value, gradient, radius, hope):
        self.objective, self.hope, self.radius = objective, hope, radius
        self.first = (start, value, gradient)
        self.before, self.lowest = (start, value, gradient), (start, value, gradient)
        self.values, self.num_small = collections.deque([value], _LATE + 1), 0
        self.jump = np.inf if hope is None else float(np.max(np.abs(start - hope.origin.z)))

    def scaled(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """What L-BFGS-B sees."""
        start, value, gradient = self.first
        if not np.array_equal(z, start):
            value, gradient = self.objective.value_and_gradient(z)
            if value < self.lowest[1]:
                self.before, self.lowest = self.lowest, (np.array(z), value, gradient)
        return self.radius * (value - self.first[1]), self.radius * gradient

    def iterate(self, intermediate_result: Any) -> None:
        """Stops the descent once it is done, or will not lead below where it came from."""
        z, value, _ = self.lowest
        decrease = self.values[-1] - value
        self.values.append(value)
        is_small = decrease <= _RELATIVE * abs(value) + _OF_GAIN * (self.values[0] - value)
        self.num_small = self.num_small + 1 if is_small else 0
        if self.num_small >= 2:
            raise StopIteration
        if self.hope is not None and value > self.hope.origin.value:
            is_back = np.max(np.abs(z - self.hope.origin.z)) < _BACK * self.jump
            is_hopeless = self.hope.num_iterations * decrease < value - self.hope.origin.value
            if is_back or is_hopeless:
                raise StopIteration

    def end(self) -> Minimum:
        """The lowest point, and what its surroundings looked like."""
        z, value, gradient = self.lowest
        move, change = z - self.before[0], gradient - self.before[2]
        product = float(move @ change)
        radius = float(move @ move) / product if product > 0 else self.radius
        return Minimum(z, value, radius)
