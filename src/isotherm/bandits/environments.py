"""Contextual bandits: contexts, rewards of actions, and the expected reward of the best policy."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.foundation.errors import check_real


class Arrivals(NamedTuple):
    """n pulls.

    Attributes:
        contexts: features, (n, d).
        rewards: rewards of all actions, (n, A). The agent observes that of its own action only.
        oracle: expected reward of the best action, (n,).
    """

    contexts: Array
    rewards: Array
    oracle: Array


class Environment:
    """Base class of environments. Their arrays, `feed()`, are an argument of the compiled program.

    Attributes:
        num_features: d.
        num_actions: A.
    """

    num_features: int
    num_actions: int

    def feed(self) -> Any:
        """Arrays for `arrive`."""
        return ()

    def arrive(self, key: Array, num: int, feed: Any) -> Arrivals:
        """`num` contexts with the rewards of all actions, drawn with `key`."""
        raise TypeError(f"{type(self).__name__} must define `arrive`.")


@dataclasses.dataclass(frozen=True, eq=False)
class Wheel(Environment):
    """Points of the unit disc. Action 0 pays a little everywhere; outside a circle one of four others, by quadrant, pays a lot.

    Attributes:
        radius: radius of the circle. Exploration pays more rarely the larger it is.
        rewards: mean reward of action 0, of the others, and of the action that pays a lot.
        deviation: standard deviation of all rewards.

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
