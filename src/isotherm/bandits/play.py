"""The loop of a bandit around its compiled steps: blocks of them, for several runs at once."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.bandits.agents import Agent
from isotherm.bandits.environments import Environment
from isotherm.bandits.loop import BLOCK, BanditSettings, Loop, make_potential
from isotherm.foundation.errors import check_integer, check_type
from isotherm.foundation.randomness import seed_key


class Play(NamedTuple):
    """What agents earned.

    Attributes:
        regret: cumulative, of every run after each step, (R, K).
        seconds: of all steps, without `compile_seconds`.
        compile_seconds: what the compiler took.
        energies: mean energy of the networks at each step's last update, (R, K).
        multipliers: their mean multiplier there, (R, K).
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
    """Let an agent act for `settings.num_steps` steps, in `num_runs` independent runs at once.

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
    potential = make_potential(environment, agent, settings)
    loop = Loop(environment, agent, settings, potential)
    feed = environment.feed()
    keys = jax.random.split(seed_key(seed), num_runs)
    carry = jax.jit(jax.vmap(loop.begin, (0, None)))(keys, feed)
    began = time.perf_counter()
    advance = jax.jit(jax.vmap(loop.advance, (0, 0, None, None)), donate_argnums=1)
    length = min(BLOCK, settings.num_steps)
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
