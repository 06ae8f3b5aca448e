"""A short run of the plain sampler before the real one, for couplings that must know the energies first."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.coupling import CouplingInputs, Independent, Observed, Pilot, measured_variance
from isotherm.foundation.periodic import Periodic
from isotherm.foundation.schedules import Scaled
from isotherm.kernels.kernel import Move
from isotherm.potentials.potential import Potential
from isotherm.sampling.drive import Host, Reached, drive
from isotherm.sampling.layout import Layout
from isotherm.sampling.prepare import prepare
from isotherm.sampling.sampler import Sampler
from isotherm.sampling.settings import Settings

_HOT = 10.0
_MEASURE_EVERY, _NUM_MEASURED = 100, 8


class _Seen(NamedTuple):
    energies: Array
    variance: Array
    num: Array


@dataclasses.dataclass(frozen=True, eq=False)
class _Watching(Independent):
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
        return state._replace(variance=total, num=state.num + is_known)

    def statistics(self, state: _Seen) -> dict[str, Any]:
        return {"variance": state.variance / jnp.maximum(state.num, 1)}


def with_pilot(potential: Potential, sampler: Sampler, settings: Settings, position: Any) -> Sampler:
    """The sampler with a coupling that has seen the pilot it needs; the sampler itself where it needs none."""
    num_steps = sampler.coupling.needs.pilot_steps
    if num_steps is None:
        return sampler
    plain = dataclasses.replace(sampler, coupling=_Watching(), window=None)
    cold, hot = (dataclasses.replace(plain, temperature=Scaled(factor, sampler.temperature)) for factor in (1.0, _HOT))
    own = Settings(
        num_steps,
        settings.num_chains,
        seed=settings.seed,
        thinning=max(num_steps // 1000, 1),
        chain_mode=settings.chain_mode,
    )
    starts = jax.tree.map(lambda leaf: jnp.stack([leaf[0], leaf[0]]), position)
    prepared = prepare(potential, (cold, hot), own, Layout(2, None, None), starts)
    runs = drive(prepared, Host(progress=False), Reached(), 0.0)
    energies = [np.asarray(run.observed["energies"])[:, 1:] for run in runs]
    noise = float(np.sqrt(np.mean(runs[0].stats["variance"])))
    cold_energies, hot_energies = (each[np.isfinite(each)] for each in energies)
    found = Pilot(cold_energies, hot_energies, noise)
    return dataclasses.replace(sampler, coupling=sampler.coupling.with_pilot(found))
