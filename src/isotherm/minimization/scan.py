"""Scans of one coordinate: values with slopes on a line, and where the cubics between them are lowest."""

import numpy as np

from isotherm.minimization.descent import Minimum
from isotherm.minimization.objective import Objective

# Points of a scan.
NUM_POINTS = 8


def scan(
    objective: Objective, rng: np.random.Generator, current: Minimum, place: int, share: float
) -> tuple[np.ndarray, float]:
    """The most promising point on the line through a minimum along one coordinate, and the value that is expected there.

    Args:
        objective: what is minimized.
        rng: of the points, one in each of as many equal parts.
        current: the minimum.
        place: the coordinate.
        share: how much of the box the scan sees, around the minimum.
    """
    middle = current.z[place]
    low, high = middle - share / 2, middle + share / 2
    if objective.space.is_bounded:
        low, high = (0.0, 1.0) if share >= 1.0 else (max(low, 0.0), min(high, 1.0))
    places = low + (high - low) * (np.arange(NUM_POINTS) + rng.uniform(size=NUM_POINTS)) / NUM_POINTS
    points = np.repeat(current.z[None], NUM_POINTS, axis=0)
    points[:, place] = places
    values, gradients = objective.many(points)
    nodes = np.append(places, middle)
    heights, slopes = np.append(values, current.value), np.append(gradients[:, place], 0.0)
    best, expected = lowest_of_cubics(nodes, heights, slopes, middle)
    found = current.z.copy()
    found[place] = best
    return found, expected


def lowest_of_cubics(nodes: np.ndarray, values: np.ndarray, slopes: np.ndarray, but: float) -> tuple[float, float]:
    """The lowest interior minimum of the cubics through neighboring nodes, or the lowest node other than `but`.

    Example:
        >>> place, value = lowest_of_cubics(np.array([0.0, 2.0]), np.array([1.0, 1.0]), np.array([-2.0, 2.0]), 0.0)
        >>> place, value
        (1.0, 0.0)
    """
    order = np.argsort(nodes)
    nodes, values, slopes = nodes[order], values[order], slopes[order]
    others = nodes != but
    lowest = int(np.argmin(np.where(others, values, np.inf)))
    best, expected = float(nodes[lowest]), float(values[lowest])
    width = np.diff(nodes)
    # On [0, 1] the cubic is a t^3 + b t^2 + c t + value.
    c, after, rise = slopes[:-1] * width, slopes[1:] * width, np.diff(values)
    a, b = c + after - 2 * rise, 3 * rise - 2 * c - after
    discriminant = b**2 - 3 * a * c
    # The root of the derivative at which the second derivative, twice the root below, is positive.
    root = np.sqrt(np.maximum(discriminant, 0.0))
    below = b + root
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(b >= 0, -c / below, (root - b) / (3 * a))
    is_inside = (discriminant > 0) & (t > 0) & (t < 1)
    t = np.where(is_inside, t, 0.0)
    bottoms = np.where(is_inside, ((a * t + b) * t + c) * t + values[:-1], np.inf)
    first = int(np.argmin(bottoms)) if bottoms.size else 0
    if bottoms.size and bottoms[first] < expected:
        return float(nodes[first] + t[first] * width[first]), float(bottoms[first])
    return best, expected
