"""One iteration of one run: estimate, couple, observe, move. Everything in the library is this function, repeated."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.coupling import Coupling, Readings
from isotherm.estimators.estimator import Estimator
from isotherm.kernels.kernel import Kernel, Move
from isotherm.potentials.potential import Potential


class Parts(NamedTuple):
    """The parts of a sampler together with what they sample; fixed while a program runs."""

    potential: Potential
    kernel: Kernel
    estimator: Estimator
    coupling: Coupling
    step_size: Callable[[Any], Any]
    temperature: Callable[[Any], Any]
    chain_mode: str

    @property
    def num_batches(self) -> int:
        """Independent batches of an iteration: those of the estimator, then those of the coupling's fresh energies."""
        return self.estimator.num_batches + self.coupling.num_fresh

    @property
    def measure_every(self) -> int | None:
        """Iterations between two measurements; None where energies are exact, of which the first measurement says all.

        Not so for an estimator that is refreshed: before its first refresh it has no energies to measure.
        """
        is_known = self.potential.is_exact and self.estimator.refresh_every is None
        return None if is_known else self.coupling.measure_every


class State(NamedTuple):
    """The state of one run. Every leaf but those of `coupling` has a leading axis of chains."""

    kernel: Any
    estimator: Any
    coupling: Any
    model_state: Any

    @property
    def position(self) -> Any:
        """The positions of the chains."""
        return self.kernel.position


class Inputs(NamedTuple):
    """What one iteration of one run consumes. Batches have an axis of chains only where chains do not share them."""

    noise: Any
    probe: Any
    potential_noises: tuple[Any, ...]
    batches: tuple[Any, ...]
    coupling: Any


class Observation(NamedTuple):
    """What an iteration found at the positions it started from.

    Attributes:
        energy: shape (P,).
        energies: the energy of each point, shape (P,) or (P, M).
        move: the moves that followed, fields of shape (P,).
    """

    energy: Array
    energies: Array
    move: Move


def init_state(parts: Parts, position: Any, num_chains: int) -> State:
    """The state of one run whose chains start at `position`, which has a leading axis of chains."""
    start = parts.potential.init_model_state()
    model_state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *jnp.shape(leaf))), start)
    kernel = jax.vmap(parts.kernel.init)(position)
    estimator = jax.vmap(lambda x, m: parts.estimator.init(parts.potential, x, m))(position, model_state)
    return State(kernel, estimator, parts.coupling.init(num_chains), model_state)


def iterate(parts: Parts, state: State, inputs: Inputs, iteration: Array) -> tuple[State, Observation]:
    """One iteration."""
    is_shared = parts.potential.is_batch_shared
    own = parts.estimator.num_batches

    def estimate(estimator, position, model_state, noises, probe, batches):
        batches = inputs.batches[:own] if is_shared else batches
        return parts.estimator.evaluate(parts.potential, estimator, position, model_state, batches, noises, probe)

    own_batches = None if is_shared else inputs.batches[:own]
    own_noises = inputs.potential_noises[:own]
    arguments = (state.estimator, state.position, state.model_state, own_noises, inputs.probe, own_batches)
    estimator, found = over_chains(parts.chain_mode, estimate, *arguments, drops_axis_of_one=True)

    readings = read(parts, found.energy, found.prior_energy, iteration)
    if parts.coupling.num_fresh:
        fresh = read(parts, *_fresh_energies(parts, state, inputs), iteration)
        readings = readings._replace(fresh_energies=fresh.energies)
    coupling, move = parts.coupling.update(state.coupling, inputs.coupling, readings)

    def advance(kernel, gradient, noise, move, curvature):
        move = move._replace(iteration=iteration)
        gradient = multiplied(parts, kernel.position, gradient, move.multiplier)
        return parts.kernel.step(kernel, gradient, noise, move, curvature)

    moved = over_chains(parts.chain_mode, advance, state.kernel, found.gradient, inputs.noise, move, found.curvature)
    next_state = State(moved, estimator, coupling, found.model_state)
    return next_state, Observation(found.energy, found.energies, move)


def multiplied(parts: Parts, position: Any, gradient: Any, multiplier: Array) -> Any:
    """The gradient with the coupling's multiplier, which acts on those parts of the energy that the coupling reads."""
    if parts.potential.is_prior_read or not parts.coupling.is_weighted:
        return jax.tree.map(lambda g: (multiplier * g).astype(g.dtype), gradient)
    prior = jax.grad(parts.potential.prior_energy)(position)
    return jax.tree.map(lambda g, p: (p + multiplier * (g - p)).astype(g.dtype), gradient, prior)


def keep_up(parts: Parts, state: State, iteration: Array, upkeep: Callable[[Any], Any]) -> State:
    """The state after the coupling's upkeep, where it is due. A loop of no or one turn, which copies nothing."""
    every = parts.coupling.upkeep_every
    if every is None:
        return state
    is_due = (iteration % every == 0).astype(jnp.int32)
    return state._replace(coupling=lax.fori_loop(0, is_due, lambda _, coupling: upkeep(coupling), state.coupling))


def next_upkeep(parts: Parts, iteration: Array) -> Any:
    """The first iteration after `iteration` at which the coupling's upkeep is due."""
    every = parts.coupling.upkeep_every
    return jnp.iinfo(jnp.int32).max if every is None else (iteration // every + 1) * every


def _fresh_energies(parts: Parts, state: State, inputs: Inputs) -> tuple[Array, Array]:
    """Energies and prior energies of every chain on each of the coupling's own batches, shapes (num_fresh, P)."""
    own = parts.estimator.num_batches
    batches, noises = (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)
        for several in (inputs.batches[own:], inputs.potential_noises[own:])
    )
    is_shared = parts.potential.is_batch_shared

    def of_batch(batch, noise):
        def of_chain(estimator, position, model_state, noise, own_batch):
            seen = batch if is_shared else own_batch
            return parts.estimator.measure(parts.potential, estimator, position, model_state, seen, noise)

        chains = (state.estimator, state.position, state.model_state, noise, None if is_shared else batch)
        return over_chains(parts.chain_mode, of_chain, *chains)

    return jax.lax.map(lambda one: of_batch(*one), (batches, noises))


def read(parts: Parts, energies: Array, prior_energies: Array, iteration: Array) -> Readings:
    """What the coupling sees of energies, at the scheduled step size and temperature of an iteration."""
    step_size = jnp.asarray(parts.step_size(iteration), energies.dtype)
    temperature = jnp.asarray(parts.temperature(iteration), energies.dtype)
    seen = energies if parts.potential.is_prior_read else energies - prior_energies
    return Readings(seen, prior_energies, jnp.isfinite(energies), step_size, temperature, iteration)


def over_chains(mode: str, function: Callable[..., Any], *arguments: Any, drops_axis_of_one: bool = False) -> Any:
    """`function` for every chain along the leading axis: all at once ("vmap"), or one after another ("map").

    With `drops_axis_of_one` a single chain is run without its axis: a batched product of one is slower than a product. For
    elementwise work it is better left in place, where the compiler fuses more.
    """
    if drops_axis_of_one and len(jax.tree.leaves(arguments)[0]) == 1:
        alone = jax.tree.map(lambda leaf: leaf[0], arguments)
        return jax.tree.map(lambda leaf: leaf[None], function(*alone))
    if mode == "vmap":
        return jax.vmap(function)(*arguments)
    return lax.map(lambda one: function(*one), arguments)
