"""Energies and gradients at any positions, as the chains of a run would have computed them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from isotherm.engine.chain_mode import over_chains
from isotherm.engine.iteration import Parts, coupling_inputs, multiplied

# Numbers in all positions of one vectorized gradient, if no batches take memory too.
_NUMBERS_AT_ONCE = 1 << 18


class ProbeValues(NamedTuple):
    """Energies and gradients of K x P chains."""

    energy: Array  # Shape (K, P).
    gradient: Array  # Of the energy, at some coordinates, shape (K, P, number).
    pull: Array  # The gradient times the coupling's multiplier if energies are noisy; otherwise the gradient.
    virial: Array  # (x - center) . pull over each leaf of the position, shape (K, P, leaves).


class Points(NamedTuple):
    """Positions and batches of K x P chains."""

    position: Any  # Leaves (K, P, ...).
    model_state: Any  # Leaves (K, P, ...).
    keys: ArrayLike  # Of batches and of synthetic noise, shape (K, P, 2).
    batches: ArrayLike  # Iterations whose batches are used, shape (K,).
    wells: ArrayLike  # The well of each position, shape (K, P).


def evaluate_probes(
    parts: Parts, coupling: Any, points: Points, coordinates: Array, centers: Any, iteration: Array
) -> ProbeValues:
    """Energies and gradients at points.

    `coupling` is a state, for its multiplier, `coordinates` index a flat position, `centers` are the positions around which
    virials are taken, leaves (P, W, ...) for W wells, and `iteration` gives step size, temperature and gain.
    """
    potential = parts.potential

    def of_chains(points):
        position, model_state, keys, number, wells = points

        def of_chain(position, model_state, key):
            noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(key, key, jnp.zeros(1, jnp.int32), position))
            # A batch of its own, even if the run shared them: a few draws of many chains then see many batches.
            batch = potential.batch(key, number)

            def energy(position):
                evaluation = potential.evaluate(position, batch, noise, model_state)
                return evaluation.energy, evaluation.prior_energy

            return jax.value_and_grad(energy, has_aux=True)(position)

        (energies, priors), gradient = over_chains(
            parts.chain_mode, of_chain, position, model_state, keys, drops_axis_of_one=True
        )
        pull = gradient
        if parts.coupling.log_weights is not None and not potential.is_exact:
            _, move = parts.coupling.update(coupling, None, coupling_inputs(parts, energies, priors, iteration))
            pull = jax.vmap(lambda *one: multiplied(parts, *one))(position, gradient, move.multiplier)
        around = jax.tree.map(lambda leaf: leaf[jnp.arange(len(leaf)), wells], centers)
        virial = _virial(position, around, pull)
        return ProbeValues(energies, _chosen(gradient, coordinates), _chosen(pull, coordinates), virial)

    number = len(jax.tree.leaves(points)[0])
    size = sum(leaf.size for leaf in jax.tree.leaves(points.position)) // number
    at_once = None if potential.has_data else min(max(_NUMBERS_AT_ONCE // max(size, 1), 1), number)
    return lax.map(of_chains, points, batch_size=at_once)


def _chosen(tree: Any, coordinates: Array) -> Array:
    """Some coordinates of every chain, from leaves (P, ...)."""
    leaves = jax.tree.leaves(tree)
    return jnp.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)[:, coordinates]


def _virial(position: Any, centers: Any, pull: Any) -> Array:
    products = jax.tree.map(lambda x, center, force: (x - center) * force, position, centers, pull)
    return jnp.stack([jnp.sum(leaf.reshape(len(leaf), -1), axis=1) for leaf in jax.tree.leaves(products)], axis=1)
