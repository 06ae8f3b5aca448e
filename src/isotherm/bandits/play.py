"""Thompson sampling: pull, remember and update in compiled blocks, for several runs at once.

The buffer of pulls grows inside the program, so that nothing is compiled again.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.bandits.agents import Agent
from isotherm.bandits.environments import Arrivals, Environment
from isotherm.contour.contour import ContourState
from isotherm.foundation.errors import check_integer, check_real, check_type, refuse
from isotherm.foundation.parts import Static, as_arguments
from isotherm.foundation.randomness import seed_key
from isotherm.networks.nnx_modules import from_nnx
from isotherm.networks.potential import NetworkPotential
from isotherm.potentials.batches import Batch
from isotherm.samplers.loop import LoopState, begin
from isotherm.samplers.sampler import Sampler, resolved

_BLOCK = 100
_DTYPE = jnp.float32


@dataclasses.dataclass(frozen=True)
class BanditSettings:
    """Settings of `play`.

    Attributes:
        num_steps: steps of `num_pulls` pulls, each followed by the agent's updates.
        num_pulls: pulls per step.
        num_initial: random pulls before the first step; the agent learns from them, and their regret does not count.
        capacity: size of the buffer, which keeps the last pulls.
        batch_size: examples per update.
        hidden: widths of the networks.
        weight_decay: precision of the prior.
        is_full: whether N in energies is `capacity`, as in the thesis' code, instead of the number of pulls in the buffer. Control
            variates always use the latter.
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
            refuse("num_initial", rule, self.num_initial, "Batches are drawn from the buffer without replacement.")


class Play(NamedTuple):
    """Result of `play`.

    Attributes:
        regret: cumulative regret of R runs after each of K steps, (R, K).
        seconds: time of all steps, without compilation.
        compile_seconds: time of compilation.
        energies: mean energy of the networks at the last update of each step, (R, K).
        multipliers: their mean multiplier, (R, K).
    """

    regret: np.ndarray
    seconds: float
    compile_seconds: float
    energies: np.ndarray
    multipliers: np.ndarray


