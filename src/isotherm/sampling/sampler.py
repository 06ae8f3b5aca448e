"""A sampler is a choice of four independent parts: kernel, estimator, coupling and schedules."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.coupling import Coupling, Independent
from isotherm.engine.iteration import Inputs, Parts, State, init_state, iterate, keep_up
from isotherm.estimators.estimator import Estimator
from isotherm.estimators.plain import Plain
from isotherm.foundation.errors import check_integer, refuse
from isotherm.foundation.randomness import Purpose, fold, normals_like
from isotherm.foundation.schedules import CollectionWindow, Schedule, as_schedule, check_schedule
from isotherm.kernels.kernel import Kernel
from isotherm.potentials.batches import Batch
from isotherm.potentials.energy import EnergyPotential
from isotherm.potentials.potential import Potential


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class LoopState:
    """What `Sampler.step` carries from step to step: the chains of one run and the number of the next iteration."""

    chains: State
    iteration: Array
    potential: Potential = dataclasses.field(metadata={"static": True})

    @property
    def position(self) -> Any:
        """The positions of the chains, with a leading axis of chains."""
        return self.chains.position


class Info(NamedTuple):
    """What `Sampler.step` found at the positions before the move, with a leading axis of chains."""

    energy: Array
    log_weight: Array
    step_size: Array
    temperature: Array
    multiplier: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Sampler:
    """A composition of the four parts. The constructors in `isotherm.samplers` are one line each.

    Attributes:
        kernel: moves one chain.
        step_size: epsilon, a number or a function of the iteration.
        temperature: tau, a number or a function of the iteration.
        estimator: gives energies and gradients.
        coupling: lets chains act on one another.
        window: the iterations whose draws are collected; None collects all.
        name: what tables call this sampler.

    Example:
        >>> import isotherm as iso
        >>> sampler = iso.sgld(step_size=0.1)
        >>> potential = iso.from_energy(lambda x: 0.5 * (x ** 2).sum())
        >>> state = sampler.init(potential, jnp.zeros(2), num_chains=3)
        >>> state, info = jax.jit(sampler.step)(jax.random.key(0), state)
        >>> state.position.shape, info.energy.shape
        ((3, 2), (3,))
    """

    kernel: Kernel
    step_size: Schedule
    temperature: Schedule = 1.0
    estimator: Estimator = dataclasses.field(default_factory=Plain)
    coupling: Coupling = dataclasses.field(default_factory=Independent)
    window: CollectionWindow | None = None
    name: str = ""

    def __post_init__(self):
        check_schedule("step_size", self.step_size, allow_zero=callable(self.step_size))
        check_schedule("temperature", self.temperature, allow_zero=True)

    def parts(self, potential: Potential, chain_mode: str = "vmap") -> Parts:
        """The parts bound to a potential, which is lifted to what the kernel moves."""
        return Parts(
            self.kernel.lift(potential),
            self.kernel,
            self.estimator,
            self.coupling,
            as_schedule(self.step_size),
            as_schedule(self.temperature),
            chain_mode,
        )

    def choose_num_chains(self, asked: int | None) -> int:
        """The number of chains in a run: what was asked for, unless the coupling needs another."""
        needed = self.coupling.num_chains
        if asked is not None and needed is not None and asked != needed:
            refuse("num_chains", f"the number of rungs, {needed}", asked, "Every rung needs one replica; leave it out.")
        return check_integer(
            "num_chains", (needed or 1) if asked is None else asked, 1, "Give the number of chains in a run."
        )

    def init(self, potential: Any, position: Any, num_chains: int | None = None) -> LoopState:
        """The state of a loop written by hand: `num_chains` chains at `position`.

        `iso.sample` does more: periodic work of estimators and couplings, records, checkpoints. Use the pair `init` and `step`
        where the loop must be your own.
        """
        potential = as_potential(potential)
        num_chains = self.choose_num_chains(num_chains)
        chains = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *jnp.shape(leaf))), position)
        return LoopState(init_state(self.parts(potential), chains, num_chains), jnp.zeros((), jnp.int32), potential)

    def step(self, key: Array, state: LoopState, batch: Any = None) -> tuple[LoopState, Info]:
        """One iteration. `batch` holds the examples of this step, common to the chains; with an estimator that needs several
        batches, a tuple of them. A `Batch` is taken as it is, with an axis of chains where the potential's are not shared.
        """
        parts = self.parts(state.potential)
        words = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
        inputs = self._inputs(parts, words, state, batch)
        kept_up = keep_up(parts, state.chains, state.iteration, parts.coupling.upkeep)
        chains, seen = iterate(parts, kept_up, inputs, state.iteration)
        log_weight = parts.coupling.log_weights(chains.coupling) if parts.coupling.is_weighted else 0.0 * seen.energy
        move = seen.move
        info = Info(seen.energy, log_weight, move.step_size, move.temperature, move.multiplier)
        return LoopState(chains, state.iteration + 1, state.potential), info

    def _inputs(self, parts: Parts, key: Array, state: LoopState, batch: Any) -> Inputs:
        positions = state.position
        chains = jnp.arange(jax.tree.leaves(positions)[0].shape[0])
        once = jnp.zeros(1, jnp.int32)

        def per_chain(purpose, function):
            """`function(key of the chain, its position)` without the axis of iterations."""
            keys = jax.vmap(lambda chain: fold(fold(key, purpose), chain + 1))(chains)
            return jax.tree.map(lambda leaf: leaf[:, 0], jax.vmap(function)(keys, positions))

        noise = probe = None
        if parts.kernel.needs_noise:
            noise = per_chain(Purpose.KERNEL, lambda k, x: normals_like(k, once, x))
        if parts.kernel.needs_curvature:
            probe = per_chain(Purpose.PROBE, lambda k, x: jax.tree.map(jnp.sign, normals_like(k, once, x)))
        shared = fold(key, Purpose.POTENTIAL)
        number = parts.num_batches
        noises = tuple(
            per_chain(Purpose.POTENTIAL, lambda k, x, b=b: parts.potential.draw(fold(shared, b), fold(k, b), once, x))
            for b in range(number)
        )
        given = batch if number > 1 else (batch,)
        if not isinstance(given, tuple) or len(given) != number:
            refuse("batch", f"a tuple of {number} batches", type(batch).__name__, "This sampler needs that many.")
        batches = tuple(parts.potential.as_batch(examples) for examples in given)
        if not parts.potential.is_batch_shared and not all(isinstance(one, Batch) for one in given):
            batches = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(chains), *leaf.shape)), batches)
        draws = parts.coupling.draw(fold(key, Purpose.COUPLING), once, len(chains))
        return Inputs(noise, probe, noises, batches, jax.tree.map(lambda leaf: leaf[0], draws))


def as_potential(value: Any) -> Potential:
    """A potential, from a potential or an energy function."""
    if isinstance(value, Potential):
        return value
    if not callable(value):
        refuse("potential", "a potential or an energy function", repr(value), "Use `iso.from_energy` and its kin.")
    return _energy_potential(value)


@functools.lru_cache(maxsize=64)
def _energy_potential(energy: Any) -> Potential:
    # The same function must give the same object, or every call of `iso.sample` would compile anew.
    return EnergyPotential(energy)
