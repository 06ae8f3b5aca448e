"""Energies and gradients at any positions, as the chains of a run would have met them there."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from isotherm.engine.chain_mode import over_chains
from isotherm.engine.iteration import Parts, coupling_inputs, multiplied

# Numbers of all positions whose gradients are taken at once, where there are no batches to keep in memory as well.
_NUMBERS_AT_ONCE = 1 << 18


class ProbeValues(NamedTuple):
    """What K x P chains feel.

    Attributes:
        energy: shape (K, P).
        gradient: of the energy, at some coordinates, shape (K, P, number).
        pull: the same with the multiplier of the coupling, where energies have noise; else the gradient.
        virial: (x - center) . pull over each leaf of the position, shape (K, P, leaves).
    """

    energy: Array
    gradient: Array
    pull: Array
    virial: Array


class Points(NamedTuple):
    """Where K x P chains are, and on which batches.

    Attributes:
        position: leaves (K, P, ...).
        model_state: likewise.
        keys: of batches and of synthetic noise, shape (K, P, 2).
        batches: the iterations whose batches are meant, shape (K,).
        wells: in which well they are, shape (K, P).
    """

    position: Any
    model_state: Any
    keys: ArrayLike
    batches: ArrayLike
    wells: ArrayLike


def evaluate_probes(
    parts: Parts, coupling: Any, points: Points, coordinates: Array, centers: Any, iteration: Array
) -> ProbeValues:
    """Energies and gradients at points.

    Args:
        parts: what iterates.
        coupling: the state of the coupling, whose multiplier acts.
        points: positions and batches.
        coordinates: the places of those that are wanted, in a flat position.
        centers: a position for every chain and well, from which virials are taken, leaves (P, W, ...).
        iteration: whose step size, temperature and gain hold.
    """
    potential = parts.potential
    zero = jnp.zeros((), jnp.int32)

    def of_chain(position, state, batch, key):
        noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(key, key, zero[None], position))

        def energy(position):
            found = potential.evaluate(position, batch, noise, state)
            return found.energy, found.prior_energy

        return jax.value_and_grad(energy, has_aux=True)(position)

    def of_chains(given):
        position, state, own, number, wells = given
        # Each chain has batches of its own, also where those of the run shared them: a few draws of many chains then see many.
        of_one = lambda position, state, key: of_chain(position, state, potential.batch(key, number), key)  # noqa: E731
        (energies, priors), gradient = over_chains(
            parts.chain_mode, of_one, position, state, own, drops_axis_of_one=True
        )
        around = jax.tree.map(lambda leaf: leaf[jnp.arange(len(leaf)), wells], centers)
        if parts.coupling.log_weights is None or potential.is_exact:
            chosen = _chosen(gradient, coordinates)
            return ProbeValues(energies, chosen, chosen, _virial(position, around, gradient))
        _, move = parts.coupling.update(coupling, None, coupling_inputs(parts, energies, priors, iteration))
        pull = jax.vmap(lambda *one: multiplied(parts, *one))(position, gradient, move.multiplier)
        virial = _virial(position, around, pull)
        return ProbeValues(energies, _chosen(gradient, coordinates), _chosen(pull, coordinates), virial)

    number = len(jax.tree.leaves(points)[0])
    size = sum(leaf.size for leaf in jax.tree.leaves(points.position)) // number
    at_once = None if potential.has_data else min(max(_NUMBERS_AT_ONCE // max(size, 1), 1), number)
    return lax.map(of_chains, points, batch_size=at_once)


def _chosen(tree: Any, coordinates: Array) -> Array:
    """Some numbers of every chain, from leaves (P, ...)."""
    leaves = jax.tree.leaves(tree)
    return jnp.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)[:, coordinates]


def _virial(position: Any, centers: Any, pull: Any) -> Array:
    """Of every chain and leaf, from leaves (P, ...)."""
    products = jax.tree.map(lambda x, center, force: (x - center) * force, position, centers, pull)
    return jnp.stack([jnp.sum(leaf.reshape(len(leaf), -1), axis=1) for leaf in jax.tree.leaves(products)], axis=1)
