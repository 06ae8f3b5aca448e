"""How runs and chains lie on devices."""

import jax
import numpy as np
from jax.sharding import PartitionSpec as Spec

from isotherm.engine.sharding import CHAINS, RUNS, Sharding, fill


def sharding():
    return Sharding((jax.devices()[0],), 1, 1)


def test_missing_entries_repeat_the_last():
    np.testing.assert_array_equal(fill(np.arange(6).reshape(3, 2), 0, 5)[2:], [[4, 5]] * 3)
    np.testing.assert_array_equal(fill(np.arange(6).reshape(3, 2), 1, 3)[:, 2], [1, 3, 5])


def test_sizes_are_rounded_up():
    grid = Sharding(tuple(range(6)), 2, 3)
    assert (grid.size_on(RUNS, 5), grid.filled(RUNS, 5)) == (3, 6)
    assert (grid.size_on(CHAINS, 4), grid.filled(CHAINS, 4)) == (2, 6)


def test_what_is_placed_comes_back_whole():
    tree = {"a": np.arange(12.0, dtype=np.float32).reshape(2, 3, 2), "b": np.arange(2)}
    specs = {"a": Spec(RUNS, CHAINS), "b": Spec(RUNS)}
    numbers = {RUNS: 2, CHAINS: 3}
    placed = sharding().placed(tree, specs, numbers)
    jax.tree.map(np.testing.assert_array_equal, sharding().whole(placed, specs, numbers), tree)
