"""Which examples an iteration sees: shuffled epochs, or a new batch each time, without storing or sorting an order.

A keyed bijection of {0, ..., N - 1} takes the place of a stored permutation: a Feistel network on the rows and columns of a grid
that holds N places and few more, walked along its cycles until the value falls below N. It needs O(n) work for a batch of n
whatever N is, no memory, and nothing to checkpoint. N may be a traced number (a buffer that grows); one that is known mostly
has a grid with so few places left over that the walk is no loop, which an accelerator could not run ahead of.
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
# Every place that is left over is another walk for the compiler to write out.
_MAX_LEFT_OVER = 3


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
    """Images of `positions` under the bijection of {0, ..., num_data - 1} that belongs to `key`.

    Example:
        >>> sorted(permute(jnp.array([1, 2], jnp.uint32), jnp.arange(5), 5).tolist())
        [0, 1, 2, 3, 4]
    """
    return _permute_known(key, positions, num_data) if isinstance(num_data, int) else _permute(key, positions, num_data)


def _permute(key: Array, positions: Array, num_data: Any) -> Array:
    rows, columns, num_left_over = _grid(num_data)
    size, rows, columns = (jnp.asarray(number, jnp.uint32) for number in (num_data, rows, columns))
    round_keys = materialize(words(key, jnp.zeros(1, jnp.uint32), _NUM_ROUNDS)[0])

    def shuffle(value):
        row, column = value // columns, value % columns
        for number, key_round in enumerate(round_keys):
            if number % 2 == 0:
                row = _turned(row, _mix(column ^ key_round), rows)
            else:
                column = _turned(column, _mix(row ^ key_round), columns)
        return row * columns + column

    def walk(value):
        return jnp.where(value >= size, shuffle(value), value)

    images = shuffle(positions.astype(jnp.uint32))
    if num_left_over is None:
        images = lax.while_loop(lambda value: jnp.any(value >= size), walk, images)
    else:
        # A walk meets every place that is left over at most once.
        for _ in range(num_left_over):
            images = walk(images)
    return images.astype(jnp.int32)


# Traced once for each size of the data and of the batches: a program may draw many batches.
_permute_known = functools.partial(jax.jit, static_argnames="num_data")(_permute)


def _grid(num_data: Any) -> tuple[Any, Any, int | None]:
    """Rows and columns of a grid that is nearly a square, and how many places are left over; None where they are many or traced."""
    if not isinstance(num_data, int):
        rows = jnp.ceil(jnp.sqrt(jnp.asarray(num_data, jnp.float32))).astype(jnp.int32)
        return rows, -(-num_data // rows), None
    # Rounds mix a grid of one or two rows slowly.
    longest = math.isqrt(num_data - 1) + 1
    shortest = max(longest // 2 + 1, min(longest, 3))
    rows = min(range(shortest, longest + 1), key=lambda number: (-num_data % number, -number))
    left_over = -num_data % rows
    return rows, -(-num_data // rows), left_over if left_over <= _MAX_LEFT_OVER else None


def batch_indices(key: Array, iteration: Any, num_data: Any, batch_size: int, batching: str) -> tuple[Array, Array]:
    """Indices and weights of the batch of an iteration.

    With "epochs" each pass over the data is a new order, cut into batches; the last batch of a pass may be short, and is
    padded with examples of weight zero. With "independent" every batch is drawn without replacement and independently of the
    others; with "replacement", with replacement.
    """
    places = jnp.arange(batch_size)
    everyone = jnp.ones(batch_size)
    iteration = jnp.asarray(iteration)
    if batching == "epochs":
        batches_per_epoch = -(-num_data // batch_size)
        places = places + (iteration % batches_per_epoch) * batch_size
        inside = places < num_data
        key_epoch = fold(key, iteration // batches_per_epoch)
        return permute(key_epoch, jnp.where(inside, places, places - num_data), num_data), inside.astype(everyone.dtype)
    if batching == "independent":
        return permute(fold(key, iteration), places, num_data), everyone
    drawn = words(key, iteration[None], batch_size)[0]
    return (drawn % jnp.asarray(num_data, jnp.uint32)).astype(jnp.int32), everyone


def _turned(place: Array, word: Array, number: Array) -> Array:
    """A place among so many, moved along their circle by a share of it that a word gives: no division, which takes CPUs longest."""
    moved = place + (((word >> 16) * number) >> 16)
    return jnp.where(moved >= number, moved - number, moved)


def _mix(value: Array) -> Array:
    """A bijection of 32-bit words in which every bit of the input reaches every bit of the output (MurmurHash3)."""
    value = (value ^ (value >> 16)) * np.uint32(0x85EBCA6B)
    value = (value ^ (value >> 13)) * np.uint32(0xC2B2AE35)
    return value ^ (value >> 16)
