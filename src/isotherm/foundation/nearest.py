"""Nearest centers of points."""

import numpy as np


def nearest_centers(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of the center, (k, d), nearest to each point, (..., d), and its distance.

    One center at a time, so that no array is larger than `points`. Points with NaN get center 0 at infinite distance.
    """
    nearest = np.zeros(points.shape[:-1], int)
    closest = np.full(points.shape[:-1], np.inf)
    for number, center in enumerate(centers):
        square = np.sum((points - center) ** 2, axis=-1)
        is_closer = square < closest
        nearest, closest = np.where(is_closer, number, nearest), np.where(is_closer, square, closest)
    return nearest, np.sqrt(closest)
