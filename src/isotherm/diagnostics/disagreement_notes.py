"""Chains that disagree: what may help them, and whether anything holds them."""

import jax
import numpy as np

from isotherm.run.columns import columns
from isotherm.run.described import is_a
from isotherm.run.estimates import Estimate
from isotherm.run.run_data import RunData
from isotherm.run.standard_errors import DISAGREEMENT

# R-hat above this is that of chains which hardly overlap.
_APART = 2.0
# Draws of a chain that are looked at, and the fewest that tell anything.
_MOST_DRAWS, _FEWEST_DRAWS = 400, 16
# How much farther from its start a chain is in the second half of a run than in the first, and in the last quarter than in the
# one before. Where nothing holds a chain it is 1.8 times as far, and 1.2 times.
_LEAST_GROWTH, _LEAST_LATE_GROWTH = 1.4, 1.02

# What may have been passed in the place of what was meant, and how it is said.
_SIGNS = {
    "EnergyPotential": ("a log density", "iso.from_log_density(log_density)"),
    "LogDensityPotential": ("an energy", "iso.from_energy(energy)"),
}


def notes_on_disagreement(run: RunData, judged: np.ndarray, found: Estimate) -> list[str]:
    """What may help chains that have not arrived, or that stay apart: not longer runs, and not what the run does already.

    `found` are means of coordinates, and `judged` the places of these in a flat position.
    """
    if not found.notes or "num_swaps" in run.stats or not run.config.get("temperature"):
        return []
    disagrees = any(note.startswith(DISAGREEMENT) for note in found.notes)
    if disagrees and _has_hidden_units(run):
        return [
            "Units of a network can change places without a change of what it predicts, so that chains may disagree on weights "
            "and agree on all predictions: compare these, with `predictive.predict`, before running longer."
        ]
    escaping = _notes_on_escape(run, judged)
    if escaping or not disagrees or np.nanmax(found.r_hat) < _APART:
        return escaping
    return [
        "Chains stay in regions of their own, which a longer run seldom cures: if barriers between modes part them, replica "
        'exchange may cross these (`iso.resgld(step_size, ladder="auto")`).'
    ]


def _has_hidden_units(run: RunData) -> bool:
    """Whether the position is the weights of a network of two layers or more."""
    lead = run.log_weights.ndim
    kernels = [leaf for leaf in jax.tree.leaves(run.draws) if len(leaf.shape) - lead > 1]
    return run.is_network and len(kernels) > 1


def _notes_on_escape(run: RunData, coordinates: np.ndarray) -> list[str]:
    """Whether chains go on moving away from where they started, to lower energies, in some coordinates of a flat position."""
    if run.num_draws < _FEWEST_DRAWS:
        return []
    some = run.select(np.unique(np.linspace(0, run.num_draws - 1, _MOST_DRAWS).astype(int)))
    flat = columns(some.draws, some.log_weights.ndim, coordinates)
    distance = np.linalg.norm(flat - flat[..., :1, :], axis=-1)
    parts = [part.mean() for part in np.array_split(distance, 4, axis=-1)]
    energies = [part.mean() for part in np.array_split(np.asarray(some.energies, float), 4, axis=-1)]
    grows = parts[2] + parts[3] > _LEAST_GROWTH * (parts[0] + parts[1]) and parts[3] > _LEAST_LATE_GROWTH * parts[2]
    if not grows or energies[3] > energies[0]:
        return []
    given = next((words for name, words in _SIGNS.items() if is_a(run.described_potential, name)), None)
    sign = "" if given is None else f" If you passed {given[0]}, whose sign is the other one, write `{given[1]}`."
    return [
        "Chains are still moving away from where they started, to lower energies: the run is too short for its step size, or "
        f"nothing holds them.{sign} Angles wander over their periods: give them a box, such as `box=(-jnp.pi, jnp.pi)`."
    ]
