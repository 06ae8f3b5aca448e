"""A sampler and a potential as a sampling algorithm of BlackJAX."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer

from isotherm.foundation.errors import refuse
from isotherm.foundation.optional import require
from isotherm.pilots.resolve import resolve
from isotherm.samplers.loop import Info, LoopState, begin, start
from isotherm.samplers.sampler import AnySampler, Specification, as_potential, check_sampler


class AlgorithmState(NamedTuple):
    """The state of the algorithm.

    Attributes:
        position: of the chain, or of the chains along a leading axis.
        loop: the state of the sampler.
    """

    position: Any
    loop: LoopState


def to_blackjax(
    sampler: AnySampler, potential: Any, num_chains: int | None = None, *, pilot_init: Any = None, seed: Any = 0
) -> Any:
    """A `SamplingAlgorithm` of BlackJAX: `init(position, rng_key=None)` and `step(rng_key, state)`, which returns (state, info).

    BlackJAX passes a new key to every step, so shuffled epochs become independent batches. `info` holds the energy and the log
    weight of the position before the move. Positions of constrained parameters are in the constrained space. Both functions work
    under `jax.jit`, `jax.vmap` and `jax.lax.scan`.

    Args:
        sampler: any sampler.
        potential: what to sample; a plain function is taken as an energy. Its data must not stream.
        num_chains: chains of one state, all from the same start. None is one chain without an axis, for `jax.vmap`, or the number
            that the coupling needs.
        pilot_init: starts of the pilots of a sampler with settings that are "auto"; as `init` in `sample`.
        seed: of these pilots.

    Example:
        >>> import isotherm as iso, jax
        >>> algorithm = iso.to_blackjax(iso.sgld(0.1), lambda x: x @ x / 2)  # doctest: +SKIP
        >>> state = algorithm.init(jnp.ones(2))  # doctest: +SKIP
        >>> state, info = algorithm.step(jax.random.key(0), state)  # doctest: +SKIP
    """
    base = require("blackjax.base", None)
    potential, sampler = as_potential(potential), check_sampler(sampler)
    if potential.is_streamed:
        remedy = "Give the data on the device, or use `iso.sample`."
        refuse("potential", "one without streamed data", "a stream", remedy)
    if isinstance(sampler, Specification):
        sampler = resolve(potential, sampler, init=pilot_init, num_chains=num_chains, seed=seed).sampler
    settled, stored, space = sampler, potential.on_device(), potential.space
    number = settled.choose_num_chains(num_chains)
    is_single = num_chains is None and settled.coupling.traits.num_chains is None

    def shown(loop: LoopState) -> AlgorithmState:
        position = jax.tree.map(lambda leaf: leaf[0], loop.position) if is_single else loop.position
        # Without the data, which `jax.vmap` would copy for every chain.
        return AlgorithmState(position if space is None else space(position), loop.replace_unchecked(potential=None))

    def init(position: Any, rng_key: Any = None) -> AlgorithmState:  # noqa: ARG001
        free = position if space is None else space.unconstrained(position)
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(free)):
            starts = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (number, *jnp.shape(leaf))), free)
            return shown(begin(settled, stored, starts))
        return shown(start(settled, potential, free, number))

    def step(rng_key: Any, state: AlgorithmState) -> tuple[AlgorithmState, Info]:
        loop, info = settled.step(rng_key, state.loop.replace_unchecked(potential=stored))
        return shown(loop), jax.tree.map(lambda leaf: leaf[0], info) if is_single else info

    return base.SamplingAlgorithm(init, step)