def play(
    environment: Environment,
    agent: Agent,
    settings: BanditSettings | None = None,
    *,
    num_runs: int = 1,
    seed: int = 0,
    log: Callable[[str], None] | None = None,
) -> Play:
    """Run `agent` in `environment` for `settings.num_steps` steps, in `num_runs` independent runs at once.

    Example:
        >>> from isotherm.bandits import Wheel, psgld_agent
        >>> settings = BanditSettings(num_steps=2, num_initial=64, capacity=64, batch_size=32, hidden=(8,))
        >>> play(Wheel(), psgld_agent(), settings, num_runs=3).regret.shape
        (3, 2)
    """
    remedy = "Write `iso.bandits.play(iso.bandits.Wheel(), iso.bandits.psgld_agent())`, say."
    check_type("environment", environment, Environment, "an environment", remedy)
    check_type("agent", agent, Agent, "an agent", remedy)
    settings = BanditSettings() if settings is None else settings
    check_integer("num_runs", num_runs, 1, "Give independent repeats.")
    loop = Loop(environment, agent, settings, make_potential(environment, agent, settings))
    feed = environment.feed()
    keys = jax.random.split(seed_key(seed), num_runs)
    carry = jax.jit(jax.vmap(loop.begin, (0, None)))(keys, feed)
    began = time.perf_counter()
    advance = jax.jit(jax.vmap(loop.advance, (0, 0, None, None)), donate_argnums=1)
    length = min(_BLOCK, settings.num_steps)
    compiled = advance.lower(keys, carry, feed, jnp.zeros((), jnp.int32)).compile()
    started = time.perf_counter()
    parts = []
    for first in range(0, settings.num_steps, length):
        carry, seen = compiled(keys, carry, feed, jnp.asarray(first, jnp.int32))
        parts.append(jax.tree.map(np.asarray, seen))
        if log is not None and (first // length) % 5 == 0:
            log(f"{agent.name}: step {first + length} of {settings.num_steps}, regret {parts[-1][0][:, -1].mean():.0f}")
    regret, energies, multipliers = (
        np.concatenate(part, axis=1)[:, : settings.num_steps] for part in zip(*parts, strict=True)
    )
    return Play(regret, time.perf_counter() - started, started - began, energies, multipliers)


class Buffer(NamedTuple):
    """The last pulls. `num_seen` counts all so far: the next one is written at num_seen modulo the capacity."""

    contexts: Array
    taken: Array
    num_seen: Array


class PlayState(NamedTuple):
    """State of a run between steps. `acting` are the networks that act, one per chain, with their `log_weights`."""

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
        """State after the random pulls."""
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
        """A block of steps; also regret, mean energy and mean multiplier after each."""

        def step(carry, number):
            return self._step(key, jax.random.fold_in(key, number + 1), carry, feed)

        return lax.scan(step, carry, first + jnp.arange(min(_BLOCK, self.settings.num_steps)))

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

        nothing = jnp.zeros(self.agent.num_chains, _DTYPE)
        loop = (chains, carry.acting, nothing, nothing)
        # A log weight belongs to the position before the move, so that position acts.
        chains, acting, log_weights, energies = lax.fori_loop(0, self.agent.num_updates, update, loop)
        coupling = chains.chains.coupling
        multiplier = jnp.mean(coupling.multiplier) if isinstance(coupling, ContourState) else jnp.ones(())
        return PlayState(chains, acting, log_weights, buffer, regret), (regret, jnp.mean(energies), multiplier)

    def _log_mask(self, chains: LoopState) -> Array:
        """Zero for chains that act, minus infinity for replicas above the target."""
        recorded = self._sampler.coupling.observe(chains.chains.coupling).recorded
        if recorded is None:
            return jnp.zeros(self.agent.num_chains, _DTYPE)
        return jnp.full(self.agent.num_chains, -jnp.inf, _DTYPE).at[recorded].set(0.0)

    def _act(self, key: Array, carry: PlayState, contexts: Array) -> Array:
        key_mask, key_chain, key_random, key_choice = jax.random.split(key, 4)
        number, pulls = self.agent.num_chains, len(contexts)

        def predict(weights, own):
            if self.agent.dropout == 0:
                return self.potential.outputs(weights, contexts)
            each = jax.vmap(lambda k: self.potential.outputs(weights, contexts, key=k))
            return jnp.mean(each(jax.random.split(own, self.agent.num_masks)), axis=0)

        predicted = jax.vmap(predict)(carry.acting, jax.random.split(key_mask, number))
        if self.agent.rule == "average":
            values = jnp.einsum("c,cpa->pa", jax.nn.softmax(carry.log_weights), predicted)
        else:
            chosen = jax.random.categorical(key_chain, carry.log_weights, shape=(pulls,))
            values = predicted[chosen, jnp.arange(pulls)]
        best = jnp.argmax(values, axis=1)
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
    """Squared error of the predicted reward of the chosen action; `taken` holds (action, reward)."""
    predicted = jnp.take_along_axis(outputs, taken[:, :1].astype(jnp.int32), axis=1)[:, 0]
    return (predicted - taken[:, 1]) ** 2


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class BufferPotential(NetworkPotential):
    """Potential of a network whose data are a buffer of pulls. N is `num_counted`, or the number of pulls in the buffer."""

    num_counted: Static[int | None] = None

    def holding(self, buffer: Buffer) -> "BufferPotential":
        """The potential with the contents of `buffer`."""
        number = jnp.minimum(buffer.num_seen, len(buffer.contexts))
        network = self.network.replace_unchecked(init=None)
        return self.replace_unchecked(data=(buffer.contexts, buffer.taken), num_used=number, network=network)

    def batch(self, key: Array, iteration: Array) -> Batch:
        found = super().batch(key, iteration)
        return found if self.num_counted is None else found._replace(num_data=jnp.asarray(self.num_counted))


def make_potential(environment: Environment, agent: Agent, settings: BanditSettings) -> BufferPotential:
    """Potential of an agent's networks."""
    from isotherm.networks import MLP

    def network(rngs: Any) -> Any:
        sizes = environment.num_features, settings.hidden, environment.num_actions
        return MLP(*sizes, dropout=agent.dropout, rngs=rngs)

    potential = from_nnx(
        network,
        chosen_error,
        (np.zeros((settings.capacity, environment.num_features), np.float32), np.zeros((settings.capacity, 2))),
        batch_size=settings.batch_size,
        weight_decay=settings.weight_decay,
        coupling_includes_prior=False,
        dropout="on" if agent.dropout > 0 else "off",
        batching="independent",
        is_batch_shared=False,
    )
    # A control variate compares batches with a pass over the whole buffer.
    is_full = settings.is_full and not resolved(agent.sampler).estimator.periodic()
    counted = BufferPotential(**vars(potential), num_counted=settings.capacity if is_full else None)
    return as_arguments(counted, _DTYPE)
