"""Landscapes with many wells in the plane, with their walls and boxes."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.potentials.energy import EnergyPotential
from isotherm.targets.target import Target


def modes25_energy(position: Any) -> Array:
    """0.2 |x|^2 - 2 (cos 2 pi x_1 + cos 2 pi x_2), plus |x|^2 - 20 where that is positive."""
    square = jnp.sum(position**2)
    wells = 0.2 * square - 2.0 * jnp.sum(jnp.cos(2 * jnp.pi * position))
    return wells + jnp.maximum(square - 20.0, 0.0)


def modes9_energy(position: Any) -> Array:
    """(|x|^2 / 10 - cos 1.2 pi x_1 - cos 1.2 pi x_2) / 0.3, plus |x|^2 - 7 where that is positive."""
    square = jnp.sum(position**2)
    wells = (square / 10.0 - jnp.sum(jnp.cos(1.2 * jnp.pi * position))) / 0.3
    return wells + jnp.maximum(square - 7.0, 0.0)


def shallow_energy(position: Any) -> Array:
    """0.05 |x|^2 - 0.01 |x|^2 (cos 2 x_1 + ... + cos 2 x_d): shallow wells, more and deeper ones at high energies."""
    square = jnp.sum(position**2)
    return 0.05 * square - 0.01 * square * jnp.sum(jnp.cos(2 * position))


def rugged_energy(position: Any) -> Array:
    """A surface of many wells on [-1.1, 1.1]^2, shifted by 8.125 so that its lowest value there is about 0."""
    x, y = position
    first = (x * jnp.sin(20 * y) + y * jnp.sin(20 * x)) ** 2 * jnp.cosh(jnp.sin(10 * x) * x)
    second = (x * jnp.cos(10 * y) - y * jnp.sin(10 * x)) ** 2 * jnp.cosh(jnp.cos(20 * y) * y)
    return 8.125 - first - second


@functools.cache
def modes25() -> Target:
    """25 modes in the box [-2.5, 2.5]^2, one in every unit cell. Chains start uniformly in [-1, 1]^2."""
    centers = np.array(list(itertools.product(range(-2, 3), repeat=2)), float)
    return _plane("modes25", modes25_energy, centers)


@functools.cache
def modes9() -> Target:
    """9 modes in the box [-2.5, 2.5]^2. Chains start uniformly in [-1, 1]^2."""
    period = 2 / 1.2
    centers = period * np.array(list(itertools.product(range(-1, 2), repeat=2)), float)
    return _plane("modes9", modes9_energy, centers)


def _plane(name: str, energy: Any, centers: np.ndarray) -> Target:
    box = (-2.5, 2.5)
    init = lambda key: jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0)  # noqa: E731
    return Target(name, EnergyPotential(energy), energy, init, 2, box, box, centers)
