"""The nearest center, against all distances at once."""

import numpy as np

from isotherm.foundation.nearest import nearest_centers


def test_the_nearest_of_all_distances():
    rng = np.random.default_rng(0)
    points, centers = rng.standard_normal((4, 50, 3)), rng.standard_normal((7, 3))
    distances = np.linalg.norm(points[..., None, :] - centers, axis=-1)
    nearest, distance = nearest_centers(points, centers)
    np.testing.assert_array_equal(nearest, distances.argmin(axis=-1))
    np.testing.assert_allclose(distance, distances.min(axis=-1))
    assert len(np.unique(nearest)) > 3


def test_the_first_of_equals_and_of_what_is_no_number():
    nearest, distance = nearest_centers(np.array([[0.0], [np.nan], [2.0]]), np.array([[-1.0], [1.0]]))
    assert nearest.tolist() == [0, 0, 1]
    assert distance.tolist() == [1.0, np.inf, 1.0]
