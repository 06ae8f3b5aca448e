"""Synthetic noise on energies and gradients, to study how samplers respond to it."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_real, check_type
from isotherm.foundation.parts import Static
from isotherm.foundation.randomness import fold, normals, normals_like, student_t
from isotherm.potentials.potential import Evaluation, Potential, WrappedPotential


class Noise(NamedTuple):
    """Standardized noise of one evaluation: of the energy, the gradient, and the inner potential."""

    energy: Array
    gradient: Any
    inner: Any


@dataclasses.dataclass(frozen=True, eq=False)
class NoisyPotential(WrappedPotential):
    r"""Adds s_U * e to the energy and s_g * n to the gradient of another potential.

    n is standard normal; e is standard normal, or Student t with `degrees` degrees of freedom. They are independent, and new in
    every evaluation.

    Attributes:
        inner: the potential without noise.
        energy_scale: s_U.
        gradient_scale: s_g; None draws no noise for the gradient.
        degrees: degrees of freedom of the energy noise; None is Gaussian.
        is_shared: whether the chains of a run share their noise.
    """

    energy_scale: float = 0.0
    gradient_scale: float | None = None
    degrees: float | None = None
    is_shared: Static[bool] = False

    is_exact = False
    has_residuals = False

    @property
    def has_gradient_of_energy(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.gradient_scale is None and self.inner.has_gradient_of_energy

    def __post_init__(self):
        check_real("energy_scale", self.energy_scale, "Give a standard deviation.", minimum=0.0)
        if self.gradient_scale is not None:
            check_real("gradient_scale", self.gradient_scale, "Give a standard deviation.", minimum=0.0)
        if self.degrees is not None:
            check_real("degrees", self.degrees, "Give degrees of freedom, or None for Gaussian noise.", above=0.0)

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Noise:
        key = key_shared if self.is_shared else key_own
        dtype = jnp.result_type(*jax.tree.leaves(position))
        key_energy, key_gradient = fold(key, 0), fold(key, 1)
        if self.degrees is None:
            energy = normals(key_energy, iterations, (), dtype)
        else:
            energy = student_t(key_energy, iterations, self.degrees, (), dtype)
        inner = self.inner.draw(fold(key_shared, 2), fold(key_own, 2), iterations, position)
        gradient = normals_like(key_gradient, iterations, position) if self.gradient_scale is not None else ()
        return Noise(energy, gradient, inner)

    def evaluate(self, position: Any, batch: Any, noise: Noise, model_state: Any) -> Evaluation:
        found = self.inner.evaluate(position, batch, noise.inner, model_state)
        added = self.energy_scale * noise.energy
        if self.gradient_scale is not None:
            # A term of value zero whose gradient is the noise, so that one pass gives both.
            tilted = jax.tree.map(lambda n, x: jnp.sum(n * (x - lax.stop_gradient(x))), noise.gradient, position)
            added = added + self.gradient_scale * sum(jax.tree.leaves(tilted))
        return found._replace(energy=found.energy + added.astype(found.energy.dtype), residuals=None)

    def full_energy(self, position: Any, model_state: Any = None) -> Array:
        return self.inner.full_energy(position, model_state)


@checked_call()
def with_noise(
    potential: Potential,
    *,
    energy_scale: float = 0.0,
    gradient_scale: float = 0.0,
    degrees: float | None = None,
    is_shared: bool = False,
) -> NoisyPotential:
    """`potential` with synthetic noise; see `NoisyPotential`."""
    check_type("potential", potential, Potential, "a potential", "Write `iso.from_energy(energy)` first.")
    return NoisyPotential(potential, energy_scale, gradient_scale or None, degrees, is_shared)
