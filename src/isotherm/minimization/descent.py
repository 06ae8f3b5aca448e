"""Local descents: SciPy's L-BFGS-B, stopped early on the way to a worse minimum."""

import collections
import dataclasses
from typing import Any

import numpy as np

from isotherm.minimization.objective import Objective

# A descent ends after two iterations that each lower the value by less than this share of it, plus this share of the
# decrease in the last ten iterations.
_RELATIVE, _OF_GAIN, _LATE = 1e-9, 1e-14, 10
# Distance to the origin of a jump, in units of the jump, at which a descent has returned to it.
_BACK = 0.1
_MAX_ITERATIONS = 500


@dataclasses.dataclass(frozen=True, eq=False)
class Minimum:
    """End of a descent.

    Attributes:
        z: the point, in units of the box.
        value: the value there.
        curvature_radius: length of a step per length of a gradient, from the last two iterations.
    """

    z: np.ndarray
    value: float
    curvature_radius: float


@dataclasses.dataclass(frozen=True)
class Limit:
    """When to stop a descent after a jump.

    Attributes:
        origin: minimum before the jump, which the descent has to improve on.
        num_iterations: iterations like the last that it may still need for that.
        is_near: whether the curvature of `origin` sets the first step.
    """

    origin: Minimum
    num_iterations: float
    is_near: bool


def descend(
    objective: Objective, start: np.ndarray, longest: float, limit: Limit | None = None, known: Any = None
) -> Minimum:
    """The minimum below `start`, or the lowest point of a descent that was stopped.

    Args:
        objective: function to minimize.
        start: first point.
        longest: maximum length of the first step.
        limit: when to stop early; None never does.
        known: value and gradient at `start`, if already computed.
    """
    from scipy.optimize import minimize

    value, gradient = objective.value_and_gradient(start) if known is None else known
    norm = float(np.linalg.norm(gradient))
    if norm == 0.0:
        return Minimum(start, value, 0.0 if limit is None else limit.origin.curvature_radius)
    radius = limit.origin.curvature_radius if limit is not None and limit.is_near else 0.0
    radius = min(radius, longest / norm) if radius > 0 else longest / norm
    path = _Path(objective, start, value, gradient, radius, limit)
    bounds = [(0.0, 1.0)] * start.size if objective.space.is_bounded else None
    options = {"maxiter": _MAX_ITERATIONS, "maxfun": 10 * _MAX_ITERATIONS, "ftol": 0.0, "gtol": 0.0}
    # The first step of L-BFGS-B is as long as the gradient: scaled values give it the right length.
    minimize(path.scaled, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=path.iterate)
    return path.end()


class _Path:
    """Points of one descent."""

    def __init__(self, objective, start, value, gradient, radius, limit):
        self.objective, self.limit, self.radius = objective, limit, radius
        self.first = self.before = self.lowest = (start, value, gradient)
        self.values, self.num_small = collections.deque([value], _LATE + 1), 0
        self.jump = np.inf if limit is None else float(np.max(np.abs(start - limit.origin.z)))

    def scaled(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Scaled value and gradient, for L-BFGS-B."""
        start, value, gradient = self.first
        if not np.array_equal(z, start):
            value, gradient = self.objective.value_and_gradient(z)
            if value < self.lowest[1]:
                self.before, self.lowest = self.lowest, (np.array(z), value, gradient)
        return self.radius * (value - self.first[1]), self.radius * gradient

    def iterate(self, intermediate_result: Any) -> None:
        """Stop the descent at convergence, or if it will not improve on the origin."""
        z, value, _ = self.lowest
        decrease = self.values[-1] - value
        self.values.append(value)
        is_small = decrease <= _RELATIVE * abs(value) + _OF_GAIN * (self.values[0] - value)
        self.num_small = self.num_small + 1 if is_small else 0
        if self.num_small >= 2:
            raise StopIteration
        if self.limit is not None and value > self.limit.origin.value:
            is_back = np.max(np.abs(z - self.limit.origin.z)) < _BACK * self.jump
            is_hopeless = self.limit.num_iterations * decrease < value - self.limit.origin.value
            if is_back or is_hopeless:
                raise StopIteration

    def end(self) -> Minimum:
        """The lowest point, with the curvature there."""
        z, value, gradient = self.lowest
        move, change = z - self.before[0], gradient - self.before[2]
        product = float(move @ change)
        radius = float(move @ move) / product if product > 0 else self.radius
        return Minimum(z, value, radius)
