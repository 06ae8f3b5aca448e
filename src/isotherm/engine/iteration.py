"""One iteration of one run: estimate, couple, move. Every sampler of the library is this function, repeated."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.coupling import Coupling, CouplingInputs
from isotherm.engine.chain_mode import over_chains
from isotherm.engine.sharding import Shard
from isotherm.estimators.estimator import EnergyAndGradient, Estimator
from isotherm.foundation.parts import Part, Static
from isotherm.foundation.schedules import Schedule, as_schedule
from isotherm.kernels.kernel import Kernel, Move, Point
from isotherm.potentials.potential import Potential


@dataclasses.dataclass(frozen=True, eq=False)
class Parts(Part):
    """A sampler and its potential; see `isotherm.Sampler`."""

    potential: Potential
    kernel: Kernel
    estimator: Estimator
    coupling: Coupling
    step_size: Schedule
    temperature: Schedule
    chain_mode: Static[str] = "vmap"  # See `over_chains`.
    shard: Static[Shard | None] = None  # Of a run whose chains are on several devices.
    is_small: Static[bool] = False  # Whether iterations are one function each on a CPU; see `engine.whole_loops`.
    restarts: Static[bool] = False  # Whether chains whose energy is not finite are put back to their start.

    @property
    def num_batches(self) -> int:
        """Independent batches of an iteration: the estimator's, then those of the coupling's fresh energies."""
        return self.estimator.num_batches + self.coupling.traits.num_fresh

    @property
    def is_apart(self) -> bool:
        """Whether what precedes and follows an exchange of energies is compiled apart, as for several devices; see `apart`."""
        return self.is_small and self.coupling.traits.reads_others and jax.default_backend() == "cpu"

    @property
    def gathers(self) -> bool:
        """Whether the coupling needs the energies of chains on other devices."""
        return self.shard is not None and self.coupling.traits.reads_others

    def num_coupled(self, num_chains: int) -> int:
        """The chains that the coupling sees, of which `num_chains` are on this device."""
        return self.shard.total if self.shard is not None and self.gathers else num_chains

    def own(self, of_chains: Any) -> Any:
        """What the coupling returns, leaves (P, ...), for the chains on this device."""
        return self.shard.own(of_chains) if self.shard is not None and self.gathers else of_chains

    @property
    def draws_reference(self) -> bool:
        """Whether rungs with a multiplier of 0 are drawn from the potential's reference in every iteration."""
        return self.coupling.traits.is_path and self.potential.has_reference

    @property
    def needs_words(self) -> bool:
        """Whether iterations need random words of every chain."""
        return self.kernel.is_adjusted or self.kernel.needs_words or self.draws_reference


class Restart(NamedTuple):
    """Where chains are put back to when their energy is not finite, and how often they were. Leaves have an axis of chains."""

    position: Any
    number: Array


class State(NamedTuple):
    """The state of one run. All leaves except those of `coupling` have a leading axis of chains."""

    kernel: Any
    estimator: Any
    coupling: Any
    model_state: Any
    estimated: Any = ()  # Energies and gradients at the positions, for adjusted kernels, which evaluate proposals.
    restart: Any = ()  # A `Restart`, for parts that restart.

    @property
    def position(self) -> Any:
        """Positions, with the axis of chains."""
        return self.kernel.position


class Inputs(NamedTuple):
    """Random inputs of one iteration of one run. Batches have an axis of chains only if chains have batches of their own."""

    noise: Any
    probe: Any
    potential_noises: tuple[Any, ...]
    batches: tuple[Any, ...]
    coupling: Any
    words: Any = None  # Random words of every chain, shape (P, 2), where `Parts.needs_words`.


def init_state(parts: Parts, position: Any) -> State:
    """The state of one run whose chains start at `position`, leaves (P, ...)."""
    num_chains = jax.tree.leaves(position)[0].shape[0]
    model_state = _first_model_state(parts, num_chains)
    kernel = jax.vmap(parts.kernel.init)(position)
    estimator = jax.vmap(lambda x, m: parts.estimator.init(parts.potential, x, m))(position, model_state)
    state = State(kernel, estimator, parts.coupling.init(parts.num_coupled(num_chains)), model_state)
    if parts.restarts:
        state = state._replace(restart=Restart(position, jnp.zeros(num_chains, jnp.int32)))
    if not parts.kernel.is_adjusted:
        return state
    words, zero = jnp.zeros(2, jnp.uint32), jnp.zeros((), jnp.int32)
    one = jax.tree.map(lambda leaf: leaf[0], position)
    noise = jax.tree.map(lambda leaf: leaf[0], parts.potential.draw(words, words, zero[None], one))
    # An exact potential has one batch, all data, and its noise is no number.
    batch = parts.potential.batch(words, zero)
    inputs = Inputs(None, None, (noise,), (batch,), None)
    _, estimated = _estimate(parts, state, position, inputs)
    return state._replace(estimated=estimated._replace(model_state=()), model_state=estimated.model_state)


