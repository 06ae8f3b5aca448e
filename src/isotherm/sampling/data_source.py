"""How data reach the compiled program: all at once, or the batches of a block, gathered on the host while the last one runs."""

import concurrent.futures
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.engine.iteration import Parts
from isotherm.engine.stream import Stream
from isotherm.foundation.randomness import Purpose, chain_keys, fold, run_keys
from isotherm.potentials.potential import Potential, WrappedPotential

_STREAM_BYTES = 32 << 20


class Feeder:
    """Gives the program the data of every block.

    Attributes:
        longest: iterations that a block may have; None for any number.
    """

    longest: int | None = None

    def __init__(self, potential: Potential):
        self._feed = potential.feed()

    def block(self, first: int, last: int) -> Any:
        """What the program needs for the iterations first, ..., last - 1."""
        return self._feed

    def measured(self, iteration: int) -> Any:
        """What the program needs for the measurements at `iteration`."""
        return self._feed

    def refreshed(self, program: Any, carry: Any) -> Any:
        """The carry after the periodic work of the estimator, which sees all data."""
        return program.refresh(self._feed, carry)


class StreamFeeder(Feeder):
    """Gathers batches on the host, from arrays that may be mapped from a disk, one block ahead of the program."""

    def __init__(self, potential: Any, parts: Parts, seed_key: Array, num_runs: int, num_chains: int):
        self._potential = potential

        def keys(purpose):
            shared = run_keys(seed_key, purpose, num_runs)
            return shared if potential.is_batch_shared else chain_keys(shared, num_chains)

        row = sum(leaf.nbytes // max(len(leaf), 1) for leaf in jax.tree.leaves(potential.data))
        lanes = num_runs * (1 if potential.is_batch_shared else num_chains) * parts.num_batches
        # Two blocks are in memory at a time: one in use, and one under way.
        self.longest = int(np.clip(_STREAM_BYTES // (2 * lanes * potential.batch_size * row), 1, 1024))
        self._places = _places(potential, keys(Purpose.BATCH), parts.num_batches, self.longest)
        self._places_measured = _places(potential, keys(Purpose.MEASURE_BATCH), parts.coupling.num_measured, 1)
        self._num_pieces = -(-potential.num_data // potential.batch_size)
        self._num_regressed = parts.estimator.num_regressed
        self._worker = concurrent.futures.ThreadPoolExecutor(1, "isotherm-feed")
        self._blocks: dict[int, concurrent.futures.Future[Stream]] = {}

    def block(self, first: int, last: int) -> Stream:
        known = self._blocks
        self._blocks = {start: known.get(start) or self._begin(start) for start in (first, last)}
        return self._blocks[first].result()

    def _begin(self, first: int) -> concurrent.futures.Future[Stream]:
        return self._worker.submit(self._gather, self._places, first)

    def measured(self, iteration: int) -> Stream:
        return self._gather(self._places_measured, iteration)

    def refreshed(self, program: Any, carry: Any) -> Any:
        """As with the data on the device, whose pieces travel here one after another."""
        sums = jnp.zeros_like(carry.book.best_energy), jnp.zeros_like(carry.book.best_energy)
        for first in range(0, self._num_pieces, self.longest or 1):
            count = min(self.longest or 1, self._num_pieces - first)
            sums = program.add_pieces(self._pieces(first), jnp.asarray(count, jnp.int32), carry, sums)
        return program.refresh(self._numbered(), carry, sums[0] + sums[1])

    def _pieces(self, first: int) -> Stream:
        """Consecutive rows in pieces of the batch size; past the last row they begin again, with weight zero."""
        size, num_data = self._potential.batch_size, self._potential.num_data
        rows = (first * size + np.arange((self.longest or 1) * size)).reshape(-1, size)
        return self._stream(first, rows % num_data, jnp.asarray((rows < num_data).astype(np.float32)))

    def _numbered(self) -> Stream:
        """The batches from which an estimator learns, which are the same for all chains and times."""
        key, num_data = jnp.zeros(2, jnp.uint32), jnp.asarray(self._potential.num_data)
        numbers = jnp.arange(max(self._num_regressed, 1))
        places, weights = jax.vmap(lambda number: self._potential.places(key, number, num_data))(numbers)
        return self._stream(0, np.asarray(places), weights)

    def _gather(self, places_from: Callable[[Array], tuple[Array, Array]], first: int) -> Stream:
        places, weights = places_from(jnp.asarray(first, jnp.int32))
        return self._stream(first, np.asarray(places), weights)

    def _stream(self, first: int, rows: np.ndarray, weights: Array) -> Stream:
        examples = jax.tree.map(lambda leaf: jax.device_put(leaf[rows]), self._potential.data)
        return Stream(jnp.asarray(first, jnp.int32), examples, weights, jnp.asarray(self._potential.num_data))


def _places(potential: Any, keys: Array, num_batches: int, length: int) -> Callable[[Array], tuple[Array, Array]]:
    """Maps a first iteration to rows and weights of a block: those that a program with the data would take."""

    def of_key(key, batch, iteration):
        return potential.places(fold(key, batch), iteration, jnp.asarray(potential.num_data))

    for _ in keys.shape[:-1]:
        of_key = jax.vmap(of_key, (0, None, None))
    each = jax.vmap(jax.vmap(of_key, (None, 0, None)), (None, None, 0))
    return jax.jit(lambda first: each(keys, jnp.arange(num_batches), first + jnp.arange(length)))


def feeder_of(potential: Potential, parts: Parts, seed_key: Array, num_runs: int, num_chains: int) -> Feeder:
    """The feeder that a potential needs."""
    if not potential.is_streamed:
        return Feeder(potential)
    while isinstance(potential, WrappedPotential):
        potential = potential.inner
    return StreamFeeder(potential, parts, seed_key, num_runs, num_chains)
