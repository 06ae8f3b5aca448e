"""Checks on a Metropolis test: how often it accepts, and whether chains are stuck."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from isotherm.foundation import checks
from isotherm.foundation.checks import Check, RunView

# A chain is stuck if it moved never while others moved this often.
_MIN_MOVES = 50


def diagnose(run: RunView) -> list[Check]:
    """The checks on the accepted proposals of a run."""
    return [*_low_acceptance(run), *_stuck_chains(run)]


def acceptance(stats: dict[str, Any], num_steps: int) -> np.ndarray | None:
    """The share of accepted proposals: of each rung of a ladder, pooled over ladders, or of each chain. None if it is unknown."""
    if "num_moves" in stats:
        accepted, all_ = (np.asarray(stats[name], np.float64) for name in ("num_moves_accepted", "num_moves"))
        of_rungs = [values.reshape(-1, values.shape[-1]).sum(axis=0) for values in (accepted, all_)]
        return of_rungs[0] / np.maximum(of_rungs[1], 1.0)
    if "num_accepted" not in stats:
        return None
    return np.ravel(stats["num_accepted"]) / max(num_steps, 1)


def _low_acceptance(run: RunView) -> Iterator[Check]:
    rates = acceptance(run.stats, run.num_steps)
    if rates is None:
        return
    is_low, lowest = rates < checks.LOW_ACCEPTANCE.limit, float(np.min(rates))
    if not np.any(is_low):
        return
    what = "rungs" if "num_moves" in run.stats else "chains"
    text = f"{int(is_low.sum())} of {rates.size} {what} accepted fewer than 10 % of their proposals, one of them {lowest:.2g}."
    remedy = "Lower `step_size` by a factor of 4"
    remedy += f" on rungs {np.flatnonzero(is_low).tolist()}" * ("num_moves" in run.stats)
    yield checks.LOW_ACCEPTANCE.found(text, f"{remedy}.", lowest=lowest, number=is_low.sum())


def _stuck_chains(run: RunView) -> Iterator[Check]:
    rates = acceptance(run.stats, run.num_steps)
    if rates is None or "num_moves" in run.stats:
        return
    energies = np.asarray(run.energies)
    late = energies[..., energies.shape[-1] // 2 :]
    # Another chain would have moved many times between the first of these draws and the last.
    times = np.asarray(run.times[:])[-late.shape[-1] :] if late.shape[-1] else np.zeros(1)
    if late.shape[-1] < 2 or float(np.max(rates)) * (times[-1] - times[0]) < _MIN_MOVES:
        return
    number = int(np.sum(np.all(late == late[..., :1], axis=-1)))
    if number:
        yield checks.STUCK_CHAINS.found(
            f"{number} of {int(np.prod(late.shape[:-1]))} chains rejected every proposal in the second half of the run: where they "
            "are, the gradient carries proposals too far.",
            "Start where the energy is less steep, or lower `step_size`.",
            number=number,
        )
