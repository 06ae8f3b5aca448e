"""A potential over constrained parameters, sampled in free ones."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jax import Array

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_real, refuse
from isotherm.foundation.parts import Static
from isotherm.foundation.short_text import short_text
from isotherm.potentials.energy import from_log_density
from isotherm.potentials.potential import Evaluation, Potential, WrappedPotential
from isotherm.transforms.space import Space


@dataclasses.dataclass(frozen=True, eq=False)
class ConstrainedPotential(WrappedPotential):
    r"""The potential of the free position z behind a constrained one, x = T(z).

        U_z(z) = U(T(z)) - tau * log |dT/dz|

    so that exp(-U_z / tau) dz is exp(-U / tau) dx. The Jacobian counts to the prior. It carries the temperature, which must be
    that of the sampler: a run at another one is refused.

    Starts and draws of `iso.sample`, and `best_position`, are constrained values. The energies of a run are those of U_z. Loops
    by hand see z: use `space.unconstrained(x)` for `Sampler.init`, and `space(state.position)` for values.

    Attributes:
        inner: U, a function of x.
        map: T; `space` is the same.
        temperature: tau, that of the draws. 0 leaves the Jacobian out, for a minimum of U over x.
    """

    map: Static[Space]
    temperature: float = 1.0

    def __post_init__(self):
        check_real("temperature", self.temperature, "Give that of the sampler.", minimum=0.0)

    def short_repr(self, depth: int) -> str:
        transforms = self.map.transforms
        named = transforms.items() if isinstance(transforms, dict) else [("all", transforms)]
        inside = [short_text(self.inner, depth + 1), *(f"{name}={short_text(each, depth + 1)}" for name, each in named)]
        return f"{type(self).__name__}({', '.join(inside)})"

    @property
    def space(self) -> Space:
        return self.map

    def check_temperature(self, temperature: float | None) -> None:
        if temperature is None or not np.isclose(temperature, self.temperature, rtol=1e-6, atol=0.0):
            got = "a schedule that changes between them" if temperature is None else temperature
            remedy = "Pass the sampler's temperature to `constrain` too: the Jacobian depends on it."
            refuse("temperature", f"that of the constrained potential, {self.temperature}, for all draws", got, remedy)

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        return self.inner.draw(key_shared, key_own, iterations, self.space(position))

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        found = self.inner.evaluate(self.space(position), batch, noise, model_state)
        volume = self._volume(position).astype(found.energy.dtype)
        return found._replace(energy=found.energy - volume, prior_energy=found.prior_energy - volume)

    def piece_energy(self, position: Any, model_state: Any, batch: Any, piece: Array) -> Array:
        return self.inner.piece_energy(self.space(position), model_state, batch, piece)

    def prior_energy(self, position: Any) -> Array:
        prior = self.inner.prior_energy(self.space(position))
        return prior - self._volume(position).astype(prior.dtype)

    def full_energy(self, position: Any, model_state: Any = None) -> Array:
        energy = self.inner.full_energy(self.space(position), model_state)
        return energy - self._volume(position).astype(energy.dtype)

    def _volume(self, position: Any) -> Array:
        return self.temperature * self.space.log_jacobian(position)


@checked_call(prefix="iso.transforms.")
def constrain(
    log_density: Callable[[Any], Any] | Potential, transforms: Any, *, temperature: float = 1.0
) -> ConstrainedPotential:
    """A potential over constrained parameters; see `ConstrainedPotential`.

    Args:
        log_density: a function of a constrained position, normalized or not; or a potential, such as one of
            `iso.from_likelihood`, of an energy (`iso.from_energy`) or of a network.
        transforms: a transform for the whole position, or a dict of them by the names of a position that is a dict; dicts may be
            nested, and leaves that are not named stay free.
        temperature: that of the sampler; a number. 0 for optimizers.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> log_density = lambda x: -3.0 * x["sigma"] + jnp.log(x["sigma"]) - 0.5 * x["mean"] ** 2
        >>> problem = iso.transforms.constrain(log_density, {"sigma": iso.transforms.positive()})
        >>> start = {"sigma": jnp.array(1.0), "mean": jnp.array(0.0)}
        >>> run = iso.sample(problem, iso.sgld(0.05), num_steps=200, num_chains=4, init=start)
        >>> bool(run.draws["sigma"].min() > 0)
        True
    """
    inner = log_density if isinstance(log_density, Potential) else from_log_density(log_density)
    return ConstrainedPotential(inner, Space(transforms), temperature)
