"""Draws in wells that are far apart are told from draws in one."""

import numpy as np
import pytest

from isotherm.diagnostics.wells import centers_of, separate

rng = np.random.default_rng(0)
ONE_WELL = {
    "normal": rng.normal(size=(2_000, 3)),
    "few draws": rng.normal(size=(130, 2)),
    "uniform": rng.uniform(size=(2_000, 2)),
    "exponential": rng.exponential(size=(2_000, 2)),
    "heavy tails": rng.standard_t(3, size=(4_000, 1)),
    "correlated": rng.normal(size=(2_000, 2)) @ np.array([[1.0, 0.99], [0.0, 0.14]]),
    "one value": np.ones((300, 2)),
}


@pytest.mark.parametrize("name", ONE_WELL)
def test_one_well_is_one(name):
    assert np.max(separate(ONE_WELL[name])) == 0


@pytest.mark.parametrize("share", [0.5, 0.1])
@pytest.mark.parametrize("direction", [[1.0, 0.0, 0.0], [0.6, 0.0, 0.8]])
def test_two_wells_are_two(share, direction):
    number = int(4_000 * share)
    values = rng.normal(size=(4_000, 3))
    values[:number] += 12.0 * np.array(direction)
    labels = separate(values)
    assert np.max(labels) == 1
    assert len(set(labels[:number])) == len(set(labels[number:])) == 1


def test_a_small_well_is_cut_off_where_it_is_emptiest():
    """The cut that sets the means apart most leaves some draws of the smaller well on the wrong side."""
    values = np.random.default_rng(0).normal(size=(4_000, 1))
    values[:400] += 9.0
    labels = separate(values)
    assert np.sum(labels[:400] != np.median(labels[:400])) + np.sum(labels[400:] != np.median(labels[400:])) <= 1


def test_a_grid_of_wells_is_taken_apart():
    places = np.stack(np.meshgrid([-4.0, 0.0, 4.0], [-4.0, 0.0, 4.0]), axis=-1).reshape(9, 2)
    values = np.concatenate([place + 0.3 * rng.normal(size=(400, 2)) for place in places])
    labels = separate(values).reshape(9, 400)
    assert np.all(labels == labels[:, :1])
    assert len(set(labels[:, 0])) == 9


def test_centers_are_those_of_the_other_chains_in_a_well():
    positions = {"x": np.array([[[0.0], [10.0]], [[2.0], [12.0]], [[4.0], [4.0]]], np.float32)}
    wells, log_weights = np.array([[0, 1], [0, 1], [0, 0]]), np.zeros((3, 2))
    centers = centers_of(positions, log_weights, wells)["x"][..., 0]
    # Of the wells 0 and 1.
    np.testing.assert_allclose(centers, [[10.0 / 3.0, 12.0], [8.0 / 3.0, 10.0], [1.0, 11.0]], rtol=1e-6)
    log_weights[1] = -np.inf
    centers = centers_of(positions, log_weights, wells)["x"][..., 0]
    # Nobody else was in well 1: the mean of the others anywhere.
    np.testing.assert_allclose(centers[0], [4.0, 4.0], rtol=1e-6)


def test_the_center_of_a_chain_that_is_alone_is_its_own():
    positions, wells = np.array([[[0.0], [2.0], [9.0]]], np.float32), np.array([[0, 0, 1]])
    np.testing.assert_allclose(centers_of(positions, np.zeros((1, 3)), wells)[..., 0], [[1.0, 9.0]])
