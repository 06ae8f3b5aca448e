"""Checks on the distribution of the draws, which limit every estimate."""

from collections.abc import Iterator

import jax
import numpy as np

from isotherm.diagnostics.bias_checks import contradicts
from isotherm.diagnostics.wells import separate
from isotherm.foundation import checks
from isotherm.foundation.checks import Check
from isotherm.foundation.positions import columns
from isotherm.run.bias import Bias
from isotherm.run.estimates import Estimate
from isotherm.run.run import Run

# Coordinates of particles that are searched for wells.
_MAX_COORDINATES = 64
# Coordinates of each leaf that are compared between cycles, and the fewest draws of a cycle.
_MAX_OF_LEAF, _MIN_DRAWS = 5, 4


def distribution_checks(run: Run) -> list[Check]:
    """See `Run.distribution_checks`."""
    own = [check for check in run.part_checks if check.affects_estimates]
    return [*own, *_temperature(run), *_cycles(run), *_particles(run), *_positions(run), *_energies(run)]


def with_checks(run: Run, estimate: Estimate, bias: Bias | None) -> Estimate:
    """An estimate with its own checks and those of the distribution and the bias."""
    found = list(estimate.checks)
    if not run.claims_distribution:
        text = "The sampler follows no distribution: means of its draws are not expectations and have no valid error."
        return estimate._replace(checks=(*found, checks.NO_DISTRIBUTION.found(text)))
    if not run.has_died:
        found += run.distribution_checks
    if run.is_adjusted:
        none = jax.tree.map(lambda leaf: np.zeros_like(np.asarray(leaf, float)), estimate.mean)
        estimate = estimate._replace(bias=none, bias_error=none)
    elif bias is not None and contradicts(bias):
        text = "Gradients at the draws contradict the temperature: the reported bias does not cover the error."
        found.append(checks.WRONG_TEMPERATURE.found(text, "See `print(run.summary())`."))
    elif any(np.any(np.isnan(leaf)) for leaf in jax.tree.leaves(estimate.bias)):
        text = (
            "The bias is unknown, and intervals contain the standard error alone. It is measured at one temperature, for recorded "
            "positions of up to 64 numbers, with data that fit in memory."
        )
        found.append(checks.UNKNOWN_BIAS.found(text, "Compare with a run at half the step size."))
    return estimate._replace(checks=tuple(found))


def _temperature(run: Run) -> Iterator[Check]:
    if run.config.get("temperature", 1.0) is None:
        text = "The temperature changed between draws: they follow no single distribution."
        yield checks.TEMPERATURE.found(text, "Leave the annealed part out with `burn_in`.")


def _cycles(run: Run) -> Iterator[Check]:
    """Whether cycles are too short to mix."""
    # Selected draws and stopped runs have an array of times.
    window = getattr(run.times, "window", None)
    if window is None or not run.config.get("temperature"):
        return
    cycles, lead = run.iterations // window.cycle_length, run.log_weights.ndim
    leaves = [leaf for leaf in jax.tree.leaves(run.draws) if np.prod(leaf.shape) > 0]
    ratio = max((_ratio_between(_some(leaf, lead), cycles) for leaf in leaves), default=0.0)
    if ratio >= checks.CYCLES.limit:
        text = "Cycles end in different regions and stay there: the weights of modes are those of the descents."
        remedy = "Sample for a larger part of a cycle, with longer steps, or use replica exchange "
        yield checks.CYCLES.found(text, remedy + '(`iso.resgld(step_size, ladder="auto")`).', ratio=ratio)


def _particles(run: Run) -> Iterator[Check]:
    if not run.are_particles or not run.claims_distribution:
        return
    lead = run.log_weights.ndim
    size = sum(int(np.prod(leaf.shape[lead:])) for leaf in jax.tree.leaves(run.draws))
    chosen = np.unique(np.linspace(0, size - 1, min(size, _MAX_COORDINATES)).astype(int))
    last = columns(run.select(slice(-1, None)).draws, lead, chosen).reshape(-1, len(chosen))
    last = last[np.all(np.isfinite(last), axis=1)]
    number = int(np.max(separate(last), initial=0)) + 1
    if number > checks.PARTICLES.limit:
        text = f"Particles lie in {number} wells and do not move between them: the weights of modes are those of the starts."
        remedy = 'Use replica exchange (`iso.resgld(step_size, ladder="auto")`).'
        yield checks.PARTICLES.found(text, remedy, num_wells=number)


def _positions(run: Run) -> Iterator[Check]:
    bias, temperature = run.bias, run.config.get("temperature")
    if bias is None or not temperature:
        return
    noise = np.sqrt(2.0 * bias.step_size * temperature)
    spacings = [
        np.max(np.spacing(np.abs(leaf[np.isfinite(leaf)])), initial=0.0)
        for leaf in jax.tree.leaves(bias.draws)
        if leaf.dtype in (np.float32, np.float64) and leaf.size
    ]
    spacing = max(spacings, default=0.0)
    if spacing >= checks.POSITION_ROUNDING.limit * noise:
        text = f"Positions are rounded to {spacing:.2g}, and the noise of a step is {noise:.2g}: much of the gradient is lost."
        remedy = "Center and scale the coordinates, or use double precision (JAX_ENABLE_X64=1)."
        yield checks.POSITION_ROUNDING.found(text, remedy, ratio=spacing / noise)


def _energies(run: Run) -> Iterator[Check]:
    if not ({"num_swaps", "theta"} & set(run.stats) or run.is_adjusted) or run.config.get("temperature") in (None, 0.0):
        return
    energies = np.asarray(run.energies)
    largest = np.max(np.abs(energies[np.isfinite(energies)]), initial=0.0)
    spacing = float(np.spacing(largest.astype(energies.dtype)))
    ratio = spacing / run.temperature
    if ratio >= checks.ENERGY_ROUNDING.limit:
        text = (
            f"Energies near {largest:.3g} are rounded to {spacing:.2g}, or {ratio:.2g} temperatures, which is noise in swaps and "
            f"{'Metropolis tests' if run.is_adjusted else 'weights'}."
        )
        remedy = "Subtract from every example's log likelihood its value at a good position, or use double precision "
        yield checks.ENERGY_ROUNDING.found(text, remedy + "(JAX_ENABLE_X64=1).", temperatures=ratio)


def _some(leaf: np.ndarray, lead: int) -> np.ndarray:
    """The first coordinates of a leaf, (chain, draw, coordinate)."""
    if leaf.ndim > lead:
        leaf = leaf[(..., *(0,) * (leaf.ndim - lead - 1), slice(_MAX_OF_LEAF))]
    found = np.asarray(leaf, np.float64)
    num_draws = found.shape[lead - 1]
    chains = found.reshape(int(np.prod(found.shape[: lead - 1])), num_draws, -1)
    # Diverged chains have a check of their own.
    return chains[np.all(np.isfinite(chains), axis=(1, 2))]


def _ratio_between(values: np.ndarray, cycles: np.ndarray) -> float:
    """The variance of the means of cycles over that within, the largest over coordinates; (chain, draw, coordinate)."""
    groups = [values[:, cycles == cycle] for cycle in np.unique(cycles) if np.sum(cycles == cycle) >= _MIN_DRAWS]
    if not groups or len(groups) * len(values) < 2:
        return 0.0
    means = np.concatenate([group.mean(axis=1) for group in groups])
    within = np.mean(np.concatenate([group.var(axis=1) for group in groups]), axis=0)
    between = means.var(axis=0)
    return float(np.max(np.where(within > 0, between / np.maximum(within, 1e-300), 0.0)))
