"""Errors and warnings about chains that diverged."""

import warnings
from typing import NoReturn

import jax
import numpy as np

from isotherm.foundation.errors import DivergenceError, DivergenceWarning, refuse
from isotherm.potentials.potential import Potential, innermost

_REMEDY = (
    "Lower `step_size`. If the energy is not finite in places (a wall, a logarithm of a negative number), no step is small enough: "
    "keep chains away with `box=(low, high)`, or give the energy a finite value there. If you passed a log density, whose sign is "
    "the opposite, write `iso.from_log_density(log_density)`."
)
_REMEDY_FOR_NETWORKS = (
    "Lower `step_size`. Energies are sums over all N examples, so a learning rate for mean losses is N times too large: convert it "
    "with `iso.potentials.to_bayesian(learning_rate, weight_decay, num_data)`."
)
# Larger data are not searched for NaN.
_MAX_SEARCHED = 10**8


def num_lost_in_data(potential: Potential) -> int:
    """The count of numbers in the data that are not finite."""
    return sum(
        int(np.sum(~np.isfinite(leaf)))
        for leaf in jax.tree.leaves(getattr(innermost(potential), "data", None))
        if isinstance(leaf, (np.ndarray, jax.Array)) and leaf.dtype.kind == "f" and leaf.size < _MAX_SEARCHED
    )


def remedy_for(potential: Potential) -> str:
    """The remedy for energies that are not finite."""
    lost = num_lost_in_data(potential)
    if lost == 0:
        return _REMEDY_FOR_NETWORKS if hasattr(potential, "network") else _REMEDY
    return f"Numbers in the data that are not finite (NaN, infinity): {lost}. Remove or replace them."


def refuse_run_without_draws(diverged_at: np.ndarray, is_over: bool, potential: Potential) -> NoReturn:
    """Raise for a run that ended before its first draw: by chains that diverged if it `is_over`, else by its callback."""
    if is_over and np.any(diverged_at < 0):
        raise DivergenceError(
            f"{int(np.sum(diverged_at >= 0))} of {diverged_at.size} chains diverged (energy not finite) before the first draw, at "
            f'iteration {int(diverged_at.max())}, and `on_divergence="stop"` ended the run. {remedy_for(potential)}'
        )
    if np.any(diverged_at < 0):
        refuse("callback", "such that the run continues to its first draw", "a stop before it", "Lower `burn_in`.")
    raise DivergenceError(
        "Every chain diverged (energy not finite) before the first draw, the last one at iteration "
        f"{int(diverged_at.max())}. {remedy_for(potential)}"
    )


def report_divergence(
    diverged_at: np.ndarray, throw: bool, has_ladder: bool, stops: bool, potential: Potential
) -> None:
    """Warn about chains that diverged, or raise; the chains of a ladder are its replicas."""
    places = np.argwhere(diverged_at >= 0)
    if len(places) == 0:
        return
    one, many, then = "chain", "run", "Their later draws have weight zero."
    if has_ladder:
        one, many = "replica", "ladder"
        then = "Each stays on its rung and blocks swaps; its draws on the target rung have weight zero."

    if stops:
        then = 'The run ended there (`on_divergence="stop"`).'

    def named(place: np.ndarray) -> str:
        *run, chain = place
        return f"{one} {chain}" + (f" of {many} {run[0]}" if run else "") + f" at iteration {diverged_at[tuple(place)]}"

    listed = ", ".join(map(named, places[:5])) + (f" and {len(places) - 5} more" if len(places) > 5 else "")
    message = f"{len(places)} of {diverged_at.size} {one}s diverged (energy not finite): {listed}. {then} {remedy_for(potential)}"
    # `jax_debug_nans` is off inside programs, so it acts here.
    if throw or getattr(jax.config, "jax_debug_nans"):  # noqa: B009
        raise DivergenceError(message)
    warnings.warn(message, DivergenceWarning, stacklevel=7)


def report_restarts(num_restarts: np.ndarray, throw: bool, potential: Potential) -> None:
    """Warn about chains that were put back to their start, or raise."""
    total, chains = int(num_restarts.sum()), int(np.sum(num_restarts > 0))
    if total == 0:
        return
    message = (
        f"{chains} of {num_restarts.size} chains diverged (energy not finite) and were restarted, {total} times in all. Draws that "
        f"are not finite have weight zero; `run.stats['num_restarts']` has the counts. {remedy_for(potential)}"
    )
    if throw:
        raise DivergenceError(message)
    warnings.warn(message, DivergenceWarning, stacklevel=7)
