"""Numbers with sums of 32 of them, of 1024, and so on: an addition or a prefix sum touches a few of them."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap

BRANCHES = 32
_MAX_SLICES = 32

# Numbers, shape (G, n), and their sums, level by level.
Levels = tuple[Array, ...]


def levels_of(lowest: Array) -> Levels:
    """Numbers of shape (G, n) and their sums."""
    levels = [lowest]
    while levels[-1].shape[1] > BRANCHES:
        levels.append(sums_of_branches(levels[-1]))
    return tuple(levels)


def sums_of_branches(level: Array) -> Array:
    """Sums of 32 neighbors each, shape (G, n / 32)."""
    padded = jnp.pad(level, ((0, 0), (0, -level.shape[1] % BRANCHES)))
    return padded.reshape(len(level), -1, BRANCHES).sum(axis=2)


def add_to_levels(levels: Levels, group: Array, index: Array, numbers: Array) -> Levels:
    """Add `numbers` at places."""
    added = []
    for level in levels:
        added.append(add_at(level, group, index, numbers.astype(level.dtype)))
        index = quotient(index, BRANCHES)
    return tuple(added)


@custom_vmap
def add_at(level: Array, group: Array, index: Array, numbers: Array) -> Array:
    """Add `numbers` at places of `level`, shape (G, n).

    For few places one slice is updated after another, since XLA turns a scatter into a loop of many small operations. Under `vmap`
    one scatter serves all runs.
    """
    if len(index) > _MAX_SLICES:
        return level.at[group, index].add(numbers)
    for chain in range(len(index)):
        place = (group[chain], index[chain])
        old = lax.dynamic_slice(level, place, (1, 1))
        level = lax.dynamic_update_slice(level, old + numbers[chain], place)
    return level


@add_at.def_vmap
def _(_size: int, is_batched: Any, *arguments: Array) -> tuple[Array, bool]:
    axes = [0 if batched else None for batched in is_batched]
    return jax.vmap(lambda level, *rest: level.at[rest[0], rest[1]].add(rest[2]), axes)(*arguments), True


def prefix_sums(levels: Levels, group: Array, index: Array) -> Array:
    """Sums of all numbers below `index`."""

    def one(group, index):
        total = jnp.zeros((), levels[0].dtype)
        node = index
        for level in levels:
            first = quotient(node, BRANCHES) * BRANCHES
            length = min(BRANCHES, level.shape[1])
            start = jnp.minimum(first, level.shape[1] - length)
            siblings = lax.dynamic_slice(level, (group, start), (1, length))[0]
            places = start + jnp.arange(length)
            total += jnp.sum(jnp.where((places >= first) & (places < node), siblings, 0.0))
            node = quotient(node, BRANCHES)
        return total

    return jax.vmap(one)(group, index)


def quotient(index: Array, length: int) -> Array:
    """Index // length for indices of at least 0, in one operation and in their own type."""
    return lax.div(index, jnp.asarray(length, index.dtype))
