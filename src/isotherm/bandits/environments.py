"""Where agents act: contexts arrive, an action earns a reward, and the best policy is known to the judge."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import check_real, refuse


class Arrivals(NamedTuple):
    """Contexts of n pulls.

    Attributes:
        contexts: (n, d), what the agent sees.
        rewards: of every action, (n, A), of which the agent learns only the one that it takes.
        oracle: the expected reward of the best action, (n,).
    """

    contexts: Array
    rewards: Array
    oracle: Array


class Environment:
    """Base of environments. Their arrays travel as an argument, `feed()`.

    Attributes:
        num_features: d.
        num_actions: A.
    """

    num_features: int
    num_actions: int

    def feed(self) -> Any:
        """Arrays that `arrive` needs."""
        return ()

    def arrive(self, key: Array, num: int, feed: Any) -> Arrivals:
        """`num` contexts with the rewards of all actions, drawn with `key`."""
        raise TypeError(f"{type(self).__name__} must define `arrive`.")


@dataclasses.dataclass(frozen=True, eq=False)
class Mushrooms(Environment):
    """To eat or not to eat: an edible mushroom earns 5, a poisonous one 5 or -35 with equal chances, leaving it 0.

    The best policy eats the edible ones. Regret is measured against its reward, 5 or 0.

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
            refuse(
                "inputs",
                "features (N, d) with N labels",
                got,
                "Load them with `isotherm_thesis.data.load('mushroom', ...)`.",
            )

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


@dataclasses.dataclass(frozen=True, eq=False)
class Wheel(Environment):
    """Points of the unit disc. Action 0 earns a little everywhere; outside a circle one of four others, by quadrant, earns much.

    Attributes:
        radius: of the circle: the larger, the rarer is a context in which exploration pays.
        rewards: means of action 0, of the other actions, and of the right one in the right place.
        deviation: of all rewards.

    Reference:
        Riquelme et al. 2018, section 5.4.
    """

    radius: float = 0.5
    rewards: tuple[float, float, float] = (1.2, 1.0, 50.0)
    deviation: float = 0.01

    num_features = 2
    num_actions = 5

    def __post_init__(self):
        check_real("radius", self.radius, "Give a radius inside the unit disc.", above=0.0, below=1.0)
        check_real("deviation", self.deviation, "Give a standard deviation.", minimum=0.0)

    def arrive(self, key: Array, num: int, feed: Any) -> Arrivals:
        key_radius, key_angle, key_noise = jax.random.split(key, 3)
        radius = jnp.sqrt(jax.random.uniform(key_radius, (num,)))
        angle = 2 * jnp.pi * jax.random.uniform(key_angle, (num,))
        contexts = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=1)
        little, other, much = self.rewards
        means = jnp.full((num, 5), other).at[:, 0].set(little)
        right = 1 + jnp.floor(angle / (jnp.pi / 2)).astype(jnp.int32) % 4
        is_far = radius > self.radius
        means = means.at[jnp.arange(num), right].set(jnp.where(is_far, much, other))
        noise = self.deviation * jax.random.normal(key_noise, means.shape)
        return Arrivals(contexts, means + noise, jnp.max(means, axis=1))
