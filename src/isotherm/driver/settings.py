"""Settings of a run, checked before any work, and what follows from them, the sampler and the potential."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from isotherm.driver.layout import Layout
from isotherm.engine.chain_mode import CHAIN_MODES
from isotherm.engine.program import identity
from isotherm.engine.sharding import all_devices
from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse, short
from isotherm.foundation.parts import with_python_numbers
from isotherm.foundation.randomness import seed_words
from isotherm.foundation.schedules import CollectionWindow, values_at
from isotherm.foundation.user_functions import call_traced
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import PerChain, start_positions
from isotherm.run.record_times import RecordTimes
from isotherm.samplers.sampler import AnySampler

_MAX_STEPS = np.iinfo(np.int32).max // 2
_MAX_CHAINS = np.iinfo(np.int32).max
# Draws at which a scheduled temperature is evaluated.
_MAX_PROBED = 100_000
ON_DIVERGENCE = ("freeze", "stop", "restart")
# Default number of ladders of an exchange sampler: one ladder alone cannot show that it is stuck.
NUM_LADDERS = 2


@dataclasses.dataclass(frozen=True)
class Settings:
    """See `isotherm.sample`."""

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
    chains_at_once: int | None = None
    block_length: int | None = None
    # Runs of up to so many records share a program.
    room: int = 0
    devices: tuple[Any, ...] | None = None  # None is all of them.
    on_divergence: str = "freeze"  # See `isotherm.sample`.
    num_effective: int | None = None  # Draws at which a run ends; see `diagnostics.precision`.

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
        check_integer("burn_in", self.burn_in, 0, "Give the number of iterations to discard at the start.")
        check_choice("chain_mode", self.chain_mode, ("auto", *CHAIN_MODES))
        if self.chains_at_once is not None:
            check_integer("chains_at_once", self.chains_at_once, 1, "Give the chains that fit into memory.")
            if self.chain_mode not in ("auto", "vmap"):
                remedy = 'Leave it out, or write `chain_mode="vmap"`.'
                refuse("chains_at_once", f'left out with `chain_mode="{self.chain_mode}"`', self.chains_at_once, remedy)
        check_choice("on_divergence", self.on_divergence, ON_DIVERGENCE)
        if self.block_length is not None:
            check_integer("block_length", self.block_length, 1, "Give iterations per block, or None.")
        if self.num_effective is not None:
            check_integer("num_effective", self.num_effective, 1, "Give the effective draws wanted, such as 1_000.")
        number = self.num_chains * (self.num_runs or 1) * (self.num_ladders or 1)
        if number > _MAX_CHAINS:
            names = ("num_chains", "num_runs", "num_ladders")
            largest = max(names, key=lambda name: getattr(self, name) or 1)
            refuse(largest, f"such that there are at most {_MAX_CHAINS} chains in all", number, "Lower it.")
        if not (self.track_best is None or isinstance(self.track_best, bool)):
            refuse("track_best", "True, False or None", short(self.track_best), "Leave it out for the default.")
        if self.num_steps > _MAX_STEPS:
            remedy = "Continue with another run that starts from the last draws: init=iso.per_chain(...)."
            refuse("num_steps", f"at most {_MAX_STEPS}", self.num_steps, remedy)
        if self.thinning > self.num_steps > 1:
            remedy = "Lower it, or take more steps: every `thinning`-th iteration is kept."
            refuse("thinning", f"at most `num_steps`, {self.num_steps}", self.thinning, remedy)
        if self.burn_in >= self.num_steps:
            remedy = "Lower it, or take more steps: draws are collected after burn-in."
            refuse("burn_in", f"below `num_steps`, {self.num_steps}", self.burn_in, remedy)
        if self.target_energy != -np.inf:
            check_real("target_energy", self.target_energy, "Give the energy to reach, or leave it out.")

    def record_times(self, window: CollectionWindow | None) -> RecordTimes:
        """The iterations whose positions are recorded."""
        times = RecordTimes(self.num_steps, self.burn_in, self.thinning, window)
        if len(times) == 0:
            rule = "such that some iteration is collected"
            got = f"burn_in={self.burn_in}, thinning={self.thinning}, num_steps={self.num_steps}"
            got += f", window={window}" if window is not None else ""
            refuse("thinning", rule, got, "Lower `burn_in` or `thinning`, or take more steps.")
        return times

    def lost_at(self, diverged_at: Any) -> np.ndarray:
        """The iterations since which chains are lost, of those of their first divergence; -1 is never."""
        found = np.asarray(diverged_at)
        return np.full_like(found, -1) if self.on_divergence == "restart" else found

    def is_over(self, diverged_at: Any) -> bool:
        """Whether a run ends because of the chains that diverged; -1 is never."""
        is_lost = self.lost_at(diverged_at) >= 0
        return bool(np.any(is_lost) if self.on_divergence == "stop" else np.all(is_lost))

    def seed_words(self) -> np.ndarray:
        """The words of the seed's key."""
        return seed_words(self.seed)

    def as_json(self) -> dict[str, Any]:
        """The settings that a resumed run must share."""
        kept = {name: value for name, value in vars(self).items() if name not in ("block_length", "room", "devices")}
        if self.on_divergence == "freeze":
            del kept["on_divergence"]  # Folders of before it existed have none.
        if not isinstance(self.seed, int):
            high, low = (int(word) for word in self.seed_words())
            kept["seed"] = (high << 32) + low
        return kept


