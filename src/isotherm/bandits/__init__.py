"""Contextual bandits: environments, agents that sample networks, and the loop in which they meet."""

from isotherm.bandits.agents import Agent, const_sgd, dropout, eps_greedy, pcsgld_agent, picsgld_agent, psgld_agent
from isotherm.bandits.environments import Environment, Mushrooms, Wheel
from isotherm.bandits.loop import BanditSettings
from isotherm.bandits.play import Play, play

__all__ = [
    "Agent",
    "BanditSettings",
    "Environment",
    "Mushrooms",
    "Play",
    "Wheel",
    "const_sgd",
    "dropout",
    "eps_greedy",
    "pcsgld_agent",
    "picsgld_agent",
    "play",
    "psgld_agent",
]