def iterate(parts: Parts, state: State, inputs: Inputs, iteration: Array) -> tuple[State, Array]:
    """The state after one iteration, and the energies of the positions before it, shape (P,)."""
    estimator, estimated = state.estimator, state.estimated
    accepted = None
    if parts.kernel.is_adjusted:
        estimated = estimated._replace(model_state=state.model_state)
        accepted = jax.vmap(parts.kernel.was_accepted)(state.kernel)
    else:
        estimate = lambda state, inputs: _estimate(parts, state, state.position, inputs)  # noqa: E731
        estimator, estimated = apart(parts.is_apart, iteration, estimate, state, inputs)
    given = (estimated.energy, estimated.prior_energy, iteration, estimated.residuals, accepted)
    to_coupling = coupling_inputs(parts, *given)
    num_own = parts.estimator.num_batches
    if parts.coupling.traits.num_fresh:
        batches, noises = inputs.batches[num_own:], inputs.potential_noises[num_own:]
        fresh = further_energies(parts, state, batches, noises, iteration)
        noise = {"noise_covariance": fresh.noise_covariance, "num_examples": fresh.num_examples}
        to_coupling = to_coupling._replace(fresh_energies=fresh.energies, **noise)
    before = state._replace(estimator=estimator, model_state=estimated.model_state, restart=())
    move = lambda state, *given: _moved(parts, state, *given)  # noqa: E731
    after = apart(parts.is_apart, iteration, move, before, estimated, inputs, to_coupling, is_update=True)
    return _restarted(parts, after, state.restart, estimated.energy) if parts.restarts else after, estimated.energy


def _moved(
    parts: Parts, state: State, estimated: EnergyAndGradient, inputs: Inputs, to_coupling: CouplingInputs
) -> State:
    """The state after the coupling and the move; its model state is that of the estimates."""
    iteration = to_coupling.iteration
    coupling, move = parts.coupling.update(state.coupling, inputs.coupling, to_coupling)
    move = parts.own(move)
    if parts.kernel.needs_words:
        move = move._replace(words=inputs.words)

    def multiply(kernel, gradient, move):
        return multiplied(parts, kernel.position, gradient, move.multiplier)

    def advance(kernel, gradient, noise, move, curvature):
        gradient = multiply(kernel, gradient, move)
        return parts.kernel.step(kernel, gradient, noise, move._replace(iteration=iteration), curvature)

    if parts.kernel.is_joint:
        gradient = jax.vmap(multiply)(state.kernel, estimated.gradient, move)
        move = move._replace(iteration=iteration)
        kernel = parts.kernel.step(state.kernel, gradient, inputs.noise, move, estimated.curvature)
    else:
        arguments = (state.kernel, estimated.gradient, inputs.noise, move, estimated.curvature)
        kernel = over_chains(parts.chain_mode, advance, *arguments)
    if parts.draws_reference:
        kernel = _with_reference_draws(parts, kernel, inputs.words, move.multiplier == 0.0)
    if parts.kernel.is_adjusted:
        move = move._replace(iteration=jnp.broadcast_to(iteration, move.step_size.shape))
        return _settle(parts, state._replace(estimated=estimated), kernel, coupling, move, inputs)
    return State(kernel, state.estimator, coupling, state.model_state)


def _first_model_state(parts: Parts, num_chains: int) -> Any:
    start = parts.potential.init_model_state()
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *jnp.shape(leaf))), start)


def _restarted(parts: Parts, state: State, restart: Restart, energy: Array) -> State:
    """The state with kernels and model states of chains without a finite energy as at their start. Couplings go on."""
    is_lost = ~jnp.isfinite(energy)

    def chosen(new, old):
        return jnp.where(is_lost.reshape(is_lost.shape + (1,) * (old.ndim - 1)), new, old).astype(old.dtype)

    first = jax.vmap(parts.kernel.init)(restart.position), _first_model_state(parts, len(is_lost))
    kernel, model_state = jax.tree.map(chosen, first, (state.kernel, state.model_state))
    number = restart.number + is_lost.astype(jnp.int32)
    return state._replace(kernel=kernel, model_state=model_state, restart=restart._replace(number=number))


