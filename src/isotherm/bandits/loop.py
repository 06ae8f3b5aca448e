"""One run of a bandit as pure functions: pull, remember, update, with a buffer that grows inside the program."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.bandits.agents import Agent
from isotherm.bandits.environments import Arrivals, Environment
from isotherm.contour.state import ContourState
from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.foundation.parts import Static, as_arguments
from isotherm.networks.flax_modules import from_nnx
from isotherm.networks.potential import NetworkPotential
from isotherm.potentials.batches import Batch
from isotherm.samplers.loop import LoopState, begin
from isotherm.samplers.sampler import Sampler, resolved

BLOCK = 100


@dataclasses.dataclass(frozen=True)
class BanditSettings:
    """How a bandit is played.

    Attributes:
        num_steps: steps, of `num_pulls` pulls and then the agent's updates each.
        num_pulls: in a step.
        num_initial: random pulls before the first step; they are learned from and not counted.
        capacity: of the buffer, which keeps the last pulls.
        batch_size: of an update.
        hidden: widths of the networks.
        weight_decay: precision of the prior.
        is_full: whether energies always count as many examples as the buffer can hold, as in the thesis' code; else, and always
            for control variates, as it holds.
    """

    num_steps: int = 2_000
    num_pulls: int = 20
    num_initial: int = 1_024
    capacity: int = 4_096
    batch_size: int = 512
    hidden: tuple[int, ...] = (100, 100)
    weight_decay: float = 0.01
    is_full: bool = True

    def __post_init__(self):
        for name in ("num_steps", "num_pulls", "num_initial", "capacity", "batch_size"):
            check_integer(name, getattr(self, name), 1, "Give a positive number.")
        check_real("weight_decay", self.weight_decay, "Give a precision.", minimum=0.0)
        if not self.batch_size <= self.num_initial <= self.capacity:
            rule = "such that batch_size <= num_initial <= capacity"
            refuse("num_initial", rule, self.num_initial, "A batch is drawn without replacement from what is there.")


class Buffer(NamedTuple):
    """The last pulls; `num_seen` counts all of them, so that the next is written at num_seen modulo the capacity."""

    contexts: Array
    taken: Array
    num_seen: Array


class PlayState(NamedTuple):
    """What a run carries from step to step.

    Attributes:
        chains: the state of its chains.
        acting: the weights of the networks that act, with a leading axis of chains: those that `log_weights` belong to.
        log_weights: how much each of them counts.
        buffer: the last pulls.
        regret: so far.
    """

    chains: LoopState
    acting: Any
    log_weights: Array
    buffer: Buffer
    regret: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Loop:
    """One run as pure functions of its key."""

    environment: Environment
    agent: Agent
    settings: BanditSettings
    potential: "BufferPotential"

    @property
    def _sampler(self) -> Sampler:
        return resolved(self.agent.sampler)

    def begin(self, key: Array, feed: Any) -> PlayState:
        """A run after its random pulls."""
        key_init, key_arrive, key_act = jax.random.split(jax.random.fold_in(key, 0), 3)
        settings, number = self.settings, self.agent.num_chains
        weights = jax.vmap(self.potential.init)(jax.random.split(key_init, number))
        arrivals = self.environment.arrive(key_arrive, settings.num_initial, feed)
        actions = jax.random.randint(key_act, (settings.num_initial,), 0, self.environment.num_actions)
        shape = (settings.capacity, self.environment.num_features)
        buffer = Buffer(jnp.zeros(shape), jnp.zeros((settings.capacity, 2)), jnp.zeros((), jnp.int32))
        buffer, _ = self._remember(buffer, arrivals, actions)
        chains = begin(self._sampler, self.potential.holding(buffer), weights)
        return PlayState(chains, weights, self._log_mask(chains), buffer, jnp.zeros(()))

    def advance(self, key: Array, carry: PlayState, feed: Any, first: Array) -> tuple[PlayState, Any]:
        """A block of steps, and what each saw."""

        def step(carry, number):
            return self._step(key, jax.random.fold_in(key, number + 1), carry, feed)

        return lax.scan(step, carry, first + jnp.arange(min(BLOCK, self.settings.num_steps)))

    def _step(self, key_run: Array, key: Array, carry: PlayState, feed: Any) -> tuple[PlayState, Any]:
        key_arrive, key_act = jax.random.split(key)
        arrivals = self.environment.arrive(key_arrive, self.settings.num_pulls, feed)
        actions = self._act(key_act, carry, arrivals.contexts)
        buffer, rewards = self._remember(carry.buffer, arrivals, actions)
        regret = carry.regret + jnp.sum(arrivals.oracle - rewards)
        chains = dataclasses.replace(carry.chains, potential=self.potential.holding(buffer))

        def update(_, loop):
            before, *_ = loop
            after, info = self._sampler.step(key_run, before)
            return after, before.position, info.log_weight + self._log_mask(before), info.energy

        nothing = jnp.zeros(self.agent.num_chains, self._energy_dtype)
        loop = (chains, carry.acting, nothing, nothing)
        # The weight of a position belongs to it, and not to where it moves next: positions that act are those that were weighed.
        chains, acting, log_weights, energies = lax.fori_loop(0, self.agent.num_updates, update, loop)
        seen = regret, jnp.mean(energies), jnp.mean(self._multipliers(chains))
        return PlayState(chains, acting, log_weights, buffer, regret), seen

    def _log_mask(self, chains: LoopState) -> Array:
        """Zero for the chains whose predictions count, minus infinity for replicas above the target."""
        number = self.agent.num_chains
        recorded = self._sampler.coupling.observe(chains.chains.coupling).recorded
        heard = jnp.zeros(number) if recorded is None else jnp.full(number, -jnp.inf).at[recorded].set(0.0)
        return heard.astype(self._energy_dtype)

    def _multipliers(self, chains: LoopState) -> Array:
        state = chains.chains.coupling
        return state.multiplier if isinstance(state, ContourState) else jnp.ones(self.agent.num_chains)

    @property
    def _energy_dtype(self) -> Any:
        return jnp.float32

    def _act(self, key: Array, carry: PlayState, contexts: Array) -> Array:
        key_mask, key_chain, key_random, key_choice = jax.random.split(key, 4)
        number, pulls = self.agent.num_chains, len(contexts)
        masks = self.agent.num_masks if self.agent.dropout > 0 else 1

        def predict(weights, own):
            if self.agent.dropout == 0:
                return self.potential.outputs(weights, contexts)
            each = jax.vmap(lambda k: self.potential.outputs(weights, contexts, key=k))
            return jnp.mean(each(jax.random.split(own, masks)), axis=0)

        predicted = jax.vmap(predict)(carry.acting, jax.random.split(key_mask, number))
        if self.agent.rule == "average":
            seen = jnp.einsum("c,cpa->pa", jax.nn.softmax(carry.log_weights), predicted)
        else:
            chosen = jax.random.categorical(key_chain, carry.log_weights, shape=(pulls,))
            seen = predicted[chosen, jnp.arange(pulls)]
        best = jnp.argmax(seen, axis=1)
        is_random = jax.random.bernoulli(key_random, self.agent.epsilon, (pulls,))
        return jnp.where(is_random, jax.random.randint(key_choice, (pulls,), 0, self.environment.num_actions), best)

    def _remember(self, buffer: Buffer, arrivals: Arrivals, actions: Array) -> tuple[Buffer, Array]:
        number = len(actions)
        rewards = jnp.take_along_axis(arrivals.rewards, actions[:, None], axis=1)[:, 0]
        places = (buffer.num_seen + jnp.arange(number)) % self.settings.capacity
        taken = jnp.stack([actions.astype(rewards.dtype), rewards], axis=1)
        contexts = buffer.contexts.at[places].set(arrivals.contexts)
        return Buffer(contexts, buffer.taken.at[places].set(taken), buffer.num_seen + number), rewards


def chosen_error(outputs: Array, taken: Array) -> Array:
    """The squared error of the predicted reward of the action that was taken; `taken` holds (action, reward)."""
    predicted = jnp.take_along_axis(outputs, taken[:, :1].astype(jnp.int32), axis=1)[:, 0]
    return (predicted - taken[:, 1]) ** 2


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class BufferPotential(NetworkPotential):
    """A network's potential whose data are a buffer of pulls that fills up.

    Attributes:
        num_counted: N in the energies, whatever the buffer holds; None is what it holds.
    """

    num_counted: Static[int | None] = None

    def holding(self, buffer: Buffer) -> "BufferPotential":
        """The potential with what is in a buffer."""
        number = jnp.minimum(buffer.num_seen, len(buffer.contexts))
        network = self.network.replace_unchecked(init=None)
        return self.replace_unchecked(data=(buffer.contexts, buffer.taken), num_used=number, network=network)

    def batch(self, key: Array, iteration: Array) -> Batch:
        found = super().batch(key, iteration)
        return found if self.num_counted is None else found._replace(num_data=jnp.asarray(self.num_counted))


def make_potential(environment: Environment, agent: Agent, settings: BanditSettings) -> BufferPotential:
    """The potential of an agent's networks."""
    from isotherm.networks import MLP

    data = np.zeros((settings.capacity, environment.num_features), np.float32), np.zeros((settings.capacity, 2))
    potential = from_nnx(
        functools.partial(_network, MLP, environment, agent, settings),
        chosen_error,
        data,
        batch_size=settings.batch_size,
        weight_decay=settings.weight_decay,
        coupling_includes_prior=False,
        dropout="on" if agent.dropout > 0 else "off",
        batching="independent",
        is_batch_shared=False,
    )
    # A control variate compares batches with a pass over what is there.
    is_full = settings.is_full and not resolved(agent.sampler).estimator.periodic()
    counted = BufferPotential(**vars(potential), num_counted=settings.capacity if is_full else None)
    return as_arguments(counted, jnp.float32)


def _network(kind: Any, environment: Environment, agent: Agent, settings: BanditSettings, rngs: Any) -> Any:
    sizes = environment.num_features, settings.hidden, environment.num_actions
    return kind(*sizes, dropout=agent.dropout, rngs=rngs)
