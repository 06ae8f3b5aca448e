"""What a compiled program depends on: everything about a potential but the values of its data, and the settings of a sampler.

Two potentials that differ in nothing else share a program: another split of a data set, or a buffer that has been filled
further, compiles nothing. Nor does a sampler that is built again with the same settings.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from isotherm.potentials.potential import Potential


@dataclasses.dataclass(frozen=True)
class Alike:
    """An object that stands for all that have its key. It is kept, so that no address in the key is used again."""

    key: Any
    kept: Any = dataclasses.field(compare=False)


def outline(potential: Any) -> Alike:
    """A potential whose data are shapes."""
    fields = _fields(potential)
    if fields is None:
        return Alike(_key(potential), potential)
    changes: dict[str, Any] = {}
    key: list[Any] = [type(potential)]
    for field in fields:
        value = getattr(potential, field.name)
        if isinstance(value, Potential):
            inner = outline(value)
            changes[field.name], part = inner.kept, inner.key
        elif field.name == "data":
            shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), value)
            changes["data"] = shapes
            leaves = tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(shapes))
            part = (jax.tree.structure(shapes), leaves)
        elif field.name == "num_used":
            # The number in use travels with the data.
            part = value is None
        else:
            part = _key(value)
        key.append((field.name, part))
    return Alike(tuple(key), dataclasses.replace(potential, **changes))


def alike(value: Any) -> Alike:
    """An object by the values of its fields, as deep as they are dataclasses, tuples and numbers."""
    return Alike(_key(value), value)


def _key(value: Any) -> Any:
    """What tells a value from others: its contents where they can be seen, else itself, or where it lies."""
    if isinstance(value, (bool, int, float, str, type(None))):
        return type(value), value
    if isinstance(value, (tuple, list)):
        return type(value), tuple(_key(part) for part in value)
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tobytes()
    fields = _fields(value)
    if fields is not None:
        return type(value), tuple(_key(getattr(value, field.name)) for field in fields)
    try:
        hash(value)
    except TypeError:
        return "at", id(value)
    return value


def _fields(value: Any) -> tuple[dataclasses.Field[Any], ...] | None:
    """The fields that tell a value from others. One whose class merely inherits from a dataclass may hold more: None."""
    return dataclasses.fields(value) if "__dataclass_fields__" in vars(type(value)) else None
