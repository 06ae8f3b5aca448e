"""Names and columns of coordinates: `beta[3]`, or `x[3]` for a position that is one array."""

import math
from typing import Any

import jax
import numpy as np

Shapes = dict[str, tuple[int, ...]]


def named_leaves(tree: Any) -> dict[str, Any]:
    """Leaves by the names of their paths, in the order of the tree."""
    found = jax.tree_util.tree_leaves_with_path(tree)
    names = [jax.tree_util.keystr(path, simple=True, separator="-") or "value" for path, _ in found]
    if len(set(names)) < len(names):
        names = [f"{number:04d}" for number in range(len(names))]
    return dict(zip(names, (leaf for _, leaf in found), strict=True))


def tree_like(leaves: list[Any], position: Any, dtype: Any = None) -> Any:
    """A tree like the position from a list of its leaves, in their types or another."""
    like, structure = jax.tree.flatten(position)
    arrays = [np.asarray(leaf, dtype or np.asarray(old).dtype) for leaf, old in zip(leaves, like, strict=True)]
    return jax.tree.unflatten(structure, arrays)


def shapes_of(draws: Any, lead: int) -> Shapes:
    """Shapes of the leaves of a position by name, from draws with `lead` leading axes."""
    return {name: tuple(leaf.shape[lead:]) for name, leaf in leaves_by_name(draws).items()}


def leaves_by_name(draws: Any) -> dict[str, Any]:
    """Leaves by the names that users see."""
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
    """The names of all coordinates."""
    return [
        f"{name}{[int(part) for part in place]}" if place else name
        for name, shape in shapes.items()
        for place in np.ndindex(*shape)
    ]


def of_small_leaves(shapes: Shapes, few: int) -> np.ndarray:
    """The coordinates, counted through the leaves, of leaves with up to `few` numbers.

    Example:
        >>> of_small_leaves({"alpha": (), "beta": (2, 3), "gamma": (2,)}, 4)
        array([0, 7, 8])
    """
    sizes = np.array([math.prod(shape) for shape in shapes.values()])
    begins = np.cumsum(sizes) - sizes
    places = [np.arange(begin, begin + size) for begin, size in zip(begins, sizes, strict=True) if size <= few]
    return np.concatenate([np.zeros(0, int), *places])


def columns(draws: Any, lead: int, places: np.ndarray) -> np.ndarray:
    """Coordinates at the increasing `places` of all draws. Leaves on disk are read whole.

    Example:
        >>> columns({"a": np.zeros((5, 2)), "b": np.ones((5, 3))}, 1, np.array([1, 4])).tolist()[0]
        [0.0, 1.0]
    """
    found, first = [], 0
    for leaf in jax.tree.leaves(draws):
        size = int(np.prod(leaf.shape[lead:]))
        here = places[(places >= first) & (places < first + size)] - first
        first += size
        if len(here):
            flat = np.asarray(leaf).reshape(*leaf.shape[:lead], size)
            found.append(np.asarray(flat[..., here], np.float64))
    return np.concatenate(found, axis=-1)
