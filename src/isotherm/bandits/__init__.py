"""Contextual bandits: environments, agents that sample networks, and Thompson sampling."""

from typing import TYPE_CHECKING

from isotherm.bandits.agents import Agent, psgld_agent
from isotherm.bandits.environments import Environment, Wheel
from isotherm.bandits.play import BanditSettings, Play, play
from isotherm.foundation.moved import moved

__all__ = ["Agent", "BanditSettings", "Environment", "Play", "Wheel", "play", "psgld_agent"]

if not TYPE_CHECKING:
    _NAMES = ("Mushrooms", "const_sgd", "dropout", "eps_greedy", "pcsgld_agent", "picsgld_agent")
    __getattr__ = moved(__name__, dict.fromkeys(_NAMES, "isotherm_thesis.bandits"), "isotherm-thesis")
