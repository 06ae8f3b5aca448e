"""Mini-batches: shuffled epochs or independent batches, without storing or sorting an order.

A keyed bijection of {0, ..., N - 1} replaces a stored permutation: a Feistel network on the rows and columns of a grid of N or
slightly more cells, with cycle walking until the value is below N. It takes O(n) work for a batch of n at any N, no memory, and
nothing to checkpoint. N may be traced (a buffer that grows). For a known N the grid usually has so few cells too many that the walk
is unrolled, since an accelerator cannot run ahead of a loop.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.foundation.randomness import fold, materialize, words

_NUM_ROUNDS = 12
# Each unrolled walk adds to compile time.
_MAX_UNROLLED = 3


class Batch(NamedTuple):
    """Examples of a mini-batch.

    Attributes:
        examples: the data leaves, with a leading axis of n.
        weights: one per example; zero where a short last batch is padded.
        num_data: N, as a traced number.
    """

    examples: Any
    weights: Array
    num_data: Array


def permute(key: Array, positions: Array, num_data: Any) -> Array:
    """Images of `positions` under the bijection of {0, ..., num_data - 1} given by `key`."""
    return _permute_known(key, positions, num_data) if isinstance(num_data, int) else _permute(key, positions, num_data)


def _permute(key: Array, positions: Array, num_data: Any) -> Array:
    rows, columns, num_excess = _grid(num_data)
    size, rows, columns = (jnp.asarray(number, jnp.uint32) for number in (num_data, rows, columns))
    round_keys = materialize(words(key, jnp.zeros(1, jnp.uint32), _NUM_ROUNDS)[0])

    def shuffle(value):
        row, column = value // columns, value % columns
        for number, key_round in enumerate(round_keys):
            if number % 2 == 0:
                row = _rotate(row, _mix(column ^ key_round), rows)
            else:
                column = _rotate(column, _mix(row ^ key_round), columns)
        return row * columns + column

    def walk(value):
        return jnp.where(value >= size, shuffle(value), value)

    images = shuffle(positions.astype(jnp.uint32))
    if num_excess is None:
        images = lax.while_loop(lambda value: jnp.any(value >= size), walk, images)
    else:
        # A walk visits every excess cell at most once.
        for _ in range(num_excess):
            images = walk(images)
    return images.astype(jnp.int32)


# Traced once per data size and batch size: a program may draw many batches.
_permute_known = functools.partial(jax.jit, static_argnames="num_data")(_permute)


def _grid(num_data: Any) -> tuple[Any, Any, int | None]:
    """Rows, columns and excess cells of a nearly square grid; None where N is traced or excess cells are many."""
    if not isinstance(num_data, int):
        rows = jnp.ceil(jnp.sqrt(jnp.asarray(num_data, jnp.float32))).astype(jnp.int32)
        return rows, -(-num_data // rows), None
    # Grids of one or two rows mix slowly.
    longest = math.isqrt(num_data - 1) + 1
    shortest = max(longest // 2 + 1, min(longest, 3))
    rows = min(range(shortest, longest + 1), key=lambda number: (-num_data % number, -number))
    num_excess = -num_data % rows
    return rows, -(-num_data // rows), num_excess if num_excess <= _MAX_UNROLLED else None


def batch_indices(key: Array, iteration: Any, num_data: Any, batch_size: int, batching: str) -> tuple[Array, Array]:
    """Indices and weights of the batch of an iteration.

    With "epochs" each pass over the data has a new order, cut into batches; a short last batch is padded with examples of weight
    zero. With "independent" every batch is drawn without replacement, independently of the others; with "replacement", with
    replacement.
    """
    places, ones = jnp.arange(batch_size), jnp.ones(batch_size)
    iteration = jnp.asarray(iteration)
    if batching == "epochs":
        batches_per_epoch = -(-num_data // batch_size)
        places = places + (iteration % batches_per_epoch) * batch_size
        is_inside = places < num_data
        key_epoch = fold(key, iteration // batches_per_epoch)
        indices = permute(key_epoch, jnp.where(is_inside, places, places - num_data), num_data)
        return indices, is_inside.astype(ones.dtype)
    if batching == "independent":
        return permute(fold(key, iteration), places, num_data), ones
    drawn = words(key, iteration[None], batch_size)[0]
    return (drawn % jnp.asarray(num_data, jnp.uint32)).astype(jnp.int32), ones


def _rotate(place: Array, word: Array, number: Array) -> Array:
    """Rotate a place among `number` by a random share of a full turn, without a division, which is slow on CPUs."""
    moved = place + (((word >> 16) * number) >> 16)
    return jnp.where(moved >= number, moved - number, moved)


def _mix(value: Array) -> Array:
    """A bijection of 32-bit words in which every input bit affects every output bit (MurmurHash3)."""
    value = (value ^ (value >> 16)) * np.uint32(0x85EBCA6B)
    value = (value ^ (value >> 13)) * np.uint32(0xC2B2AE35)
    return value ^ (value >> 16)
