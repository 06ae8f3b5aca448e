"""The prior's part of the energies of a run."""

from typing import Any

import jax
import numpy as np

from isotherm.run.run import Run


def prior_energies(potential: Any, run: Run) -> np.ndarray:
    """The prior's energies of all draws, shape (P, S): what is left of `run.energies` without them is the loss of the data."""
    draws = jax.tree.map(np.asarray, run.draws)
    return np.asarray(jax.vmap(jax.vmap(potential.prior_energy))(draws))
