"""Random numbers that depend only on (seed, purpose, run, chain, iteration).

Every stream has a key folded from the seed, a `Purpose` and the global numbers of a run and a chain. Iteration k uses the Threefry
words at the counters (k, 0), (k, 1), ...; both words of a counter are used. So draws do not depend on the block length, on the
number of chains, or on where a run was resumed.
"""

import enum
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from isotherm.foundation.errors import check_integer, refuse

_FOLDED = np.uint32(0xFFFFFFFF)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


class Purpose(enum.IntEnum):
    """What a stream is used for. A changed value changes the draws of every seed."""

    INIT = 0
    KERNEL = 1
    PROBE = 2
    POTENTIAL = 3
    BATCH = 4
    COUPLING = 5
    MEASURE_POTENTIAL = 6
    MEASURE_BATCH = 7
    CHECKUP = 8
    WORDS = 9


def seed_key(seed: Any) -> Array:
    """The key of a seed; see `seed_words`."""
    return jax.random.wrap_key_data(jnp.asarray(seed_words(seed)), impl="threefry2x32")


def seed_words(seed: Any) -> Any:
    """The two words of a seed's key, on the host unless the seed is a traced key.

    They hold all 64 bits of an integer; `jax.random.key` keeps 32, and agrees below 2^32. Keys of `jax.random.key` are used as they
    are.
    """
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        words = jax.random.key_data(seed)
        if seed.shape != () or words.shape != (2,):
            got, remedy = f"keys of shape {seed.shape}", "Use jax.random.key(0), or an integer."
            refuse("seed", "one key of two words", got, remedy)
        return words if isinstance(words, Tracer) else np.asarray(words)
    if getattr(seed, "dtype", None) == np.uint32 and np.shape(seed) == (2,) and not isinstance(seed, Tracer):
        return np.asarray(seed)  # A key of `jax.random.PRNGKey`.
    remedy = "Give any integer from 0 to 18446744073709551615, or a key of `jax.random.key`."
    number = check_integer("seed", seed, 0, remedy)
    if number >= 1 << 64:
        refuse("seed", "an integer below 2^64", seed, remedy)
    return np.array([number >> 32, number & 0xFFFFFFFF], np.uint32)


def run_keys(words: Any, purpose: Any, runs: Any) -> Any:
    """Keys of shape (R, 2), one per run number, from the words of the seed's key. The chains of a run share its key."""
    return fold(fold(words, purpose), runs)


def chain_keys(keys_run: Any, num_chains: int) -> Any:
    """Keys of shape (..., num_chains, 2) from the keys of runs."""
    return fold(keys_run[..., None, :], np.arange(num_chains))


def fold(key: Any, number: Any) -> Any:
    """New keys from keys of shape (..., 2): the words at the counter (number, 2^32 - 1), which no stream reaches.

    NumPy arrays are folded on the host, without compiling.
    """
    if isinstance(key, np.ndarray):
        with np.errstate(over="ignore"):
            return np.stack(_threefry(key[..., 0], key[..., 1], np.asarray(number).astype(np.uint32), _FOLDED), axis=-1)
    number = jnp.asarray(number).astype(jnp.uint32)
    return materialize(jnp.stack(threefry(key[..., 0], key[..., 1], number, jnp.asarray(_FOLDED)), axis=-1))


def materialize(few: Array) -> Array:
    """Compute a few widely used words once. XLA would inline the generator into every use, which doubles compile times on a CPU."""
    # A GPU recomputes them faster than it waits for them.
    return lax.optimization_barrier(few) if jax.default_backend() == "cpu" else few


def words(key: Array, iterations: Array, count: int, offset: Any = 0) -> Array:
    """Random 32-bit words of shape (len(iterations), count)."""
    shape = (len(iterations), (count + 1) // 2)
    first = jnp.broadcast_to(iterations.astype(jnp.uint32)[:, None], shape)
    second = lax.broadcasted_iota(jnp.uint32, shape, 1) + jnp.asarray(offset, jnp.uint32)
    return jnp.concatenate(threefry(key[0], key[1], first, second), axis=-1)[:, :count]


def uniforms(key: Array, iterations: Array, count: int, dtype: Any = jnp.float32, offset: Any = 0) -> Array:
    """Uniform numbers in [0, 1) of shape (len(iterations), count)."""
    if dtype == jnp.float64:
        high, low = jnp.split(words(key, iterations, 2 * count, offset), 2, axis=-1)
        return ((high >> 6).astype(dtype) * 2.0**27 + (low >> 5).astype(dtype)) * 2.0**-53
    bits = (words(key, iterations, count, offset) >> 9) | np.uint32(0x3F800000)
    return lax.bitcast_convert_type(bits, jnp.float32) - np.float32(1.0)


@functools.partial(jax.jit, static_argnames=("shape", "dtype"), inline=True)
def normals(key: Array, iterations: Array, shape: tuple[int, ...], dtype: Any = jnp.float32, offset: Any = 0) -> Array:
    """Standard normal numbers of shape (len(iterations), *shape). Traced once per shape, and inlined."""
    wide = jnp.float64 if dtype == jnp.float64 else jnp.float32
    unit = uniforms(key, iterations, math.prod(shape), wide, offset)
    lowest = np.nextafter(np.array(-1.0, wide), np.array(0.0, wide))
    symmetric = jnp.maximum(unit * (1.0 - lowest) + lowest, lowest)
    scaled = lax.erf_inv(symmetric) * np.array(math.sqrt(2.0), wide)
    return scaled.reshape(len(iterations), *shape).astype(dtype)


def student_t(key: Array, iterations: Array, degrees: float, shape: tuple[int, ...], dtype: Any) -> Array:
    """Student t numbers of shape (len(iterations), *shape) by the polar method, exact for every `degrees`.

    Reference:
        Bailey 1994, "Polar generation of random variates with the t-distribution", equation (2) with a full angle.
    """
    radius, angle = jnp.split(uniforms(key, iterations, 2 * math.prod(shape), dtype), 2, axis=-1)
    spread = jnp.sqrt(degrees * jnp.expm1(-2.0 / degrees * jnp.log1p(-radius)))
    return (spread * jnp.cos(2.0 * math.pi * angle)).reshape(len(iterations), *shape)


def normals_like(key: Array, iterations: Array, tree: Any) -> Any:
    """Standard normal numbers for each leaf of `tree`, with a leading axis of len(iterations)."""
    leaves, structure = jax.tree.flatten(tree)
    offset, drawn = 0, []
    for leaf in leaves:
        drawn.append(normals(key, iterations, leaf.shape, leaf.dtype, offset))
        offset += leaf.size  # A counter gives two words, so this leaves room for 64-bit leaves.
    return jax.tree.unflatten(structure, drawn)


def _threefry(key_0: Any, key_1: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """Threefry-2x32 with 20 rounds, elementwise: the bits of `jax.extend.random.threefry_2x32`.

    Written out so that XLA fuses it with its consumers, which halves the time per normal number on a CPU.

    Reference:
        Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
    """
    schedule = (key_0, key_1, key_0 ^ key_1 ^ np.uint32(0x1BD11BDA))
    first, second = first + schedule[0], second + schedule[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            first = first + second
            second = ((second << np.uint32(distance)) | (second >> np.uint32(32 - distance))) ^ first
        first = first + schedule[(group + 1) % 3]
        second = second + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return first, second


threefry = functools.partial(jax.jit, inline=True)(_threefry)
