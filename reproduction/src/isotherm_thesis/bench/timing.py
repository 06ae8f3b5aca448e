"""Timing of rivals in one process: in turn, several times, medians."""

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One row: units of work per second of both sides; a ratio above 1 means that we are faster."""

    work: str
    peer: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.ours / self.theirs

    def as_json(self) -> dict[str, Any]:
        """With the fixed names of the bench file."""
        return {**dataclasses.asdict(self), "ratio": self.ratio}


def rates(work: float, *rivals: Callable[[], Any], repeats: int = 5) -> list[float]:
    """Work per second of each rival: median over `repeats` rounds, in which the rivals take turns. Compilation is left out."""
    times: list[list[float]] = [[] for _ in rivals]
    for rival in rivals:
        jax.block_until_ready(rival())
    for _ in range(repeats):
        for spent, rival in zip(times, rivals, strict=True):
            tick = time.perf_counter()
            jax.block_until_ready(rival())
            spent.append(time.perf_counter() - tick)
    return [work / statistics.median(spent) for spent in times]
