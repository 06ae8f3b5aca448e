"""Records leave the device, and become arrays with the axes that the user sees."""

import functools
from typing import Any

import jax
import numpy as np

from isotherm.driver.layout import Layout
from isotherm.engine.records import Records

_SMALL_BYTES = 8_000_000


def records_to_host(records: Records, count: int, layout: Layout) -> dict[str, Any]:
    """The first `count` records with axes (run, chain, draw, ...) or (chain, draw, ...)."""
    records = jax.device_get(_first(records, count))
    energies = layout.draws(records.energies, count)
    log_weights = np.zeros_like(energies) if records.log_weights is None else layout.draws(records.log_weights, count)
    # A draw whose energy is not a number must not count in any estimate.
    log_weights = np.where(np.isfinite(energies), log_weights, -np.inf)
    return {
        "draws": layout.draws(records.draws, count),
        "model_state": layout.draws(records.model_state, count),
        "energies": energies,
        "log_weights": log_weights,
        "observed": layout.observed(records.observed, count),
    }


def without_diverged(
    kept: dict[str, Any], drawn_at: np.ndarray, diverged_at: np.ndarray, num_ladders: int | None
) -> np.ndarray:
    """Log weights without the draws of chains that diverged, from then on: a chain whose energy became finite again is no sample.

    `diverged_at` has the axes of the chains; of a ladder the draws are those of the replica on the target rung.
    """
    log_weights = kept["log_weights"]
    if np.all(diverged_at < 0):
        return log_weights
    since = diverged_at[..., None]
    if num_ladders is not None:
        replica = np.argmin(np.asarray(kept["observed"]["rung"]), axis=-1)
        since = np.take_along_axis(diverged_at, replica, axis=-1)
    return np.where((since >= 0) & (drawn_at >= since), -np.inf, log_weights)


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
