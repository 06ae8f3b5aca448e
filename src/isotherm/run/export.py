"""Runs as ArviZ's DataTree and as a pandas.DataFrame."""

import math
import warnings
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from isotherm.foundation.optional import require
from isotherm.foundation.positions import coordinate_names, leaves_by_name, shapes_of
from isotherm.run.estimates import flat, normalized_weights, systematic_indices

if TYPE_CHECKING:
    from isotherm.run.run import Run


def to_arviz(run: "Run", weighted: bool = False) -> Any:
    """ArviZ's DataTree with dimensions (chain, draw); the chains of all runs stand one after another.

    ArviZ's statistics ignore weights. Draws of unequal weight are therefore resampled, systematically and within each run, to as
    many draws of equal weight. Leaves without numbers are left out, because ArviZ's statistics fail on them.

    `arviz_stats.summary(run.to_arviz())` is ArviZ's table. `run.to_arviz().to_netcdf("draws.nc")` writes a file, and needs
    h5netcdf: `pip install "h5netcdf[h5py]"`.

    Args:
        run: the run.
        weighted: whether to pass on the raw draws, with `sample_stats.log_weight`.
    """
    arviz_base = require("arviz_base", "all")
    runs = run.split_runs()
    is_resampled = not weighted and any(np.ptp(np.asarray(one.log_weights)) != 0 for one in runs)

    def records(number, one):
        found = jax.tree.map(np.asarray, (one.draws, one.energies, one.log_weights))
        if not is_resampled:
            return found
        weights = normalized_weights(one.log_weights).reshape(-1)
        chosen = systematic_indices(weights, weights.size, seed=number)
        return jax.tree.map(lambda leaf: flat(leaf, 1)[chosen].reshape(leaf.shape), found)

    each = [records(number, one) for number, one in enumerate(runs)]
    draws, energies, log_weights = jax.tree.map(lambda *leaves: np.concatenate(leaves), *each)
    stats = {"energy": energies} | ({} if is_resampled else {"log_weight": log_weights})
    posterior = {name: leaf for name, leaf in leaves_by_name(draws).items() if leaf.size}
    with warnings.catch_warnings():
        # ArviZ suspects swapped axes if there are more chains than draws.
        warnings.filterwarnings("ignore", "More chains")
        return arviz_base.from_dict({"posterior": posterior, "sample_stats": stats})


def to_dataframe(run: "Run") -> Any:
    """All draws in a pandas.DataFrame, a row for each: chain, draw, coordinates such as `beta[3]`, log_weight and energy.

    With `num_runs` a column `run` comes first. pandas' statistics ignore the weights; `mean`, `std` and `quantile` of the run honor
    them. All draws are read into memory.
    """
    pandas = require("pandas", "all")
    sizes = run.log_weights.shape
    places = np.indices(sizes).reshape(len(sizes), -1)
    columns: dict[str, Any] = dict(zip(("run", "chain", "draw")[-len(sizes) :], places, strict=True))
    number, names = math.prod(sizes), coordinate_names(shapes_of(run.draws, len(sizes)))
    leaves = [np.asarray(leaf).reshape(number, -1) for leaf in jax.tree.leaves(run.draws)]
    columns |= dict(zip(names, (column for leaf in leaves for column in leaf.T), strict=True))
    columns["log_weight"] = np.asarray(run.log_weights).reshape(-1)
    columns["energy"] = np.asarray(run.energies).reshape(-1)
    return pandas.DataFrame(columns)
