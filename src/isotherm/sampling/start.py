"""Where chains start: one position for all, one per chain, or a function of a key."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import refuse
from isotherm.foundation.randomness import Purpose, chain_keys, run_keys
from isotherm.kernels.kernel import Kernel


@dataclasses.dataclass(frozen=True, eq=False)
class PerChain:
    """Starts of the chains, along the leading axis of every leaf; every run starts from the same ones."""

    positions: Any


def per_chain(positions: Any) -> PerChain:
    """Marks `init` as one position per chain, rather than one position that happens to have that shape.

    Example:
        >>> init = per_chain(jnp.array([[0.0, 0.0], [1.0, 1.0]]))  # two chains in the plane
    """
    return PerChain(positions)


def start_positions(init: Any, seed_key: Array, num_runs: int, num_chains: int, kernel: Kernel) -> Any:
    """Positions with leading axes (num_runs, num_chains), checked."""
    if init is None:
        rule = "a position, `iso.per_chain(positions)`, or a function of a key"
        refuse("init", rule, "None", "For an energy of two coordinates, pass init=jnp.zeros(2).")
    if isinstance(init, PerChain):
        position = _as_arrays(init.positions)
        lengths = {leaf.shape[:1] for leaf in jax.tree.leaves(position)}
        if lengths != {(num_chains,)}:
            rule = f"one position per chain, leading axis {num_chains}"
            refuse("init", rule, f"leading axes {sorted(lengths)}", "Change it or `num_chains`.")
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_runs, *leaf.shape)), position)
    if callable(init):
        keys = chain_keys(run_keys(seed_key, Purpose.INIT, num_runs), num_chains)
        return _as_arrays(jax.vmap(jax.vmap(lambda key: _from_key(init, key, kernel)))(keys))
    position = _as_arrays(init)
    if kernel.is_stack:
        lengths = {leaf.shape[:1] for leaf in jax.tree.leaves(position)}
        size = (kernel.num_particles,)
        if lengths != {size}:
            rule = f"a stack of particles, leading axis {size[0]}, or a function of a key"
            refuse("init", rule, f"leading axes {sorted(lengths)}", "Particles that start together stay together.")
    shape = (num_runs, num_chains)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*shape, *leaf.shape)), position)


def _from_key(init: Any, words: Array, kernel: Kernel) -> Any:
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    if kernel.num_particles is None:
        return init(key)
    return jax.vmap(init)(jax.random.split(key, kernel.num_particles))


def _as_arrays(position: Any) -> Any:
    leaves = jax.tree.leaves(position)
    kinds = {str(jnp.result_type(leaf)) for leaf in leaves}
    if not leaves or not all(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in leaves):
        remedy = "Positions move by real amounts: use 0.0 instead of 0, or .astype(float)."
        refuse("init", "a position of floating-point numbers", f"types {sorted(kinds)}", remedy)
    if not all(np.all(np.isfinite(np.asarray(leaf))) for leaf in leaves):
        refuse("init", "finite", "NaN or an infinity", "Start where the energy is defined.")
    return jax.tree.map(jnp.asarray, position)
