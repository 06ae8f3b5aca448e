"""Pilot runs: plain chains at several temperatures, with their energies."""

import dataclasses
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.coupling import CouplingInputs, Independent, Observed, measured_variance
from isotherm.driver.drive import HostOptions, ResumePoint, drive
from isotherm.driver.layout import Layout
from isotherm.driver.prepare import prepare
from isotherm.driver.settings import Settings
from isotherm.foundation.errors import DivergenceWarning
from isotherm.foundation.periodic import Periodic
from isotherm.kernels import Move
from isotherm.potentials.potential import Potential
from isotherm.run.run import Run
from isotherm.samplers.sampler import Sampler

_MEASURE_EVERY, _NUM_MEASURED = 100, 8


class _Seen(NamedTuple):
    energies: Array
    variance: Array
    num: Array


@dataclasses.dataclass(frozen=True, eq=False)
class _Watched(Independent):
    """Independent chains that record the energies for couplings, and their variance at one position."""

    def init(self, num_chains: int) -> _Seen:
        return _Seen(jnp.zeros(num_chains), jnp.zeros(num_chains), jnp.zeros(num_chains))

    def update(self, state: _Seen, random_numbers: Any, inputs: CouplingInputs) -> tuple[_Seen, Move]:
        state, move = super().update(state, random_numbers, inputs)
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


def watch(
    potential: Potential,
    sampler: Sampler,
    temperatures: list[Any],
    settings: Settings,
    starts: Any,
    progress: bool | None,
) -> list[Run]:
    """Runs of plain chains from `starts`, leaves (chain, ...), one run for each temperature or schedule, as one program.

    Chains may diverge at temperatures that are too high for the step size.
    """
    began = time.perf_counter()
    plain = dataclasses.replace(sampler, coupling=_Watched(), window=None)
    samplers = [dataclasses.replace(plain, temperature=temperature) for temperature in temperatures]
    position = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (len(samplers), *np.shape(leaf))), starts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        prepared = prepare(potential, samplers, settings, Layout(len(samplers), None, None), position)
        return drive(prepared, HostOptions(progress=progress), ResumePoint(), began)


def has_diverged(run: Run) -> np.ndarray:
    """Which chains of a pilot diverged."""
    return np.asarray(run.stats["diverged_at"]) >= 0
