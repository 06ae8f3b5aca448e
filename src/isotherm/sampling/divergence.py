"""What is said of chains that diverged."""

import warnings
from typing import NoReturn

import numpy as np

from isotherm.foundation.errors import DivergenceError, DivergenceWarning, refuse

_REMEDY = (
    "Lower `step_size`. If the energy itself is not finite in places (a wall, a logarithm of a negative number), no step is small "
    "enough: keep chains away with `box=(low, high)`, or give the energy a finite value there. If you passed a log density, whose "
    "sign is the other one, write `iso.from_log_density(log_density)`."
)


def refuse_run_without_draws(diverged_at: np.ndarray) -> NoReturn:
    """Say why a run ended before its first draw: its chains diverged, or its callback stopped it."""
    if np.all(diverged_at >= 0):
        first = int(diverged_at.max())
        raise DivergenceError(
            f"Every chain diverged (energy not finite) before the first draw, the last one at iteration {first}. {_REMEDY}"
        )
    refuse("callback", "such that the run goes on to its first draw", "a stop before it", "Lower `burn_in`.")


def report_divergence(diverged_at: np.ndarray, throw: bool) -> None:
    """Warn of chains that diverged, or raise."""
    if np.all(diverged_at < 0):
        return
    places = np.argwhere(diverged_at >= 0)
    named = [f"{_name(place)} at iteration {diverged_at[tuple(place)]}" for place in places[:5]]
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    message = (
        f"{len(places)} of {diverged_at.size} chains diverged (energy not finite): {', '.join(named)}{more}. "
        f"Their later draws have weight zero. {_REMEDY}"
    )
    if throw:
        raise DivergenceError(message)
    warnings.warn(message, DivergenceWarning, stacklevel=5)


def _name(place: np.ndarray) -> str:
    *run, chain = (int(number) for number in place)
    return f"chain {chain}" + (f" of run {run[0]}" if run else "")