def apart(
    is_apart: bool,
    iteration: Array,
    function: Callable[..., Any],
    first: Any,
    *others: Any,
    is_update: bool = False,
) -> Any:
    """`function(first, *others)`, compiled apart from what surrounds it if `is_apart`. An update returns a tree like `first`.

    A processor rounds a * b + c once or twice, depending on what the compiler sees at once. Devices exchange energies in the middle
    of an iteration; one device compiles its two parts apart, too, so that the draws are the same.
    """
    if not is_apart:
        return function(first, *others)

    def once(turn, held):
        # The barrier ties the arguments to the loop, from which XLA would hoist all.
        given, _ = lax.optimization_barrier(((held if is_update else first, others), turn))
        return function(given[0], *given[1])

    start = first
    if not is_update:
        shapes = jax.eval_shape(function, first, *others)
        start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return lax.fori_loop(iteration, iteration + (iteration >= 0).astype(jnp.int32), once, start)


def _estimate(parts: Parts, state: State, position: Any, inputs: Inputs) -> tuple[Any, EnergyAndGradient]:
    """The estimators after one evaluation of every chain at `position`, and its results."""
    is_shared = parts.potential.is_batch_shared
    num_own = parts.estimator.num_batches

    def estimate(estimator, position, model_state, noises, probe, batches):
        batches = inputs.batches[:num_own] if is_shared else batches
        after, result = parts.estimator.evaluate(
            parts.potential, estimator, position, model_state, batches, noises, probe
        )
        return after, result if parts.coupling.traits.noise else result._replace(residuals=None)

    own_batches = None if is_shared else inputs.batches[:num_own]
    own_noises = inputs.potential_noises[:num_own]
    arguments = (state.estimator, position, state.model_state, own_noises, inputs.probe, own_batches)
    # One chain of several keeps its axis, so that the number of devices does not matter.
    return over_chains(parts.chain_mode, estimate, *arguments, drops_axis_of_one=parts.shard is None)


def _settle(parts: Parts, state: State, proposed: Any, coupling: Any, move: Move, inputs: Inputs) -> State:
    """The state after the Metropolis tests of proposals, whose energies and gradients are those of the next iteration."""
    uniform = (inputs.words[:, 0] >> 8).astype(jnp.float32) * 2.0**-24
    estimator, there = _estimate(parts, state, proposed.position, inputs)

    def of_chain(before, after, here, there, move, uniform):
        def at(kernel, estimated):
            energy, prior, weight = estimated.energy, estimated.prior_energy, move.multiplier
            if reads_loss(parts):
                # The target's energy as it is: the reference may end where the target does not.
                energy = jnp.where(weight == 1.0, energy, prior + weight * (energy - prior))
                if parts.draws_reference:
                    # A draw from the reference is always accepted.
                    energy = jnp.where(weight > 0.0, energy, 0.0)
            return Point(energy, multiplied(parts, kernel.position, estimated.gradient, weight))

        return parts.kernel.settle(before, after, at(before, here), at(after, there), move, uniform)

    arguments = (state.kernel, proposed, state.estimated, there, move, uniform)
    kernel = over_chains(parts.chain_mode, of_chain, *arguments)
    accepted = jax.vmap(parts.kernel.was_accepted)(kernel)

    def chosen(new, old):
        return jnp.where(accepted.reshape(accepted.shape + (1,) * (new.ndim - 1)), new, old)

    estimated = jax.tree.map(chosen, there, state.estimated)
    return State(kernel, estimator, coupling, estimated.model_state, estimated._replace(model_state=()))


def _with_reference_draws(parts: Parts, kernel: Any, words: Array, is_drawn: Array) -> Any:
    """The states of kernels, with a draw from the reference as the position of the one chain that `is_drawn`, if any."""
    key = jax.random.wrap_key_data(words[jnp.argmax(is_drawn)], impl="threefry2x32")
    drawn = parts.potential.draw_reference(key)

    def of_chain(state, is_drawn):
        place = lambda new, old: jnp.where(is_drawn, new, old).astype(old.dtype)  # noqa: E731
        return parts.kernel.placed(state, jax.tree.map(place, drawn, state.position))

    return jax.vmap(of_chain)(kernel, is_drawn)


def reads_loss(parts: Parts) -> bool:
    """Whether the coupling's multiplier scales the energy without the prior."""
    has_multiplier = parts.coupling.log_weights is not None or parts.coupling.traits.is_path
    return has_multiplier and not parts.potential.coupling_includes_prior


