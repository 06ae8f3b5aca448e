"""Arrays on disk behave like NumPy's."""

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.run.storage.stored_array import StoredArray


@pytest.fixture(scope="module")
def run():
    start = {"beta": jnp.ones((2, 2)), "alpha": jnp.asarray(-3.0)}
    energy = lambda x: 0.5 * jnp.sum((x["beta"] - 1.0) ** 2) + 2.0 * (x["alpha"] + 3.0) ** 2  # noqa: E731
    return iso.sample(energy, iso.sgld(0.2), num_steps=600, num_chains=3, num_runs=2, thinning=2, init=start)


@pytest.fixture(scope="module")
def stored(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    run.save(folder)
    return iso.load(folder)


INDICES = (
    np.int64(1),
    np.s_[0, np.int32(-1)],
    np.s_[..., np.array([1, -1, 0]), :, :],
    np.s_[:, :, np.array([True, False] * 150)],
    np.s_[:, [0, 2]],
    np.s_[1, 2, [4, 5]],
    np.s_[None, ..., 0],
    np.s_[:, :, 9:3],
    np.s_[:, :, np.array([], int)],
    np.array([False, True]),
    np.array([[0, 1], [1, 0]]),
    (),
    np.s_[0, 0, 0, 0, 0],
    True,
)


@pytest.mark.parametrize("number", range(len(INDICES)))
def test_arrays_on_disk_are_indexed_like_numpy(run, stored, number):
    found, expected = (one.draws["beta"][INDICES[number]] for one in (stored, run))
    np.testing.assert_array_equal(found, expected)
    assert np.shape(found) == np.shape(expected)
    assert found.dtype == expected.dtype


def test_arrays_on_disk_are_read_where_they_are_indexed(stored, monkeypatch):
    def read(*_):
        raise AssertionError("all of it was read")

    monkeypatch.setattr(StoredArray, "__array__", read)
    assert stored.draws["beta"][:, :, np.array([3, 1])].shape == (2, 3, 2, 2, 2)
    assert stored.select(np.array([5, 250])).num_draws == 2


@pytest.mark.parametrize("index", [7, (0, 0, 0, 0, 0, 0), np.array([5]), np.array([True, False, True]), (..., ...)])
def test_wrong_indices_raise_as_numpy_does(stored, index):
    with pytest.raises(IndexError):
        stored.draws["beta"][index]


def test_arrays_on_disk_compute_like_numpy(run, stored):
    array, leaf = np.asarray(run.draws["alpha"]), stored.draws["alpha"]
    assert (leaf.ndim, leaf.size, leaf.nbytes, len(leaf)) == (array.ndim, array.size, array.nbytes, len(array))
    pairs = [
        (leaf + 1, array + 1),
        (2.0 * leaf - leaf, array),
        (array @ np.ones(300, np.float32), leaf @ np.ones(300, np.float32)),
        (leaf > -3, array > -3),
        (-leaf, -array),
        (np.exp(leaf), np.exp(array)),
        (np.mean(leaf, axis=-1), array.mean(axis=-1)),
        (leaf.mean(), array.mean()),
        (leaf.T.reshape(-1), array.T.reshape(-1)),
        (np.stack(list(leaf)), array),
        (jnp.asarray(leaf), jnp.asarray(array)),
        (np.asarray(leaf, np.float64), array.astype(np.float64)),
        (leaf == leaf, np.ones_like(array, bool)),
    ]
    for found, expected in pairs:
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(leaf)
    with pytest.raises(TypeError):
        leaf[0] = 1.0
    with pytest.raises(TypeError):
        leaf += 1.0
    with pytest.raises(AttributeError, match="StoredArray has no attribute 'nonsense'"):
        _ = leaf.nonsense
    with pytest.raises(ValueError, match="copy=None"):
        np.asarray(leaf, copy=False)
    one = leaf[0, 0, :1]
    assert float(one[0]) == array[0, 0, 0]
