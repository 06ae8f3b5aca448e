"""A potential whose answers are known."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from isotherm.foundation.nearest import nearest_centers
from isotherm.potentials.potential import Potential
from isotherm.targets.quadrature import Grid, integrate


@dataclasses.dataclass(frozen=True, eq=False)
class Target:
    """A potential with its start, its box, its modes, and truth by quadrature.

    Attributes:
        name: what tables call it.
        potential: what to sample.
        energy: the exact energy of a position.
        init: a function of a key that gives a start.
        dimension: of a position.
        box: (low, high) of the cube to which the density is restricted; None for all of space.
        span: (low, high) of the cube that quadrature covers.
        modes: centers of the modes, shape (num_modes, dimension).
    """

    name: str
    potential: Potential
    energy: Callable[[Any], Any]
    init: Callable[[Any], Any]
    dimension: int
    box: tuple[float, float] | None
    span: tuple[float, float]
    modes: np.ndarray

    @functools.cached_property
    def truth(self) -> Grid:
        """Quadrature at temperature 1."""
        return integrate(self.energy, *self.span, self.dimension)

    @functools.cached_property
    def mode_masses(self) -> np.ndarray:
        """True probabilities of the modes: of the points nearest to each center."""
        return self.truth.mode_masses(self.modes)

    @functools.cached_property
    def half_distances(self) -> np.ndarray:
        """The distance from every center within which half of its mode's mass lies."""
        points, mass = self.truth
        nearest, distance = nearest_centers(points, self.modes)
        found = []
        for number in range(len(self.modes)):
            own = np.flatnonzero(nearest == number)
            own = own[np.argsort(distance[own])]
            running = np.cumsum(mass[own])
            found.append(distance[own][np.searchsorted(running, 0.5 * running[-1])])
        return np.array(found)

    def total_variation(self, masses: np.ndarray) -> float:
        """Half the absolute difference between estimated and true masses of the modes: 0 is right, 1 is disjoint."""
        return float(0.5 * np.abs(np.asarray(masses) - self.mode_masses).sum())
