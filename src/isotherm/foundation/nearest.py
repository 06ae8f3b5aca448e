"""Which of some centers is nearest to a point."""

import numpy as np


def nearest_centers(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of the center, (k, d), that is nearest to each point, (..., d), and its distance.

    One center at a time, so that no array is larger than `points`. Points that are not numbers belong to the first center, at an
    infinite distance: they have no weight.
    """
    nearest = np.zeros(points.shape[:-1], int)
    closest = np.full(points.shape[:-1], np.inf)
    for number, center in enumerate(centers):
        square = np.sum((points - center) ** 2, axis=-1)
        nearest = np.where(square < closest, number, nearest)
        # Which of the two is smaller is not asked of NaN.
        closest = np.where(square < closest, square, closest)
    return nearest, np.sqrt(closest)
