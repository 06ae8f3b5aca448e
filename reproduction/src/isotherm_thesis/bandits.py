"""The thesis' bandit: mushrooms, and the agents of its comparison beside `isotherm.bandits.psgld_agent`."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import isotherm as iso
from isotherm.bandits import Agent, Environment
from isotherm.bandits.environments import Arrivals
from isotherm.contour import Partition, RegularizedWeights
from isotherm.foundation.errors import refuse
from isotherm.foundation.schedules import Annealed
from isotherm.kernels import PSGLD
from isotherm.samplers.sampler import AnySampler, Sampler

_PRECONDITIONER: dict[str, Any] = {"decay": 0.99, "regularizer": 1e-3, "gradient_scale": 1 / 512}


@dataclasses.dataclass(frozen=True, eq=False)
class Mushrooms(Environment):
    """Eating an edible mushroom pays 5, a poisonous one 5 or -35 with equal probability; leaving it pays 0.

    The best policy eats the edible ones. Regret is relative to its reward, 5 or 0.

    Attributes:
        inputs: features of the mushrooms, (N, d).
        labels: 1 where poisonous, (N,).

    Reference:
        Deng 2021, section 4.2.5, after Riquelme et al. 2018.
    """

    inputs: Any
    labels: Any

    num_actions = 2

    def __post_init__(self):
        if np.ndim(self.inputs) != 2 or np.shape(self.labels) != np.shape(self.inputs)[:1]:
            got = f"shapes {np.shape(self.inputs)} and {np.shape(self.labels)}"
            remedy = "Load them with `isotherm_thesis.data.load('mushroom', ...)`."
            refuse("inputs", "features (N, d) with N labels", got, remedy)

    @property
    def num_features(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return np.shape(self.inputs)[1]

    def feed(self) -> Any:
        return jnp.asarray(self.inputs, jnp.float32), jnp.asarray(self.labels, jnp.int32)

    def arrive(self, key: Array, num: int, feed: Any) -> Arrivals:
        inputs, labels = feed
        key_who, key_luck = jax.random.split(key)
        who = jax.random.randint(key_who, (num,), 0, len(labels))
        is_poisonous = labels[who] == 1
        is_unlucky = is_poisonous & jax.random.bernoulli(key_luck, 0.5, (num,))
        eaten = jnp.where(is_unlucky, -35.0, 5.0)
        rewards = jnp.stack([eaten, jnp.zeros(num)], axis=1)
        return Arrivals(inputs[who], rewards, jnp.where(is_poisonous, 0.0, 5.0))


def eps_greedy(*, step_size: float = 5e-7, rate: float = 0.999, epsilon: float = 0.003, num_updates: int = 16) -> Agent:
    """RMSprop with a decaying step size, and a random action now and then."""
    sampler = Sampler(PSGLD(**_PRECONDITIONER), Annealed(step_size, 1 / rate, num_updates), 0.0, name="rmsprop")
    return Agent("EpsGreedy", sampler, num_updates=num_updates, epsilon=epsilon)


def const_sgd(*, step_size: float = 1e-6) -> Agent:
    """SGD with a constant step size, whose noise is all the exploration there is."""
    return Agent("ConstSGD", iso.sgd(step_size))


def dropout(*, step_size: float = 1e-6, rate: float = 0.5) -> Agent:
    """SGD with dropout, in action too."""
    return Agent("Dropout", iso.sgd(step_size), dropout=rate)


def picsgld_agent(
    *,
    step_size: float = 3e-7,
    temperature: float = 0.3,
    gain: float = 0.03,
    warm_up: int = 3_200,
    num_bins: int = 100,
    width: float = 10.0,
    zeta: float = 20.0,
    bounds: tuple[float, float] | None = None,
    rule: str = "average",
) -> Agent:
    """Thompson sampling by interacting contour chains with a preconditioner; theta is learned after `warm_up` iterations."""
    sampler = _contour(step_size, temperature, gain, warm_up, num_bins, width, zeta, bounds)
    return Agent("pICSGLD", sampler, rule=rule)


def pcsgld_agent(
    *,
    step_size: float = 5e-8,
    temperature: float = 0.3,
    gain: float = 0.006,
    warm_up: int = 12_800,
    num_bins: int = 100,
    width: float = 10.0,
    zeta: float = 20.0,
    bounds: tuple[float, float] | None = None,
    rule: str = "average",
) -> Agent:
    """One contour chain with four times the iterations."""
    sampler = _contour(step_size, temperature, gain, warm_up, num_bins, width, zeta, bounds)
    return Agent("pCSGLD", sampler, num_chains=1, num_updates=64, rule=rule)


def _contour(step_size, temperature, gain, warm_up, num_bins, width, zeta, bounds) -> AnySampler:
    return iso.picsgld(
        step_size,
        temperature=temperature,
        partition=Partition(width, width, num_bins),
        zeta=zeta,
        **iso.thesis.icsgld(gain=gain, bounds=bounds),
        warm_up=warm_up,
        weight_rule=RegularizedWeights(zeta, 1e-3),
        **_PRECONDITIONER,
    )
