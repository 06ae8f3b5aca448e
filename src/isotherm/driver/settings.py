"""The settings of a run, checked before any work."""

import dataclasses
import os
from typing import Any

import numpy as np

from isotherm.engine.chain_mode import CHAIN_MODES
from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse
from isotherm.foundation.parts import with_python_numbers
from isotherm.foundation.randomness import seed_words
from isotherm.foundation.schedules import CollectionWindow
from isotherm.run.record_times import RecordTimes

_NEVER = np.iinfo(np.int32).max


@dataclasses.dataclass(frozen=True)
class Settings:
    """How long, how often and from which seed; see `isotherm.sample`."""

    num_steps: int
    num_chains: int = 1
    num_runs: int | None = None
    num_ladders: int | None = None
    seed: Any = 0
    thinning: int = 1
    burn_in: int = 0
    target_energy: float = -np.inf
    track_best: bool | None = None
    chain_mode: str = "auto"
    block_length: int | None = None

    def __post_init__(self):
        with_python_numbers(self)
        check_integer("num_steps", self.num_steps, 1, "Give the number of iterations.")
        check_integer("num_chains", self.num_chains, 1, "Give the number of chains in a run.")
        if self.num_runs is not None:
            check_integer("num_runs", self.num_runs, 1, "Give the number of independent repeats.")
        if self.num_ladders is not None:
            check_integer("num_ladders", self.num_ladders, 1, "Give the number of independent ladders.")
        seed_words(self.seed)
        check_integer("thinning", self.thinning, 1, "Give the iterations between two draws; 1 keeps all.")
        check_integer("burn_in", self.burn_in, 0, "Give the number of iterations to leave out at the start.")
        check_choice("chain_mode", self.chain_mode, ("auto", *CHAIN_MODES))
        if self.block_length is not None:
            check_integer("block_length", self.block_length, 1, "Give iterations per block, or None.")
        if self.num_steps > _NEVER // 2:
            remedy = "Go on with another run that starts from the last draws: init=iso.per_chain(...)."
            refuse("num_steps", f"at most {_NEVER // 2}", self.num_steps, remedy)
        if self.thinning > self.num_steps > 1:
            remedy = "Draws are that many iterations apart: lower it, or take more steps."
            refuse("thinning", f"at most `num_steps`, {self.num_steps}", self.thinning, remedy)
        if self.burn_in >= self.num_steps:
            remedy = (
                "Iterations before it are left out, and some must be left to draw from: lower it, or take more steps."
            )
            refuse("burn_in", f"below `num_steps`, {self.num_steps}", self.burn_in, remedy)
        if self.target_energy != -np.inf:
            check_real("target_energy", self.target_energy, "Give the energy to reach, or leave it out.")

    def record_times(self, window: CollectionWindow | None) -> RecordTimes:
        """The iterations whose positions are kept."""
        times = RecordTimes(self.num_steps, self.burn_in, self.thinning, window)
        if len(times) == 0:
            rule = "such that some iteration is collected"
            got = f"burn_in={self.burn_in}, thinning={self.thinning}, num_steps={self.num_steps}"
            got += f", window={window}" if window is not None else ""
            refuse("thinning", rule, got, "Lower `burn_in` or `thinning`, or take more steps.")
        return times

    def seed_words(self) -> np.ndarray:
        """The words of the key that every stream is folded from."""
        return seed_words(self.seed)

    def as_json(self) -> dict[str, Any]:
        """What must be the same when a run is resumed."""
        kept = {name: value for name, value in vars(self).items() if name != "block_length"}
        if not isinstance(self.seed, int):
            high, low = (int(word) for word in self.seed_words())
            kept["seed"] = (high << 32) + low
        return kept


def thread_pool_size() -> int:
    """The size of XLA's thread pool on a CPU, on which the rounding of matrix products depends."""
    return int(os.environ.get("NPROC") or os.cpu_count() or 1)