def multiplied(parts: Parts, position: Any, gradient: Any, multiplier: Array) -> Any:
    """The gradient with the coupling's multiplier, which scales the part of the energy that the coupling reads."""
    if not reads_loss(parts):
        return jax.tree.map(lambda g: (multiplier * g).astype(g.dtype), gradient)
    prior = jax.grad(parts.potential.prior_energy)(position)
    force = jax.tree.map(lambda g, p: (p + multiplier * (g - p)).astype(g.dtype), gradient, prior)
    if parts.coupling.traits.is_path:
        force = jax.tree.map(lambda f, g: jnp.where(multiplier == 1.0, g, f), force, gradient)
    if parts.draws_reference:
        # Draws need no force, and the energy may have no gradient there.
        force = jax.tree.map(lambda f: jnp.where(multiplier > 0.0, f, jnp.zeros_like(f)), force)
    return force


def further_energies(
    parts: Parts, state: State, batches: tuple[Any, ...], noises: tuple[Any, ...], iteration: Array
) -> CouplingInputs:
    """What the coupling would read on each of several batches: energies of shape (number of batches, P).

    Chains share these batches if they share those of iterations, so that energy differences have the noise of swaps.
    """
    is_shared = parts.potential.is_batch_shared
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *zip(batches, noises, strict=True))

    def of_batch(batch, noises_of_batch):
        def of_chain(estimator, position, model_state, noise, own_batch):
            used = batch if is_shared else own_batch
            measured = parts.estimator.measure(parts.potential, estimator, position, model_state, used, noise)
            return measured if parts.coupling.traits.noise else (*measured[:2], None)

        own_batches = None if is_shared else batch
        chains = (state.estimator, state.position, state.model_state, noises_of_batch, own_batches)
        return over_chains(parts.chain_mode, of_chain, *chains)

    # The numbers give `lax.map` an axis if there are neither batches nor noise.
    _, (energies, priors, residuals) = lax.map(
        lambda one: (one[0], of_batch(*one[1])), (jnp.arange(len(batches)), stacked)
    )
    return coupling_inputs(parts, energies, priors, iteration, residuals)


def coupling_inputs(
    parts: Parts,
    energies: Array,
    prior_energies: Array,
    iteration: Array,
    residuals: Array | None = None,
    accepted: Array | None = None,
) -> CouplingInputs:
    """What the coupling reads of energies (..., P), residuals (..., P, examples) and accepted proposals at an iteration."""
    if parts.shard is not None and parts.gathers:
        energies, prior_energies, residuals, accepted = _gathered(
            parts.shard, energies, prior_energies, residuals, accepted
        )
    schedules = parts.step_size, parts.temperature
    step_size, temperature = (jnp.asarray(as_schedule(one)(iteration), energies.dtype) for one in schedules)
    read_energies = energies if parts.potential.coupling_includes_prior else energies - prior_energies
    fields = (read_energies, prior_energies, jnp.isfinite(energies), step_size, temperature, iteration)
    if residuals is None:
        return CouplingInputs(*fields, accepted=accepted)
    if parts.potential.is_batch_shared:
        covariance = residuals @ jnp.swapaxes(residuals, -1, -2)
    else:
        variances = jnp.sum(residuals**2, axis=-1)
        covariance = variances[..., None] * jnp.eye(residuals.shape[-2], dtype=residuals.dtype)
    # Examples that pad a short batch have residual zero.
    is_used = jnp.any(residuals != 0.0, axis=tuple(range(residuals.ndim - 1)))
    noise = {"noise_covariance": covariance, "num_examples": jnp.sum(is_used)}
    return CouplingInputs(*fields, accepted=accepted, **noise)


def _gathered(
    shard: Shard, energies: Array, prior_energies: Array, residuals: Array | None, accepted: Array | None
) -> tuple[Array, Array, Array | None, Array | None]:
    """The same of all chains, by one exchange of a few numbers per chain."""
    columns = [energies[..., None], prior_energies[..., None]]
    columns += [] if accepted is None else [accepted[..., None]]
    columns += [] if residuals is None else [residuals]
    together = shard.gather(jnp.concatenate([part.astype(energies.dtype) for part in columns], axis=-1), -2)
    number = 2 + (accepted is not None)
    is_accepted = None if accepted is None else together[..., 2] > 0.0
    rest = None if residuals is None else together[..., number:].astype(residuals.dtype)
    return together[..., 0], together[..., 1].astype(prior_energies.dtype), rest, is_accepted
