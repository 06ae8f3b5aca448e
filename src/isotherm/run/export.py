"""Runs as ArviZ's DataTree and as a pandas.DataFrame."""

import math
import warnings
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from isotherm.foundation.optional import require
from isotherm.foundation.positions import coordinate_names, leaves_by_name, shapes_of
from isotherm.run.estimates import normalized_weights, systematic_indices

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
    lead = run.log_weights.ndim
    # Add an axis of runs if there is none. NumPy cannot infer -1 for leaves without numbers.
    num_runs = math.prod(run.log_weights.shape[: lead - 2])
    log_weights, energies, draws = jax.tree.map(
        lambda leaf: np.asarray(leaf).reshape(num_runs, *leaf.shape[lead - 2 :]),
        (run.log_weights, run.energies, run.draws),
    )
    is_even = all(np.ptp(weights) == 0 for weights in log_weights)
    if weighted or is_even:
        stats = {"energy": _chains(energies), "log_weight": _chains(log_weights)}
    else:
        chosen = [
            systematic_indices(normalized_weights(weights).reshape(-1), weights.size, seed=number)
            for number, weights in enumerate(log_weights)
        ]
        draws, energies = jax.tree.map(lambda leaf: _choose(leaf, chosen), (draws, energies))
        stats = {"energy": _chains(energies)}
    posterior = {name: _chains(leaf) for name, leaf in leaves_by_name(draws).items() if leaf.size}
    with warnings.catch_warnings():
        # ArviZ suspects swapped axes if there are more chains than draws.
        warnings.filterwarnings("ignore", "More chains")
        return arviz_base.from_dict({"posterior": posterior, "sample_stats": stats})


def _chains(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, *array.shape[2:])


def _choose(leaf: np.ndarray, chosen: list[np.ndarray]) -> np.ndarray:
    flat = leaf.reshape(leaf.shape[0], leaf.shape[1] * leaf.shape[2], *leaf.shape[3:])
    return np.stack([run[index] for run, index in zip(flat, chosen, strict=True)]).reshape(leaf.shape)


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
