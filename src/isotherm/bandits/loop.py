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
from isotherm.engine.iteration import Parts, read
from isotherm.engine.periodic import numbered_batch
from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.potentials.batches import Batch
from isotherm.potentials.flax_networks import from_nnx
from isotherm.potentials.networks import NetworkPotential
from isotherm.sampling.sampler import LoopState

BLOCK = 100


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a bandit is played.

    Attributes:
        num_steps: steps, of `num_pulls` pulls and then the agent's updates each.
        num_pulls: in a step.
        num_initial: random pulls before the first step; they are learnt from and not counted.
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


class Carry(NamedTuple):
    """What a run carries from step to step: its chains, its buffer, their weights in action, and its regret."""

    chains: LoopState
    buffer: Buffer
    log_weights: Array
    regret: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Loop:
    """One run as pure functions of its key."""

    environment: Environment
    agent: Agent
    settings: Settings
    potential: NetworkPotential

    def begin(self, key: Array, feed: Any) -> Carry:
        """A run after its random pulls."""
        key_init, key_arrive, key_act = jax.random.split(jax.random.fold_in(key, 0), 3)
        settings, number = self.settings, self.agent.num_chains
        weights = jax.vmap(self.potential.start)(jax.random.split(key_init, number))
        one = jax.tree.map(lambda leaf: leaf[0], weights)
        chains = self.agent.sampler.init(self.potential, one, number)
        kernel = jax.vmap(self.agent.sampler.kernel.init)(weights)
        chains = dataclasses.replace(chains, chains=chains.chains._replace(kernel=kernel))
        arrivals = self.environment.arrive(key_arrive, settings.num_initial, feed)
        actions = jax.random.randint(key_act, (settings.num_initial,), 0, self.environment.num_actions)
        shape = (settings.capacity, self.environment.num_features)
        buffer = Buffer(jnp.zeros(shape), jnp.zeros((settings.capacity, 2)), jnp.zeros((), jnp.int32))
        buffer, _ = self._remember(buffer, arrivals, actions)
        return Carry(chains, buffer, self._is_heard(chains), jnp.zeros(()))

    def advance(self, key: Array, carry: Carry, feed: Any, first: Array) -> tuple[Carry, Any]:
        """A block of steps, and what each saw."""

        def step(carry, number):
            return self._step(jax.random.fold_in(key, number + 1), carry, feed, number)

        return lax.scan(step, carry, first + jnp.arange(min(BLOCK, self.settings.num_steps)))

    def _step(self, key: Array, carry: Carry, feed: Any, step: Array) -> tuple[Carry, Any]:
        key_arrive, key_act, key_update = jax.random.split(key, 3)
        arrivals = self.environment.arrive(key_arrive, self.settings.num_pulls, feed)
        actions = self._act(key_act, carry, arrivals.contexts)
        buffer, rewards = self._remember(carry.buffer, arrivals, actions)
        regret = carry.regret + jnp.sum(arrivals.oracle - rewards)

        def update(state, number):
            own = jax.random.fold_in(key_update, number)
            state = self._keep_up(own, state, buffer, step * self.agent.num_updates + number)
            number_of_batches = self._parts.num_batches
            batches = [self._batches(jax.random.fold_in(own, b + 1), buffer) for b in range(number_of_batches)]
            batch: Any = batches[0] if number_of_batches == 1 else tuple(batches)
            state, info = self.agent.sampler.step(jax.random.key_data(own), state, batch)
            return state, (info.log_weight, info.energy, info.multiplier)

        chains, (log_weights, energies, multipliers) = lax.scan(
            update, carry.chains, jnp.arange(self.agent.num_updates)
        )
        seen = regret, jnp.mean(energies[-1]), jnp.mean(multipliers[-1])
        return Carry(chains, buffer, log_weights[-1] + self._is_heard(chains), regret), seen

    def _is_heard(self, chains: LoopState) -> Array:
        """Zero for the chains whose predictions count, minus infinity for replicas above the target."""
        coupling, number = self._parts.coupling, self.agent.num_chains
        recorded = coupling.recorded(coupling.observe(chains.chains.coupling))
        return jnp.zeros(number) if recorded is None else jnp.full(number, -jnp.inf).at[recorded].set(0.0)

    def _keep_up(self, key: Array, state: LoopState, buffer: Buffer, iteration: Array) -> LoopState:
        """Measurements for the coupling, and then refreshes of the estimator, where they are due, on what the buffer holds."""
        parts, chains = self._parts, state.chains

        def measure(chains):
            def of_batch(number):
                batches = self._batches(jax.random.fold_in(key, number + 100), buffer)
                noise = jax.vmap(lambda x: self._noise(jax.random.fold_in(key, number + 100), x))(chains.position)
                one = lambda e, x, m, b, n: parts.estimator.measure(parts.potential, e, x, m, b, n)  # noqa: E731
                return jax.vmap(one)(chains.estimator, chains.position, chains.model_state, batches, noise)

            energies, priors = lax.map(of_batch, jnp.arange(parts.coupling.num_measured))
            readings = read(parts, energies, priors, iteration)
            return chains._replace(coupling=parts.coupling.calibrate(chains.coupling, readings))

        def refresh(chains):
            feed = (buffer.contexts, buffer.taken), jnp.minimum(buffer.num_seen, self.settings.capacity)
            batch_of = functools.partial(numbered_batch, parts, feed)

            def one(estimator, position, model_state):
                full = parts.potential.full_energy(position, model_state, feed)
                return parts.estimator.refresh(parts.potential, estimator, position, model_state, full, batch_of)

            return chains._replace(estimator=jax.vmap(one)(chains.estimator, chains.position, chains.model_state))

        for every, work in ((parts.coupling.measure_every, measure), (parts.estimator.refresh_every, refresh)):
            if every is not None:
                chains = lax.cond(iteration % every == 0, work, lambda same: same, chains)
        return dataclasses.replace(state, chains=chains)

    def _noise(self, key: Array, position: Any) -> Any:
        words = jax.random.key_data(key)
        drawn = self.potential.draw(words, words, jnp.zeros(1, jnp.int32), position)
        return jax.tree.map(lambda leaf: leaf[0], drawn)

    @functools.cached_property
    def _parts(self) -> Parts:
        return self.agent.sampler.parts(self.potential)

    def _act(self, key: Array, carry: Carry, contexts: Array) -> Array:
        key_mask, key_chain, key_random, key_choice = jax.random.split(key, 4)
        number, pulls = self.agent.num_chains, len(contexts)
        masks = self.agent.num_masks if self.agent.dropout > 0 else 1

        def predict(weights, own):
            if self.agent.dropout == 0:
                return self.potential.outputs(weights, contexts)
            each = jax.vmap(lambda k: self.potential.outputs(weights, contexts, key=k))
            return jnp.mean(each(jax.random.split(own, masks)), axis=0)

        predicted = jax.vmap(predict)(carry.chains.position, jax.random.split(key_mask, number))
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

    def _batches(self, key: Array, buffer: Buffer) -> Batch:
        """A batch for every chain, without replacement, from as many pulls as there are by now."""
        number = jnp.minimum(buffer.num_seen, self.settings.capacity)
        # A control variate compares batches with a pass over what is there.
        is_full = self.settings.is_full and self._parts.estimator.refresh_every is None
        counted = jnp.asarray(self.settings.capacity) if is_full else number

        def of_chain(own):
            places, weights = self.potential.places(jax.random.key_data(own), jnp.zeros((), jnp.int32), number)
            return Batch((buffer.contexts[places], buffer.taken[places]), weights, counted)

        return jax.vmap(of_chain)(jax.random.split(key, self.agent.num_chains))


def chosen_error(outputs: Array, taken: Array) -> Array:
    """The squared error of the predicted reward of the action that was taken; `taken` holds (action, reward)."""
    predicted = jnp.take_along_axis(outputs, taken[:, :1].astype(jnp.int32), axis=1)[:, 0]
    return (predicted - taken[:, 1]) ** 2


def make_potential(environment: Environment, agent: Agent, settings: Settings) -> NetworkPotential:
    """The potential of an agent's networks; its data are the buffer, which comes with every batch."""
    from isotherm.models import MLP

    data = np.zeros((settings.capacity, environment.num_features), np.float32), np.zeros((settings.capacity, 2))
    return from_nnx(
        functools.partial(_network, MLP, environment, agent, settings),
        chosen_error,
        data,
        batch_size=settings.batch_size,
        weight_decay=settings.weight_decay,
        is_prior_read=False,
        dropout="on" if agent.dropout > 0 else "off",
        batching="independent",
        is_batch_shared=False,
    )


def _network(kind: Any, environment: Environment, agent: Agent, settings: Settings, rngs: Any) -> Any:
    sizes = environment.num_features, settings.hidden, environment.num_actions
    return kind(*sizes, dropout=agent.dropout, rngs=rngs)
