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
# Maximum first step: from a start per root of coordinates, in units of the box, and after a jump in units of the jump.
_FROM_START, _AFTER_JUMP = 1.0, 0.5
# Iterations like the last in which a descent must be able to improve on its origin: after a jump, and after a far one.
_NUM_HOPED, _NUM_HOPED_FAR = 4.0, 200.0
_MAX_ITERATIONS = 500


@dataclasses.dataclass(frozen=True, eq=False)
class Minimum:
    """End of a descent, with the length of its last step per change of the gradient."""

    z: np.ndarray
    value: float
    curvature_radius: float


def descend(
    objective: Objective, start: np.ndarray, origin: Minimum | None = None, is_far: bool = False, known: Any = None
) -> Minimum:
    """The minimum below `start`, or the lowest point of a descent that was stopped.

    Args:
        objective: function to minimize.
        start: first point.
        origin: minimum before the jump to `start`. The descent stops once it cannot end lower; without `origin` it never does.
        is_far: whether nothing is known about the end of the descent. If not, the curvature of `origin` sets the first step.
        known: value and gradient at `start`, if already computed.
    """
    from scipy.optimize import minimize

    value, gradient = objective.value_and_gradient(start) if known is None else known
    norm = float(np.linalg.norm(gradient))
    if norm == 0.0:
        return Minimum(start, value, 0.0 if origin is None else origin.curvature_radius)
    if origin is None or is_far:
        radius = _FROM_START * np.sqrt(start.size) / norm
    else:
        radius = _AFTER_JUMP * float(np.linalg.norm(start - origin.z)) / norm
        radius = min(origin.curvature_radius, radius) if origin.curvature_radius > 0 else radius
    path = _Path(objective, (start, value, gradient), radius, origin, _NUM_HOPED_FAR if is_far else _NUM_HOPED)
    bounds = [(0.0, 1.0)] * start.size if objective.space.is_bounded else None
    options = {"maxiter": _MAX_ITERATIONS, "maxfun": 10 * _MAX_ITERATIONS, "ftol": 0.0, "gtol": 0.0}
    # The first step of L-BFGS-B is as long as the gradient: scaled values give it the right length.
    minimize(path.scaled, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=path.iterate)
    return path.end()


class _Path:
    """Points of one descent."""

    def __init__(self, objective, first, radius, origin, num_hoped):
        self.objective, self.radius, self.origin, self.num_hoped = objective, radius, origin, num_hoped
        self.first = self.before = self.lowest = first
        self.values, self.num_small = collections.deque([first[1]], _LATE + 1), 0

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
        if self.origin is not None and value > self.origin.value:
            jump, distance = (np.max(np.abs(point - self.origin.z)) for point in (self.first[0], z))
            is_back = distance < _BACK * jump
            is_hopeless = self.num_hoped * decrease < value - self.origin.value
            if is_back or is_hopeless:
                raise StopIteration

    def end(self) -> Minimum:
        """The lowest point, with the curvature there."""
        z, value, gradient = self.lowest
        move, change = z - self.before[0], gradient - self.before[2]
        product = float(move @ change)
        radius = float(move @ move) / product if product > 0 else self.radius
        return Minimum(z, value, radius)
