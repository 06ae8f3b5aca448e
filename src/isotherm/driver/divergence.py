"""What is said of chains that diverged."""

import warnings
from typing import NoReturn

import jax
import numpy as np

from isotherm.foundation.errors import DivergenceError, DivergenceWarning, refuse
from isotherm.potentials.potential import Potential, innermost

_REMEDY = (
    "Lower `step_size`. If the energy itself is not finite in places (a wall, a logarithm of a negative number), no step is small "
    "enough: keep chains away with `box=(low, high)`, or give the energy a finite value there. If you passed a log density, whose "
    "sign is the other one, write `iso.from_log_density(log_density)`."
)


_REMEDY_FOR_NETWORKS = (
    "Lower `step_size`. Energies are sums over all N examples, so that a learning rate for mean losses is N times too long: "
    "`iso.potentials.to_bayesian(learning_rate, weight_decay, num_data)` translates it."
)
# Data of more numbers than this are not searched for what may be wrong with them.
_MAX_SEARCHED = 10**8


def num_lost_in_data(potential: Potential) -> int:
    """How many numbers of the data are not finite."""
    potential = innermost(potential)
    return sum(
        int(np.sum(~np.isfinite(leaf)))
        for leaf in jax.tree.leaves(getattr(potential, "data", None))
        if isinstance(leaf, (np.ndarray, jax.Array)) and leaf.dtype.kind == "f" and leaf.size < _MAX_SEARCHED
    )


def remedy_for(potential: Potential) -> str:
    """What to do about energies that are not finite."""
    lost = num_lost_in_data(potential)
    if lost == 0 and hasattr(potential, "network"):
        return _REMEDY_FOR_NETWORKS
    if lost == 0:
        return _REMEDY
    are = "is" if lost == 1 else "are"
    return f"Of the numbers in the data {lost} {are} not finite (NaN, infinity): remove or replace what is not."


def refuse_run_without_draws(diverged_at: np.ndarray, potential: Potential) -> NoReturn:
    """Say why a run ended before its first draw: its chains diverged, or its callback stopped it."""
    if np.all(diverged_at >= 0):
        first = int(diverged_at.max())
        raise DivergenceError(
            f"Every chain diverged (energy not finite) before the first draw, the last one at iteration {first}. "
            + remedy_for(potential)
        )
    refuse("callback", "such that the run goes on to its first draw", "a stop before it", "Lower `burn_in`.")


def report_divergence(diverged_at: np.ndarray, throw: bool, has_ladder: bool, potential: Potential) -> None:
    """Warn of chains that diverged, or raise. The chains of a ladder are its replicas."""
    if np.all(diverged_at < 0):
        return
    places = np.argwhere(diverged_at >= 0)
    named = [f"{_name(place, has_ladder)} at iteration {diverged_at[tuple(place)]}" for place in places[:5]]
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    what, then = "chains", "Their later draws have weight zero."
    if has_ladder:
        what, then = (
            "replicas",
            "They stay on their rungs, which no swap passes any more; on the target rung draws have weight zero.",
        )
    message = (
        f"{len(places)} of {diverged_at.size} {what} diverged (energy not finite): {', '.join(named)}{more}. {then} "
    )
    message += remedy_for(potential)
    # JAX's own check would stop at numbers that are not finite by design.
    if throw or getattr(jax.config, "jax_debug_nans"):  # noqa: B009
        raise DivergenceError(message)
    warnings.warn(message, DivergenceWarning, stacklevel=6)


def _name(place: np.ndarray, has_ladder: bool) -> str:
    *run, chain = (int(number) for number in place)
    one, many = ("replica", "ladder") if has_ladder else ("chain", "run")
    return f"{one} {chain}" + (f" of {many} {run[0]}" if run else "")
