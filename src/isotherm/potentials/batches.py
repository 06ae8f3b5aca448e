"""Which examples an iteration sees: shuffled epochs, or a new batch each time, without storing or sorting an order.

A keyed bijection of {0, ..., N - 1} takes the place of a stored permutation: a Feistel network on the smallest even number
of bits that holds N, walked along its cycles until the value falls below N. It needs O(n) work for a batch of n whatever
N is, no memory, nothing to checkpoint, and N may be a traced number (a buffer that grows).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.foundation.randomness import fold, words

_NUM_ROUNDS = 12


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
    size = jnp.asarray(num_data, jnp.uint32)
    half = jnp.maximum((33 - lax.clz(size - 1)) // 2, 1)
    mask = (jnp.uint32(1) << half) - 1
    round_keys = words(key, jnp.zeros(1, jnp.uint32), _NUM_ROUNDS)[0]

    def encrypt(value):
        left, right = value >> half, value & mask
        for key_round in round_keys:
            left, right = right, left ^ (_mix(right ^ key_round) & mask)
        return (left << half) | right

    def walk(walked):
        value, is_outside = walked
        value = jnp.where(is_outside, encrypt(value), value)
        return value, value >= size

    start = (positions.astype(jnp.uint32), jnp.ones_like(positions, bool))
    images, _ = lax.while_loop(lambda walked: jnp.any(walked[1]), walk, start)
    return images.astype(jnp.int32)


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


def _mix(value: Array) -> Array:
    """A bijection of 32-bit words in which every bit of the input reaches every bit of the output (MurmurHash3)."""
    value = (value ^ (value >> 16)) * np.uint32(0x85EBCA6B)
    value = (value ^ (value >> 13)) * np.uint32(0xC2B2AE35)
    return value ^ (value >> 16)
