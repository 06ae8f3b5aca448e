"""A stack of particles as one position, for kernels that move particles together."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.foundation.randomness import fold
from isotherm.potentials.potential import Evaluation, WrappedPotential


@dataclasses.dataclass(frozen=True, eq=False)
class StackedPotential(WrappedPotential):
    """U(x_1, ..., x_M) = sum of U(x_i): independent copies, so that the gradient of particle i is that of U at x_i.

    The particles share the batch of their chain; synthetic noise is their own. The chain's model state stays as it was.

    Attributes:
        inner: the potential of one particle.
        num_particles: M.
    """

    num_particles: int

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        one = jax.tree.map(lambda leaf: leaf[0], position)
        own = jax.vmap(lambda particle: fold(key_own, particle))(jnp.arange(self.num_particles))
        return jax.vmap(lambda key: self.inner.draw(key_shared, key, iterations, one), out_axes=1)(own)

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        found = jax.vmap(self.inner.evaluate, (0, None, 0, None))(position, batch, noise, model_state)
        return Evaluation(jnp.sum(found.energy), jnp.sum(found.prior_energy), found.energy, model_state)

    def prior_energy(self, position: Any) -> Array:
        return jnp.sum(jax.vmap(self.inner.prior_energy)(position))

    def full_energy(self, position: Any, model_state: Any = None, feed: Any = None) -> Array:
        return jnp.sum(jax.vmap(lambda x: self.inner.full_energy(x, model_state, feed))(position))
