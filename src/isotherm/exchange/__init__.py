"""Replica exchange. Which pairs may swap: `schemes.py`; which of them do: `rules.py`; the swaps themselves: `swaps.py`."""

from isotherm.exchange.exchange import Exchange
from isotherm.exchange.ladder import EquiAcceptance, Ladder, LadderSearch, geometric_ladder
from isotherm.exchange.rules import Corrected, Deterministic, expected_swap_rate
from isotherm.exchange.schemes import (
    Adjacent,
    AllPairs,
    DeterministicEvenOdd,
    StochasticEvenOdd,
    expected_round_trip,
    optimal_window,
)

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
