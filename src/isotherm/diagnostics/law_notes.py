"""What is wrong with the distribution of the draws, and so with every estimate from them."""

import jax
import numpy as np

from isotherm.diagnostics.coupling_notes import notes_on_contours, notes_on_exchange
from isotherm.diagnostics.cycle_notes import notes_on_cycles
from isotherm.diagnostics.wells import separate
from isotherm.run.columns import columns
from isotherm.run.run_data import RunData
from isotherm.run.run_estimates import RunEstimates

# Steps of energies above this fraction of the temperature are coarse, and steps of positions above that of a move's noise.
_COARSEST, _COARSEST_POSITION = 0.05, 0.3
# Coordinates of particles that are looked at for wells.
_MAX_COORDINATES = 64


def notes_on_law(run: RunEstimates) -> tuple[str, ...]:
    """Notes on ladders, contours, moves, cycles, particles and rounding."""
    found = [notes_on_exchange(run), notes_on_contours(run), _notes_on_temperature(run), _notes_on_kernels(run)]
    found += [notes_on_cycles(run), _notes_on_particles(run), _notes_on_positions(run), _notes_on_energies(run)]
    return tuple(note for notes in found for note in notes)


def _notes_on_temperature(run: RunData) -> list[str]:
    if run.config.get("temperature", 1.0) is not None:
        return []
    return [
        "The temperature changed while draws were taken, so that they follow no single distribution. Leave the annealed part "
        "out with `burn_in`."
    ]


def _notes_on_kernels(run: RunData) -> list[str]:
    """What is wrong with the moves, in words."""
    frozen_at = run.stats.get("preconditioner_frozen_at")
    if frozen_at is None or not run.claims_distribution or 0 <= np.max(frozen_at) <= run.times[0]:
        return []
    return [
        "The preconditioner went on adapting while draws were taken, so that they do not follow exp(-U / T): spreads may be off by "
        "tens of per cent. Pass freeze_after=BURN_IN to the sampler, and burn_in=BURN_IN to `sample`."
    ]


def _notes_on_particles(run: RunData) -> list[str]:
    """Whether particles lie in several wells, whose shares they do not settle."""
    if not run.are_particles or not run.claims_distribution:
        return []
    size = sum(int(np.prod(leaf.shape[run.log_weights.ndim :])) for leaf in jax.tree.leaves(run.draws))
    chosen = np.unique(np.linspace(0, size - 1, min(size, _MAX_COORDINATES)).astype(int))
    last = columns(run.select(slice(-1, None)).draws, run.log_weights.ndim, chosen).reshape(-1, len(chosen))
    last = last[np.all(np.isfinite(last), axis=1)]
    number = int(np.max(separate(last), initial=0)) + 1
    if number == 1:
        return []
    return [
        f"Particles lie in {number} wells that are far apart, and repel one another too little to move between them: the masses of "
        'modes are those of their starts. Use replica exchange (`iso.resgld(step_size, ladder="auto")`).'
    ]


def _notes_on_positions(run: RunEstimates) -> list[str]:
    bias, temperature = run.bias, run.config.get("temperature")
    if bias is None or not temperature:
        return []
    noise = np.sqrt(2.0 * bias.step_size * temperature)
    spacings = [
        np.max(np.spacing(np.abs(leaf[np.isfinite(leaf)])), initial=0.0)
        for leaf in jax.tree.leaves(bias.draws)
        if leaf.dtype in (np.float32, np.float64) and leaf.size
    ]
    if max(spacings, default=0.0) < _COARSEST_POSITION * noise:
        return []
    return [
        f"Positions are stored in steps of {max(spacings):.2g}, and the noise of a move is {noise:.2g}: much of what gradients do "
        "is rounded away. Center and scale the coordinates, or use double precision (JAX_ENABLE_X64=1)."
    ]


def _notes_on_energies(run: RunEstimates) -> list[str]:
    """Whether energies are too large for their type, where swaps or weights depend on them."""
    if not {"num_swaps", "theta"} & set(run.stats) or run.config.get("temperature") in (None, 0.0):
        return []
    energies = np.asarray(run.energies)
    largest = np.max(np.abs(energies[np.isfinite(energies)]), initial=0.0)
    spacing = float(np.spacing(largest.astype(energies.dtype)))
    if spacing < _COARSEST * run.temperature:
        return []
    return [
        f"Energies near {largest:.3g} are stored in steps of {spacing:.2g}, which is {spacing / run.temperature:.2g} temperatures: "
        "swaps and weights see rounding as noise. Subtract from the log likelihood of every example its value at a good position, "
        "or use double precision (JAX_ENABLE_X64=1)."
    ]
