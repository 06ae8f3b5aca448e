"""Initial positions: one for all chains, one per chain, or a function of a key."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import refuse, short
from isotherm.foundation.randomness import Purpose, chain_keys, run_keys, seed_words
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.foundation.user_functions import call_traced
from isotherm.potentials.potential import Potential


@dataclasses.dataclass(frozen=True, eq=False)
class PerChain:
    """Initial positions of the chains along the leading axis of every leaf, the same in every run."""

    positions: Any

    @property
    def number(self) -> int:
        """The number of chains."""
        lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(self.positions)}
        if len(lengths) != 1 or () in lengths:
            rule = "one position per chain, along one leading axis of every leaf"
            refuse("init", rule, f"leading axes {sorted(lengths)}", "Give as many rows in every leaf.")
        return lengths.pop()[0]


@checked_call()
def per_chain(positions: Any) -> PerChain:
    """Marks `init` as one position per chain, rather than one position that happens to have that shape.

    Example:
        >>> init = per_chain(jnp.array([[0.0, 0.0], [1.0, 1.0]]))  # two chains in the plane
    """
    return PerChain(positions)


def choose_init(init: Any, potential: Potential) -> Any:
    """`init` or the default of the potential, in the space that the sampler moves in."""
    init, space = potential.init if init is None else init, potential.space
    if init is None:
        rule = "a position, `iso.per_chain(positions)`, or a function of a key"
        refuse("init", rule, "None", "For an energy of two coordinates, pass init=jnp.zeros(2).")
    if space is None:
        return init
    if isinstance(init, PerChain):
        return PerChain(space.unconstrained(init.positions))
    return (lambda key: space.unconstrained(init(key))) if callable(init) else space.unconstrained(init)


@transfers_on_purpose
def start_positions(init: Any, words: np.ndarray, runs: np.ndarray, num_chains: int) -> Any:
    """Checked positions on the host with leading axes (R, P) for the numbered runs. `words` are those of the seed's key."""
    if callable(init):
        keys = chain_keys(run_keys(words, Purpose.INIT, runs), num_chains)
        draw = jax.vmap(jax.vmap(lambda words: init(jax.random.wrap_key_data(words, impl="threefry2x32"))))
        return _as_arrays(call_traced("init", "a position, or a function of a key that returns one", draw, keys))
    is_per_chain = isinstance(init, PerChain)
    position = _as_arrays(init.positions if is_per_chain else init)
    leaves = jax.tree.leaves(position)
    if is_per_chain and init.number != num_chains:
        rule = f"one position per chain, leading axis {num_chains}"
        refuse("init", rule, f"leading axis {init.number}", "Change it or `num_chains`.")
    if not is_per_chain and num_chains > 1 and all(leaf.ndim > 1 and len(leaf) == num_chains for leaf in leaves):
        remedy = "If these are the starts of the chains, pass `iso.per_chain(init)`; if it is one position, `lambda key: init`."
        refuse("init", "clear about its leading axis", f"{num_chains} rows for {num_chains} chains", remedy)
    lead = (len(runs),) if is_per_chain else (len(runs), num_chains)
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (*lead, *leaf.shape)), position)


def first_position(init: Any, seed: Any) -> Any:
    """The initial position of the first chain of the first run."""
    number = init.number if isinstance(init, PerChain) else 1
    return jax.tree.map(lambda leaf: leaf[0, 0], start_positions(init, seed_words(seed), np.zeros(1, np.int32), number))


def _as_arrays(position: Any) -> Any:
    leaves = jax.tree.leaves(position)
    rule = "a position of floating-point numbers"
    for leaf in leaves:
        if hasattr(leaf, "iloc") and np.ndim(leaf) > 1:
            remedy = "Pass frame.to_numpy(), or `iso.per_chain(frame.to_numpy())` if rows are starts of chains."
            refuse("init", "a position of arrays", f"a {type(leaf).__name__}", remedy)
        if np.asarray(leaf).dtype.kind in "OUS":
            refuse("init", rule, short(leaf), "Pass `jnp.zeros(2)`, say.")
    dtypes = [jnp.result_type(leaf) for leaf in leaves]
    if not leaves or not all(jnp.issubdtype(dtype, jnp.floating) for dtype in dtypes):
        remedy = "Positions move by real amounts: use 0.0 instead of 0, or .astype(float)."
        refuse("init", rule, f"types {sorted(set(map(str, dtypes)))}", remedy)
    if not all(np.all(np.isfinite(np.asarray(leaf))) for leaf in leaves):
        refuse("init", "finite", "NaN or an infinity", "Start where the energy is defined.")
    return jax.tree.map(on_host, position)


def on_host(leaf: Any) -> np.ndarray:
    """A leaf as a NumPy array, whose indexing does not compile, in the dtype that JAX would give it."""
    value = np.asarray(leaf)
    return value.astype(jnp.result_type(value), copy=False)
