"""Runs as a pandas.DataFrame."""

import math
from typing import Any

import jax
import numpy as np

from isotherm.foundation.optional import require
from isotherm.run.names import coordinate_names, shapes_of
from isotherm.run.run_data import RunData


def to_dataframe(run: RunData) -> Any:
    """See `Run.to_dataframe`."""
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
