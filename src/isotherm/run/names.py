"""What the coordinates of a position are called in tables and plots: `beta[3]`, or `x[3]` for a position that is one array."""

import math
from typing import Any

import jax
import numpy as np

from isotherm.run.storage.pytree_json import named_leaves

Shapes = dict[str, tuple[int, ...]]


def shapes_of(draws: Any, lead: int) -> Shapes:
    """Shapes of the leaves of a position by their names, from draws with `lead` axes before those of the position."""
    return {name: tuple(leaf.shape[lead:]) for name, leaf in leaves_by_name(draws).items()}


def leaves_by_name(draws: Any) -> dict[str, Any]:
    """The leaves of a position, or of draws, by the names that users see."""
    return {"x": draws} if jax.tree_util.all_leaves([draws]) else named_leaves(draws)


def coordinate_name(shapes: Shapes, number: int) -> str:
    """The name of a coordinate, counted through the leaves.

    Example:
        >>> coordinate_name({"alpha": (), "beta": (2, 3)}, 4)
        'beta[1, 0]'
    """
    for name, shape in shapes.items():
        if number < math.prod(shape):
            place = [int(part) for part in np.unravel_index(number, shape)] if shape else []
            return f"{name}{place}" if place else name
        number -= math.prod(shape)
    raise IndexError(number)


def coordinate_names(shapes: Shapes) -> list[str]:
    """The names of all coordinates, in the order of the leaves."""
    return [
        f"{name}{[int(part) for part in place]}" if place else name
        for name, shape in shapes.items()
        for place in np.ndindex(*shape)
    ]


def of_small_leaves(shapes: Shapes, few: int) -> np.ndarray:
    """The places of the coordinates of leaves that hold up to a few numbers, counted through the leaves.

    Example:
        >>> of_small_leaves({"alpha": (), "beta": (2, 3), "gamma": (2,)}, 4)
        array([0, 7, 8])
    """
    sizes = np.array([math.prod(shape) for shape in shapes.values()])
    begins = np.cumsum(sizes) - sizes
    places = [np.arange(begin, begin + size) for begin, size in zip(begins, sizes, strict=True) if size <= few]
    return np.concatenate([np.zeros(0, int), *places])
