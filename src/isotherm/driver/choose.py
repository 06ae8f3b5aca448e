"""What a sampler decides of the settings of its runs, the number of chains and of ladders, and a potential of its records."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from isotherm.driver.layout import Layout
from isotherm.driver.settings import Settings
from isotherm.engine.program import identity
from isotherm.foundation.errors import refuse
from isotherm.foundation.schedules import values_at
from isotherm.foundation.user_functions import call_traced
from isotherm.potentials.potential import Potential
from isotherm.potentials.start import PerChain, start_positions
from isotherm.run.record_times import RecordTimes
from isotherm.samplers.sampler import AnySampler

# Draws at which a scheduled temperature is evaluated.
_MAX_PROBED = 100_000
# Ladders of an exchange sampler, where their number is not given: with one alone nothing would show that it is stuck.
NUM_LADDERS = 2


def settings_of(sampler: AnySampler, init: Any, *, num_chains: int | None, **given: Any) -> Settings:
    """Settings with the number of chains that was asked for, or that the starts or the coupling say.

    Their number of ladders is None for a sampler that records all of its chains.
    """
    if isinstance(init, PerChain) and num_chains is None:
        num_chains = init.number
    settings = Settings(num_chains=sampler.choose_num_chains(num_chains), **given)
    if not sampler.has_ladder(settings.num_chains):
        if settings.num_ladders not in (None, 1):
            remedy = "Give `num_chains`, or `num_runs` for repeats."
            refuse("num_ladders", "left out for a sampler without a ladder", settings.num_ladders, remedy)
        return dataclasses.replace(settings, num_ladders=None)
    return dataclasses.replace(settings, num_ladders=settings.num_ladders or NUM_LADDERS)


def collect_of(collect: Callable[[Any], Any], potential: Potential) -> Callable[[Any], Any]:
    """What to keep of a position of the sampler; `collect` is of one as the user means it."""
    space = potential.space
    if space is None or collect is identity:
        return collect if space is None else space

    @functools.wraps(collect)
    def of_free(position):
        return collect(space(position))

    return of_free


def check_collect(collect: Callable[[Any], Any], potential: Potential, position: Any) -> None:
    """Refuse, before anything is compiled, what cannot be kept of a position, leaves (run, chain, ...)."""
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), position)
    rule = "a function of one position that returns arrays"
    call_traced("collect", rule, jax.eval_shape, collect_of(collect, potential), one)


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
    """Refuse, before any work, what cannot be run."""
    sampler.check(potential, position)
    check_collect(collect, potential, position)
    potential.check_temperature(temperature_of_draws(sampler, settings.record_times(sampler.window)))


def temperature_of_draws(sampler: AnySampler, times: RecordTimes) -> float | None:
    """The temperature at the iterations that are recorded; None where it is not one and the same."""
    if not callable(sampler.temperature):
        return float(sampler.temperature)
    places = np.unique(np.linspace(0, len(times) - 1, min(_MAX_PROBED, len(times))).astype(int))
    found = np.unique(values_at(sampler.temperature, np.asarray(times[places], np.int32)))
    return float(found[0]) if len(found) == 1 else None
