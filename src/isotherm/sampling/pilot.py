"""A short run of the plain sampler before the real one, for couplings that must know the energies first."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.coupling import Independent, Readings
from isotherm.foundation.schedules import as_schedule
from isotherm.kernels.kernel import Move
from isotherm.potentials.potential import Potential
from isotherm.sampling.sampler import Sampler
from isotherm.sampling.settings import Settings
from isotherm.sampling.start import per_chain

_HOT = 10.0


class _Seen(NamedTuple):
    energies: Array
    variance: Array
    num: Array


@dataclasses.dataclass(frozen=True, eq=False)
class _Watching(Independent):
    """Independent chains whose energies, and the variance of these at one position, are noted."""

    measure_every = 100  # pyright: ignore[reportIncompatibleVariableOverride, reportAssignmentType]
    num_measured = 8  # pyright: ignore[reportIncompatibleVariableOverride, reportAssignmentType]

    def init(self, num_chains: int) -> _Seen:
        return _Seen(jnp.zeros(num_chains), jnp.zeros(num_chains), jnp.zeros(num_chains))

    def update(self, state: _Seen, draws: Any, readings: Readings) -> tuple[_Seen, Move]:
        state, move = super().update(state, draws, readings)
        return state._replace(energies=readings.energies.astype(state.energies.dtype)), move

    def observe(self, state: _Seen) -> dict[str, Array]:
        return {"energies": state.energies}

    def calibrate(self, state: _Seen, measured: Readings) -> _Seen:
        # A control variate has no energies before its first refresh.
        variance = jnp.var(measured.energies, axis=0, ddof=1)
        is_known = jnp.isfinite(variance)
        total = state.variance + jnp.where(is_known, variance, 0.0).astype(state.variance.dtype)
        return state._replace(variance=total, num=state.num + is_known)

    def statistics(self, state: _Seen) -> dict[str, Any]:
        return {"variance": state.variance / jnp.maximum(state.num, 1)}


def settle(
    sample: Callable[..., Any], potential: Potential, sampler: Sampler, settings: Settings, position: Any
) -> Sampler:
    """The sampler with a coupling that has seen the pilot it asks for; the sampler itself where it asks for none."""
    coupling: Any = sampler.coupling
    if coupling.pilot_steps is None:
        return sampler
    watching = _Watching()
    found = []
    for factor in (1.0, _HOT):
        temperature = as_schedule(sampler.temperature)
        plain = dataclasses.replace(
            sampler, coupling=watching, window=None, temperature=lambda k, f=factor, t=temperature: f * t(k)
        )
        found.append(
            sample(
                potential,
                plain,
                num_steps=coupling.pilot_steps,
                num_chains=settings.num_chains,
                thinning=max(coupling.pilot_steps // 1000, 1),
                seed=settings.seed,
                init=per_chain(jax.tree.map(lambda leaf: leaf[0], position)),
                chain_mode=settings.chain_mode,
                progress=False,
            )
        )
    cold, hot = (_finite(np.asarray(run.observed["energies"])[0, :, 1:]) for run in found)
    noise = float(np.sqrt(np.mean(found[0].stats["variance"])))
    return dataclasses.replace(sampler, coupling=coupling.settle(cold, hot, noise))


def _finite(energies: np.ndarray) -> np.ndarray:
    return energies[np.isfinite(energies)]
