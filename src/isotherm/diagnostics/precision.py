"""How many effective draws a run has: of every coordinate, of the energy, and of the masses of the wells that it met."""

from typing import Any

import jax
import numpy as np

from isotherm.diagnostics.wells import separate
from isotherm.foundation.positions import columns
from isotherm.run.estimates import errors_over

# Coordinates that are judged; draws of which wells are made, as a multiple of those wanted, and at least.
_MAX_JUDGED, _DRAWS_PER_WANTED, _MIN_DRAWS = 1_000, 4, 20_000
# The first count of draws at which a run is judged, and the ratio of a count to the one before.
_FIRST, _GROWTH = 128, 1.4


def next_look(num_draws: int) -> int:
    """The first count of draws above `num_draws` at which a run is judged."""
    count = _FIRST
    while count <= num_draws:
        count = int(_GROWTH * count)
    return count


def is_look(num_draws: int) -> bool:
    """Whether a run is judged at this count of draws."""
    return num_draws > 0 and next_look(num_draws - 1) == num_draws


def fewest_effective(draws: Any, energies: np.ndarray, log_weights: np.ndarray, wanted: int) -> float:
    """The fewest effective draws, of leaves (chain, draw, ...); 0 where an error is unknown.

    The values of a constant have no error, and are left out.
    """
    size = sum(int(np.prod(leaf.shape[2:])) for leaf in jax.tree.leaves(draws))
    places = np.unique(np.linspace(0, size - 1, min(size, _MAX_JUDGED)).astype(int))
    fewest = _fewest({"x": columns(draws, 2, places), "energy": np.asarray(energies, np.float64)}, log_weights)
    every = max(log_weights.size // max(_DRAWS_PER_WANTED * wanted, _MIN_DRAWS), 1)
    values = columns(jax.tree.map(lambda leaf: leaf[:, ::every], draws), 2, places)
    wells = separate(values.reshape(-1, values.shape[-1])).reshape(values.shape[:2])
    if np.ptp(wells) == 0:
        return fewest
    indicators = (wells[..., None] == np.unique(wells)).astype(np.float64)
    return min(fewest, _fewest({"wells": indicators}, np.asarray(log_weights)[:, ::every]))


def _fewest(values: dict[str, np.ndarray], log_weights: np.ndarray) -> float:
    rows = lambda piece: np.concatenate([leaf.reshape(len(leaf), -1) for leaf in piece.values()], axis=1)  # noqa: E731
    found = errors_over(rows, values, np.asarray(log_weights), False)
    effective = np.where(np.isfinite(found.std_error), found.effective_draws, 0.0)
    return float(np.min(np.where(found.is_constant, np.inf, effective), initial=np.inf))
