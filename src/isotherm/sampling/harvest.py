"""What leaves the device: records as arrays on the host, statistics at the end, and news of chains that diverged."""

import functools
import warnings
from typing import Any, NoReturn

import jax
import numpy as np

from isotherm.engine.program import Carry, Program
from isotherm.engine.records import Records
from isotherm.foundation.errors import DivergenceError, DivergenceWarning, refuse

_SMALL_BYTES = 8_000_000
_REMEDY = (
    "Lower `step_size`. If the energy itself is not finite in places (a wall, a logarithm of a negative number), no step is small "
    "enough: keep chains away with `box=(low, high)`, or give the energy a finite value there."
)


def on_host(records: Records, count: int, is_stack: bool) -> dict[str, Any]:
    """The first `count` records with axes (run, chain, draw, ...); the particles of a stack become chains."""

    def move(leaf, is_stacked=False):
        array = np.moveaxis(leaf[:count], 0, 3 if is_stacked else 2)
        return array.reshape(array.shape[0], array.shape[1] * array.shape[2], *array.shape[3:]) if is_stacked else array

    records = jax.device_get(_first(records, count))
    energies = move(records.energies, is_stack)
    log_weights = np.zeros_like(energies) if records.log_weights is None else move(records.log_weights)
    # A draw whose energy is not a number must not count in any estimate.
    log_weights = np.where(np.isfinite(energies), log_weights, -np.inf)
    return {
        "draws": jax.tree.map(lambda leaf: move(leaf, is_stack), records.draws),
        "model_state": jax.tree.map(move, records.model_state),
        "energies": energies,
        "log_weights": log_weights,
        "observed": jax.tree.map(move, records.observed),
    }


def _first(records: Records, count: int) -> Records:
    """Buffers cut to little more than `count` records, so that an accelerator sends no more than that.

    Cut to powers of two, and to no less than a few megabytes, which travel at once: every size is a program of its own.
    """
    if jax.default_backend() == "cpu":
        return records
    leaves = jax.tree.leaves(records)
    bytes_per_record = sum(leaf.nbytes for leaf in leaves) // len(leaves[0])
    size = max(count, _SMALL_BYTES // bytes_per_record, 1)
    return _cut(records, 1 << (size - 1).bit_length())


@functools.partial(jax.jit, static_argnums=1)
def _cut(records: Records, size: int) -> Records:
    return jax.tree.map(lambda leaf: leaf[:size], records)


def final_statistics(program: Program, carry: Carry) -> dict[str, Any]:
    """What the book, the kernel and the coupling of a finished run have to tell."""
    state, book = carry
    coupling = state.coupling
    told = jax.vmap(program.parts.coupling.statistics)(coupling) if jax.tree.leaves(coupling) else {}
    every = {**book._asdict(), **program.parts.kernel.statistics(state.kernel), **told}
    return {name: jax.tree.map(np.array, value) for name, value in every.items() if jax.tree.leaves(value)}


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
    named = [f"chain {c} of run {r} at iteration {diverged_at[r, c]}" for r, c in places[:5]]
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    message = (
        f"{len(places)} of {diverged_at.size} chains diverged (energy not finite): {', '.join(named)}{more}. "
        f"Their later draws have weight zero. {_REMEDY}"
    )
    if throw:
        raise DivergenceError(message)
    warnings.warn(message, DivergenceWarning, stacklevel=4)
