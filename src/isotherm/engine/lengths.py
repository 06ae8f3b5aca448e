"""How many iterations and records the loops of a compiled program take at a time."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from isotherm.engine.iteration import Parts
from isotherm.engine.periodic_work import outside

# Numbers of noise drawn at a time: enough to hide the cost of drawing, few enough to stay in a core's cache.
_CHUNK_NUMBERS = 65_536
_MAX_CHUNK = 4_096
_MIN_CHUNK = 16
# Bytes of noise of the chains in an inner loop. What the loop around it does is dispatched one by one, so it should turn seldom.
_GROUP_BYTES = 4_096
_MAX_GROUP = 32
_BUFFER_BYTES = 32 << 20
_MIN_RECORDS = 256
# With fewer iterations between two draws, weighing every one costs less than stopping at those that are kept.
_FEW_ITERATIONS = 4


class Sizes(NamedTuple):
    """Lengths of a program; see `Program`."""

    chunk: int
    group: int
    max_records: int
    max_records_per_chunk: int
    weighs_all: bool


def sizes_of(parts: Parts, num_lanes: int, one: Any, coupling_state: Any, thinning: int, num_records: int) -> Sizes:
    """The lengths for positions like `one` in so many chains of all runs, and couplings of such a state."""
    model_state = jax.tree.leaves(parts.potential.init_model_state())
    size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(one)) + sum(np.size(leaf) for leaf in model_state)
    record_bytes = 4 * num_lanes * (size + 2)
    max_records = min(max(_BUFFER_BYTES // record_bytes, 1), _room_for(num_records))
    # Noise drawn past a return to the host would be drawn again after it.
    periods = [work.every for works in outside(parts) for work in works]
    chunk = min([chunk_length(num_lanes, size), *periods])
    group = group_length(chunk, num_lanes, size) if jax.tree.leaves(coupling_state) else chunk
    weighs_all = parts.coupling.log_weights is not None and thinning < _FEW_ITERATIONS and chunk > 1
    return Sizes(chunk, group, max_records, max(2, -(-chunk // thinning)), weighs_all)


def _room_for(num_records: int) -> int:
    """A number of records with few possible values, so that runs of other lengths find the same program."""
    room = _MIN_RECORDS
    while room < num_records:
        room *= 16
    return room


def chunk_length(num_lanes: int, size: int) -> int:
    """How many iterations draw their noise at a time, for `size` numbers per chain and iteration."""
    length = min(_CHUNK_NUMBERS // max(num_lanes * size, 1), _MAX_CHUNK)
    return length if length >= _MIN_CHUNK else 1


def group_length(chunk: int, num_lanes: int, size: int) -> int:
    """How many iterations an inner loop takes: the largest power of two that divides the chunk and whose noise stays tiny.

    XLA compiles a loop on a CPU into one function only if it touches little memory and holds no scatter; otherwise every operation
    of its body is dispatched on its own, which for a few numbers costs more than the arithmetic. For two chains even the loop
    around short groups is part of the function.
    """
    length = min(chunk & -chunk, _MAX_GROUP)
    while length > 1 and 4 * length * num_lanes * size > _GROUP_BYTES:
        length //= 2
    return length if length > 1 else chunk
