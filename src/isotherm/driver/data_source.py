"""Data for the compiled program: on the device, or streamed in blocks of batches that the host gathers ahead."""

import concurrent.futures
import contextlib
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.engine.blocks import Carry
from isotherm.engine.iteration import Parts
from isotherm.engine.periodic_work import outside, place_of_batch
from isotherm.engine.program import Program
from isotherm.engine.random_inputs import Keys, Stream
from isotherm.foundation.randomness import fold
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.potentials.potential import Potential, innermost

_STREAM_BYTES = 32 << 20


class DataSource:
    """Data on the device: programs take them as arguments, and the host has no work."""

    longest: int = np.iinfo(np.int32).max  # Iterations that a block can have.
    periods: tuple[int, ...] = ()  # The host has work at multiples of these iterations.

    def block(self, first: int, last: int) -> Any:
        """The stream for the iterations first, ..., last - 1."""
        return None

    def work(self, program: Program, keys: Keys, carry: Carry, iteration: int) -> Carry:
        """The carry after the host's periodic work due before an iteration."""
        return carry


class StreamSource(DataSource):
    """Gathers batches on the host, one block ahead, from arrays in memory or memory-mapped."""

    def __init__(self, potential: Any, parts: Parts, keys: Keys, num_chains: int):
        self._potential = potential
        is_shared = potential.is_batch_shared
        row = sum(leaf.nbytes // max(len(leaf), 1) for leaf in jax.tree.leaves(potential.data))
        lanes = math.prod(keys.batch_shared.shape[:-1]) * (1 if is_shared else num_chains) * parts.num_batches
        # Two blocks are in memory: one in use, one being gathered.
        self.longest = int(np.clip(_STREAM_BYTES // (2 * lanes * potential.batch_size * row), 1, 1024))
        self._works = outside(parts)
        self.periods = tuple(work.every for works in self._works for work in works)
        batch_keys = keys.batch_shared if is_shared else keys.batch
        measured_keys = keys.measured_batch_shared if is_shared else keys.measured_batch
        has_runs = keys.batch_shared.ndim == 2
        self._places = _places(potential, batch_keys, has_runs, parts.num_batches, self.longest)
        self._places_measured = _places(potential, measured_keys, has_runs, _num_measured(parts), 1)
        self._num_pieces = -(-potential.num_data // potential.batch_size)
        self._num_regressed = getattr(parts.estimator, "num_regressed", 1)
        self._worker = concurrent.futures.ThreadPoolExecutor(1, "isotherm-data")
        self._blocks: dict[int, concurrent.futures.Future[Stream]] = {}

    def block(self, first: int, last: int) -> Stream:
        gather = lambda start: self._worker.submit(self._gather, self._places, start)  # noqa: E731
        self._blocks = {start: self._blocks.get(start) or gather(start) for start in (first, last)}
        return self._blocks[first].result()

    def work(self, program: Program, keys: Keys, carry: Carry, iteration: int) -> Carry:
        of_coupling, of_estimator = ([w for w in works if iteration % w.every == 0] for works in self._works)
        if of_coupling:
            place = place_of_batch(of_coupling[0], iteration)
            carry = program.couple(keys, self._gather(self._places_measured, place), carry, np.int32(iteration))
        if not of_estimator:
            return carry
        sums = jnp.zeros_like(carry.milestones.best_energy), jnp.zeros_like(carry.milestones.best_energy)
        for first in range(0, self._num_pieces, self.longest):
            count = np.int32(min(self.longest, self._num_pieces - first))
            sums = program.add_pieces(self._pieces(first), count, carry, sums)
        # The batches on which an estimator regresses are the same for all chains and iterations.
        key, numbers = jnp.zeros(2, jnp.uint32), jnp.arange(self._num_regressed)
        places, weights = jax.vmap(lambda number: self._potential.places(key, number))(numbers)
        return program.refresh(self._stream(0, np.asarray(places), weights), carry, sums[0] + sums[1])

    def _pieces(self, first: int) -> Stream:
        """Consecutive rows in pieces of the batch size; past the last row they start over, with weight zero."""
        size, num_data = self._potential.batch_size, self._potential.num_data
        rows = (first * size + np.arange(self.longest * size)).reshape(-1, size)
        return self._stream(first, rows % num_data, jnp.asarray((rows < num_data).astype(np.float32)))

    @transfers_on_purpose
    def _gather(self, places_from: Callable[[Array], tuple[Array, Array]], first: int) -> Stream:
        places, weights = places_from(jnp.asarray(first, jnp.int32))
        return self._stream(first, np.asarray(places), weights)

    def _stream(self, first: int, rows: np.ndarray, weights: Array) -> Stream:
        examples = jax.tree.map(lambda leaf: jax.device_put(leaf[rows]), self._potential.data)
        return Stream(jnp.asarray(first, jnp.int32), examples, weights, jnp.asarray(self._potential.num_data))


def _num_measured(parts: Parts) -> int:
    """The most batches that the coupling measures at once, from the calls of its periodic work."""
    numbers = [1]

    def measure(number: int) -> Any:
        numbers.append(number)
        raise _MeasuredError

    for work in outside(parts)[0]:
        with contextlib.suppress(_MeasuredError):
            jax.eval_shape(lambda coupling, w=work: w.apply(coupling.init(2), measure), parts.coupling)
    return max(numbers)


class _MeasuredError(Exception):
    """Ends a trace of periodic work at its first measurement."""


def _places(
    potential: Any, keys: Array, has_runs: bool, num_batches: int, length: int
) -> Callable[[Array], tuple[Array, Array]]:
    """A function from a first iteration to rows and weights of a block, as a program would take them from data on the device.

    Leaves have shape (R, L, B, ...), or (L, B, ...) without an axis of runs.
    """
    keys = jnp.asarray(keys)

    def of_key(key, batch, iteration):
        return potential.places(fold(key, batch), iteration)

    for _ in keys.shape[int(has_runs) : -1]:
        of_key = jax.vmap(of_key, (0, None, None))
    each = jax.vmap(jax.vmap(of_key, (None, 0, None)), (None, None, 0))
    each = jax.vmap(each, (0, None, None)) if has_runs else each
    return jax.jit(lambda first: each(keys, jnp.arange(num_batches), first + jnp.arange(length)))


def source_of(potential: Potential, parts: Parts, keys: Keys, num_chains: int) -> DataSource:
    """The source for a potential."""
    return StreamSource(innermost(potential), parts, keys, num_chains) if potential.is_streamed else DataSource()
