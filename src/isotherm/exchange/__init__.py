"""Replica exchange: ladders, schemes, swap rules, adaptation and round trips."""

from isotherm.exchange.adaptation import EquiAcceptance
from isotherm.exchange.exchange import Exchange
from isotherm.exchange.ladder import Ladder, LadderSearch, geometric_ladder
from isotherm.exchange.rules import Corrected, Deterministic, expected_swap_rate
from isotherm.exchange.schemes import Adjacent, AllPairs, DeterministicEvenOdd, StochasticEvenOdd
from isotherm.exchange.windows import expected_round_trip, optimal_window

__all__ = [
    "Adjacent",
    "AllPairs",
    "Corrected",
    "Deterministic",
    "DeterministicEvenOdd",
    "EquiAcceptance",
    "Exchange",
    "Ladder",
    "LadderSearch",
    "StochasticEvenOdd",
    "expected_round_trip",
    "expected_swap_rate",
    "geometric_ladder",
    "optimal_window",
]
