"""Excursions of AWSGLD: a chain that explores with flattened energies while descents refine where it came to."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.contour import uniform_partition
from isotherm.foundation.randomness import seed_key
from isotherm.minimization.descent import Minimum
from isotherm.minimization.objective import Objective
from isotherm.samplers import awsgld

# In units of the box, by coordinate: the displacement by a typical gradient, the noise, and the longest displacement.
_DRIFT, _NOISE, _REACH = 0.01, 0.02, 0.1
_NUM_BINS = 64
# Iterations of an excursion.
NUM_STEPS = 24


class Exploration:
    """A chain of AWSGLD that keeps its position, its weights of bins and its place in the random numbers between excursions."""

    def __init__(self, objective: Objective, seed: int):
        self.objective, self.key = objective, seed_key(seed)
        self.state: Any = None

    def explore(self, current: Minimum) -> np.ndarray:
        """Where the chain came to in another excursion. It begins at the minimum of its searcher."""
        objective = self.objective
        if self.state is None:
            self._begin(current)
        objective.spend(NUM_STEPS * objective.cost)
        with objective.precision():
            self.state, positions, energies = objective.compiled(_advance)(self.sampler, self.key, self.state)
            positions, energies = np.asarray(positions, float), np.asarray(energies, float)
        lowest = int(np.argmin(energies))
        objective.take(positions[lowest], float(energies[lowest]))
        return objective.space.inside(np.asarray(self.state.position[0], float))

    def _begin(self, current: Minimum) -> None:
        """Steps, noise and bins from what the function shows around the start of the chain."""
        objective, dimension = self.objective, current.z.size
        objective.spend(objective.cost)
        nearby = objective.space.inside(current.z + _DRIFT * np.ones(dimension))
        value, gradient = objective.look(nearby)
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
