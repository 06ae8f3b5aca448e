"""Potentials given by a function: an energy or a log density."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import refuse
from isotherm.foundation.parts import Static
from isotherm.foundation.short_text import function_name
from isotherm.foundation.user_functions import call_traced
from isotherm.potentials.potential import Evaluation, Potential


@dataclasses.dataclass(frozen=True, eq=False)
class EnergyPotential(Potential):
    """U(x) = energy(x), exact and without data.

    Attributes:
        energy: maps a position (an array or a pytree of arrays) to a scalar.
    """

    mistaken_for = "a log density", "iso.from_log_density(log_density)"

    energy: Static[Callable[[Any], Array]]

    def __post_init__(self):
        _check_callable("energy", self.energy)

    def short_repr(self, depth: int) -> str:
        return f"{type(self).__name__}({function_name(self.energy)})"

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        energy = _scalar("energy", self.energy, position)
        return Evaluation(energy, jnp.zeros_like(energy), model_state)


@dataclasses.dataclass(frozen=True, eq=False)
class LogDensityPotential(Potential):
    """U(x) = -log_density(x), exact and without data.

    Attributes:
        log_density: maps a position to a scalar.
    """

    mistaken_for = "an energy", "iso.from_energy(energy)"

    log_density: Static[Callable[[Any], Array]]

    def __post_init__(self):
        _check_callable("log_density", self.log_density)

    def short_repr(self, depth: int) -> str:
        return f"{type(self).__name__}({function_name(self.log_density)})"

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        energy = -_scalar("log_density", self.log_density, position)
        return Evaluation(energy, jnp.zeros_like(energy), model_state)


def _check_callable(name: str, function: Any) -> None:
    if not callable(function):
        refuse(name, "a function of a position", repr(function), "Pass a function that returns a scalar.")


def _scalar(name: str, function: Callable[[Any], Any], position: Any) -> Array:
    """The value of a user's function. Its shape is checked later."""
    is_list = isinstance(position, (list, tuple)) and not hasattr(position, "_fields")
    where = "`init` is a list, and so is the position: for a vector pass an array, such as init=jnp.array([0.0, 0.0])."
    value = call_traced(
        name, "a function that can be evaluated at the start", function, position, where=where * is_list
    )
    if not hasattr(value, "dtype") and not isinstance(value, float):
        refuse(name, "a function that returns one real scalar", type(value).__name__, "Return `jnp.sum(...)`, say.")
    return jnp.asarray(value)


@checked_call()
def from_energy(energy: Callable[[Any], Array]) -> Potential:
    """A potential from an energy function: density exp(-energy(x) / temperature).

    Example:
        >>> potential = from_energy(lambda x: 0.5 * (x ** 2).sum())
        >>> float(potential.full_energy(jnp.array([3.0, 4.0])))
        12.5
    """
    return EnergyPotential(energy)


@checked_call()
def from_log_density(log_density: Callable[[Any], Array]) -> Potential:
    """A potential from a log density, normalized or not: energy(x) = -log_density(x).

    Example:
        >>> potential = from_log_density(lambda x: -0.5 * (x ** 2).sum())
        >>> float(potential.full_energy(jnp.array([3.0, 4.0])))
        12.5
    """
    return LogDensityPotential(log_density)
