"""A partition from pilot runs, at the sampler's temperature and at ten times that."""

import dataclasses
from typing import Any

import jax
import numpy as np

from isotherm.contour.partition import FoundPartition, PartitionSearch
from isotherm.driver.divergence import remedy_for
from isotherm.driver.settings import Settings
from isotherm.foundation.errors import DivergenceError
from isotherm.foundation.schedules import Scaled
from isotherm.pilots.watch import has_diverged, watch
from isotherm.potentials.potential import Potential
from isotherm.samplers.sampler import Choice, Specification

_HOT = 10.0
# A pilot is lengthened, at most by this factor, while energies fall by more than this share of their spread.
_MAX_LENGTHENING, _MAX_FALL = 8, 0.3


def find_partition(
    potential: Potential, specification: Specification, settings: Settings, position: Any, progress: bool | None
) -> tuple[FoundPartition, Choice]:
    """The partition, the noise of energies, and a histogram to start from."""
    search = specification.search
    assert isinstance(search, PartitionSearch)
    sampler, num_steps = dataclasses.replace(specification.plain, name="partition"), search.num_steps
    starts = jax.tree.map(lambda leaf: leaf[0], position)
    temperatures = [Scaled(factor, sampler.temperature) for factor in (1.0, _HOT)]
    while True:
        thinning, mode = max(num_steps // 1000, 1), settings.chain_mode
        pilot = Settings(num_steps, settings.num_chains, seed=settings.seed, thinning=thinning, chain_mode=mode)
        runs = watch(potential, sampler, temperatures, pilot, starts, progress)
        if np.all(has_diverged(runs[0])):
            message = f"Every chain of the pilot diverged (energy not finite) within its {num_steps:,} iterations. "
            raise DivergenceError(message + remedy_for(potential))
        cold, hot = (np.asarray(run.observed["energies"])[:, 1:].T for run in runs)
        if not _drifts(cold) or num_steps >= search.num_steps * _MAX_LENGTHENING:
            break
        num_steps *= 2
    noise = float(np.sqrt(np.mean(runs[0].stats["variance"])))
    # Leave out chains that diverge later.
    cold, hot = (each[:, np.isfinite(each[-1])] for each in (cold, hot))
    found = search.fit(cold[np.isfinite(cold)], hot[np.isfinite(hot)], noise)
    bins = found.partition
    reason = (
        f"Energies of pilots of {num_steps:,} iterations at the sampler's temperature and at {_HOT:g} times that: "
        f"{bins.num_bins} bins of width {bins.width:.4g} from {bins.low:.6g}; standard deviation of the noise {noise:.3g}."
    )
    return found, Choice("partition", found.as_json(), reason)


def _drifts(energies: np.ndarray) -> bool:
    """Whether the last quarter of energies (time, chain) is lower than the one before it, by more than chance allows."""
    # In double precision: energies of diverging chains overflow sums.
    energies = np.asarray(energies[:, np.isfinite(energies[-1])], np.float64)
    quarter = len(energies) // 4
    early, late = (np.nanmean(part, axis=0) for part in (energies[-2 * quarter : -quarter], energies[-quarter:]))
    spread = float(np.nanstd(energies[-quarter:]))
    fallen = float(np.nanmean(early - late))
    return bool(np.isfinite(fallen) and fallen > _MAX_FALL * spread)