def check_devices(given: Any) -> tuple[Any, ...] | None:
    """Devices from the number of them, or a list; None for all."""
    if given is None:
        return None
    everything = all_devices()
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        if not 1 <= given <= len(everything):
            remedy = "On a CPU, set jax_num_cpu_devices before JAX starts."
            refuse("devices", f"from 1 to {len(everything)}, the number of devices here", given, remedy)
        return tuple(everything[:given])
    listed = tuple(given) if isinstance(given, (list, tuple)) else ()
    if not listed or len(set(listed)) < len(listed) or not all(isinstance(one, jax.Device) for one in listed):
        refuse("devices", "a number, or a list of devices", short(given), "Write `devices=2`, or `jax.devices()[:2]`.")
    return listed


def thread_pool_size() -> int:
    """The size of XLA's thread pool on a CPU, on which the rounding of matrix products depends."""
    return int(os.environ.get("NPROC") or os.cpu_count() or 1)


def settings_of(sampler: AnySampler, init: Any, *, num_chains: int | None, **given: Any) -> Settings:
    """Settings whose number of chains may follow from the starts or the coupling.

    `num_ladders` becomes None for samplers that record all chains.
    """
    if isinstance(init, PerChain) and num_chains is None:
        num_chains = init.number
    settings = Settings(num_chains=sampler.choose_num_chains(num_chains), **given)
    if sampler.has_ladder(settings.num_chains):
        return dataclasses.replace(settings, num_ladders=settings.num_ladders or NUM_LADDERS)
    if settings.num_ladders not in (None, 1):
        remedy = "Give `num_chains`, or `num_runs` for repeats."
        refuse("num_ladders", "left out for a sampler without a ladder", settings.num_ladders, remedy)
    return dataclasses.replace(settings, num_ladders=None)


def collect_of(collect: Callable[[Any], Any], potential: Potential) -> Callable[[Any], Any]:
    """The function that records apply to the sampler's position; `collect` takes a position as users see it."""
    space = potential.space
    if space is None or collect is identity:
        return collect if space is None else space
    return functools.wraps(collect)(lambda position: collect(space(position)))


def starts_of(init: Any, settings: Settings) -> Any:
    """Positions at the start, leaves (run, chain, ...)."""
    layout = Layout(None, settings.num_runs, settings.num_ladders)
    return start_positions(init, settings.seed_words(), layout.run_numbers, settings.num_chains)


def check_run(
    potential: Potential,
    sampler: AnySampler,
    settings: Settings,
    position: Any,
    collect: Callable[[Any], Any] = identity,
) -> None:
    """Refuse, before any work, what cannot be run from positions with leaves (run, chain, ...)."""
    sampler.check(potential, position)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), position)
    rule = "a function of one position that returns arrays"
    call_traced("collect", rule, jax.eval_shape, collect_of(collect, potential), one)
    potential.check_temperature(temperature_of_draws(sampler, settings.record_times(sampler.window)))


def temperature_of_draws(sampler: AnySampler, times: RecordTimes) -> float | None:
    """The temperature of the recorded iterations; None if it varies."""
    if not callable(sampler.temperature):
        return float(sampler.temperature)
    places = np.unique(np.linspace(0, len(times) - 1, min(_MAX_PROBED, len(times))).astype(int))
    found = np.unique(values_at(sampler.temperature, np.asarray(times[places], np.int32)))
    return float(found[0]) if len(found) == 1 else None
