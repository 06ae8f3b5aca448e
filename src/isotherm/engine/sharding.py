"""Runs and chains over several devices.

A mesh has two axes. Runs, of which each ladder is one, never communicate. The chains of a run are told the energies of the others
once in an iteration, by an all-gather of a few numbers per chain, if their coupling reads them; every device then computes the same
coupling, and moves its own chains. Nothing that is exchanged has the size of a position.

Numbers that do not divide are filled up with copies of the last run or chain, whose results are dropped. Randomness belongs to the
global number of a run and a chain, so draws do not depend on the devices.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

RUNS, CHAINS = "runs", "chains"


@dataclasses.dataclass(frozen=True)
class Shard:
    """The chains of a run on one device, inside a sharded program."""

    number: int  # Devices that share a run.
    size: int  # Chains on each.
    total: int  # P.

    def gather(self, numbers: Array, axis: int) -> Array:
        """Numbers of all chains, from those of this device's chains along `axis`, counted from the end."""
        axis = numbers.ndim + axis
        return lax.slice_in_dim(lax.all_gather(numbers, CHAINS, axis=axis, tiled=True), 0, self.total, axis=axis)

    def own(self, tree: Any) -> Any:
        """Leaves (P, ...) restricted to this device's chains."""
        first = lax.axis_index(CHAINS) * self.size

        def cut(leaf):
            filled = jnp.concatenate([leaf, jnp.repeat(leaf[-1:], self.number * self.size - self.total, axis=0)])
            return lax.dynamic_slice_in_dim(filled, first, self.size, axis=0)

        return jax.tree.map(cut, tree)

    def place_of(self, chains: Array) -> Array:
        """Places on this device of chains by their global number; any place for chains of other devices."""
        return jnp.clip(chains - lax.axis_index(CHAINS) * self.size, 0, self.size - 1)


@dataclasses.dataclass(frozen=True)
class Sharding:
    """Devices in a grid of shards of runs by shards of chains."""

    devices: tuple[Any, ...]
    over_runs: int
    over_chains: int

    @functools.cached_property
    def mesh(self) -> Mesh:
        """The mesh of the devices."""
        grid = np.array(self.devices, object).reshape(self.over_runs, self.over_chains)
        return Mesh(grid, (RUNS, CHAINS))

    def size_on(self, axis: str, number: int) -> int:
        """The share of one device in `number` runs or chains."""
        return -(-number // (self.over_runs if axis == RUNS else self.over_chains))

    def filled(self, axis: str, number: int) -> int:
        """`number` runs or chains filled up to a multiple of the devices."""
        return self.size_on(axis, number) * (self.over_runs if axis == RUNS else self.over_chains)

    def with_parts(self, parts: Any, num_swept: int | None) -> Any:
        """Parts of a program on the devices; those of a sweep, with a leading axis of runs, are filled up."""
        potential, others = parts.potential, parts.replace_unchecked(potential=None)
        if num_swept is not None:
            others = jax.tree.map(lambda leaf: fill(np.asarray(leaf), 0, self.filled(RUNS, num_swept)), others)
        return others.replace_unchecked(potential=self.placed(potential, Spec(), {}))

    def placed(self, tree: Any, specs: Any, numbers: dict[str, int]) -> Any:
        """Arrays of the host on the devices, filled up. `specs` is a prefix of the tree."""

        def place(leaf, spec):
            leaf = np.asarray(leaf)
            for place, axis in enumerate(spec):
                if axis in numbers:
                    leaf = fill(leaf, place, self.filled(axis, numbers[axis]))
            sharding = NamedSharding(self.mesh, spec)
            return jax.make_array_from_callback(leaf.shape, sharding, lambda index: leaf[index])

        return jax.tree.map(place, tree, _like(specs, tree))

    def whole(self, tree: Any, specs: Any, numbers: dict[str, int]) -> Any:
        """Arrays of the devices on the host, without what fills them up."""

        def cut(leaf, spec):
            leaf = to_host(leaf)
            return leaf[tuple(slice(numbers.get(axis)) for axis in spec)]

        return jax.tree.map(cut, tree, _like(specs, tree))


def all_devices() -> tuple[Any, ...]:
    """The devices of all processes, so that the first few belong to as many processes as possible."""
    devices = jax.devices()
    places = {
        device: place
        for process in {d.process_index for d in devices}
        for place, device in enumerate(d for d in devices if d.process_index == process)
    }
    return tuple(sorted(devices, key=lambda device: (places[device], device.process_index)))


def fill(leaf: np.ndarray, axis: int, number: int) -> np.ndarray:
    """An array with its last entry along `axis` repeated up to `number`."""
    missing = number - leaf.shape[axis]
    return leaf if missing == 0 else np.concatenate([leaf, np.repeat(leaf.take([-1], axis), missing, axis)], axis)


def to_host(leaf: Any) -> np.ndarray:
    """An array on this host, also if other processes hold parts of it."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        if leaf.is_fully_replicated:
            return np.asarray(leaf.addressable_data(0))
        from jax.experimental import multihost_utils

        return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))
    return np.asarray(leaf)


def _like(specs: Any, tree: Any) -> Any:
    """A tree of specs like `tree`, from a prefix."""
    is_spec = lambda node: isinstance(node, Spec)  # noqa: E731
    return jax.tree.map(lambda spec, part: jax.tree.map(lambda _: spec, part), specs, tree, is_leaf=is_spec)


def choose_sharding(devices: tuple[Any, ...], num_runs: int | None, num_chains: int, splits_runs: bool) -> Any:
    """The grid of devices for runs and chains; None where one suffices.

    Runs are shared out first, since they never communicate. `splits_runs` allows several devices for the chains of a run.
    """
    runs, most = num_runs or 1, len(devices)
    grids = [
        (r, c)
        for r in range(1, min(most, runs) + 1)
        for c in range(1, (min(most // r, num_chains) if splits_runs else 1) + 1)
    ]
    loads = {grid: -(-runs // grid[0]) * -(-num_chains // grid[1]) for grid in grids}
    # The least exchange that does not cost a quarter of the speed, then the lightest load of the fullest device.
    light = [grid for grid in grids if loads[grid] <= 1.25 * min(loads.values())]
    over_runs, over_chains = min(light, key=lambda grid: (grid[1], loads[grid], grid[0]))
    number = over_runs * over_chains
    if len({getattr(one, "process_index", 0) for one in devices[:number]}) < len(
        {getattr(one, "process_index", 0) for one in devices}
    ):
        # Too few runs and chains for all processes: each computes all of them.
        return None
    return None if number == 1 else Sharding(tuple(devices[:number]), over_runs, over_chains)
