"""What a compiled program depends on of a potential: everything but the values of its data.

Two potentials that differ in nothing else share a program: another split of a data set, or a buffer that has been filled
further, compiles nothing.
"""

import dataclasses
from typing import Any

import jax

from isotherm.potentials.potential import Potential


class Outline:
    """A potential whose data are shapes. Equal to another if everything else about the two is the same."""

    def __init__(self, potential: Potential):
        self.potential, self._key = _outline(potential)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outline) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _outline(potential: Potential) -> tuple[Potential, Any]:
    """The potential without data, and a key. Fields are compared by value where they are plain, else by identity."""
    if not dataclasses.is_dataclass(potential):
        return potential, (type(potential), id(potential))
    changes: dict[str, Any] = {}
    key: list[Any] = [type(potential)]
    for field in dataclasses.fields(potential):
        value = getattr(potential, field.name)
        if isinstance(value, Potential):
            changes[field.name], part = _outline(value)
        elif field.name == "data":
            shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), value)
            changes["data"] = shapes
            leaves = tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(shapes))
            part = (jax.tree.structure(shapes), leaves)
        elif field.name == "num_used":
            # The number in use travels with the data.
            part = value is None
        else:
            part = value if isinstance(value, (bool, int, float, str, type(None))) else _identity(value)
        key.append((field.name, part))
    return dataclasses.replace(potential, **changes), tuple(key)


def _identity(value: Any) -> Any:
    """The value itself where it is compared by value or identity and can be; else its address."""
    try:
        hash(value)
    except TypeError:
        return ("at", id(value))
    return value
