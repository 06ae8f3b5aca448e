"""A short run of the plain sampler before the real one, for couplings that must know the energies first."""

import dataclasses
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.coupling import CouplingInputs, Independent, Observed, Pilot, measured_variance
from isotherm.driver.divergence import remedy_for
from isotherm.driver.drive import Host, Reached, drive
from isotherm.driver.layout import Layout
from isotherm.driver.prepare import prepare
from isotherm.driver.settings import Settings
from isotherm.foundation.errors import DivergenceError, DivergenceWarning
from isotherm.foundation.periodic import Periodic
from isotherm.foundation.schedules import Scaled
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.kernels.kernel import Move
from isotherm.potentials.potential import Potential
from isotherm.samplers.sampler import Sampler

_HOT = 10.0
# A pilot is made longer, at most so many times, while energies fall by more than this share of their spread.
_MOST_PILOTS, _LEAST_FALL = 8, 0.3
_MEASURE_EVERY, _NUM_MEASURED = 100, 8


class _Seen(NamedTuple):
    energies: Array
    variance: Array
    num: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Watching(Independent):
    """Independent chains whose energies, and the variance of these at one position, are noted."""

    def init(self, num_chains: int) -> _Seen:
        return _Seen(jnp.zeros(num_chains), jnp.zeros(num_chains), jnp.zeros(num_chains))

    def update(self, state: _Seen, draws: Any, inputs: CouplingInputs) -> tuple[_Seen, Move]:
        state, move = super().update(state, draws, inputs)
        return state._replace(energies=inputs.energies.astype(state.energies.dtype)), move

    def observe(self, state: _Seen) -> Observed:
        return Observed({"energies": state.energies})

    def periodic(self, is_exact: bool) -> tuple[Periodic, ...]:
        return () if is_exact else (Periodic(_MEASURE_EVERY, self._measured),)

    def _measured(self, state: _Seen, measure: Callable[[int], CouplingInputs]) -> _Seen:
        is_known, variance = measured_variance(measure, _NUM_MEASURED)
        total = state.variance + variance.astype(state.variance.dtype)
        return state._replace(variance=total, num=state.num + is_known.astype(state.num.dtype))

    def statistics(self, state: _Seen) -> dict[str, Any]:
        return {"variance": state.variance / jnp.maximum(state.num, 1)}


@transfers_on_purpose
def with_pilot(potential: Potential, sampler: Sampler, settings: Settings, position: Any) -> Sampler:
    """The sampler with a coupling that has seen the pilot it needs; the sampler itself where it needs none."""
    num_steps = sampler.coupling.needs.pilot_steps
    if num_steps is None:
        return sampler
    plain = dataclasses.replace(sampler, coupling=Watching(), window=None)
    pair = tuple(dataclasses.replace(plain, temperature=Scaled(factor, sampler.temperature)) for factor in (1.0, _HOT))
    starts = jax.tree.map(lambda leaf: np.stack([leaf[0], leaf[0]]), position)
    longest = num_steps * _MOST_PILOTS
    while True:
        found = _watch(potential, pair, settings, starts, num_steps)
        if not _drifts(found.cold) or num_steps >= longest:
            break
        num_steps *= 2
    # Energies of a chain on its way to infinity say nothing of where the others will be.
    cold, hot = (each[:, np.isfinite(each[-1])] for each in (found.cold, found.hot))
    cold, hot = (each[np.isfinite(each)] for each in (cold, hot))
    seen = found._replace(cold=cold, hot=hot)
    return dataclasses.replace(sampler, coupling=sampler.coupling.with_pilot(seen))


def _watch(potential: Potential, pair: tuple[Sampler, ...], settings: Settings, starts: Any, num_steps: int) -> Pilot:
    """Energies (time, chain) of both samplers in a run of so many iterations."""
    began = time.perf_counter()
    own = Settings(
        num_steps,
        settings.num_chains,
        seed=settings.seed,
        thinning=max(num_steps // 1000, 1),
        chain_mode=settings.chain_mode,
    )
    with warnings.catch_warnings():
        # What is said of draws is not meant for a pilot, whose chains may diverge at the higher temperature.
        warnings.simplefilter("ignore", DivergenceWarning)
        runs = drive(
            prepare(potential, pair, own, Layout(2, None, None), starts), Host(progress=False), Reached(), began
        )
    if np.all(np.asarray(runs[0].stats["diverged_at"]) >= 0):
        message = f"Every chain of the pilot diverged (energy not finite) within its {num_steps:,} iterations. "
        raise DivergenceError(message + remedy_for(potential))
    cold, hot = (np.asarray(run.observed["energies"])[:, 1:].T for run in runs)
    return Pilot(cold, hot, float(np.sqrt(np.mean(runs[0].stats["variance"]))))


def _drifts(energies: np.ndarray) -> bool:
    """Whether the last quarter of energies (time, chain) is lower than the one before it, by more than chance allows."""
    # In double precision: energies of chains on their way to infinity overflow sums.
    energies = np.asarray(energies[:, np.isfinite(energies[-1])], np.float64)
    quarter = len(energies) // 4
    early, late = (np.nanmean(part, axis=0) for part in (energies[-2 * quarter : -quarter], energies[-quarter:]))
    spread = float(np.nanstd(energies[-quarter:]))
    fallen = float(np.nanmean(early - late))
    return bool(np.isfinite(fallen) and fallen > _LEAST_FALL * spread)
