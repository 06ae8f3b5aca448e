"""Parts as pytrees: frozen dataclasses whose real numbers travel as arguments, and whose structure a program is compiled for.

A field is a child of the tree unless its type is `Static[...]`. Numbers and arrays are leaves, parts and tuples of them are
subtrees, None is nothing, and a plain function, such as a schedule of optax, belongs to the structure: it is compared by identity.
Static fields are counts, periods, switches, names and functions. So a changed number compiles nothing, and `jax.vmap` maps over
settings. Fields are checked when a user builds a part (`__post_init__`), and not when JAX rebuilds it around tracers.
"""

import dataclasses
import functools
import weakref
from collections.abc import Iterator
from typing import Annotated, Any, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.short_text import short_fields


class _IsStatic:
    """Marks the type of a field."""


T = TypeVar("T")


def with_python_numbers(value: T) -> T:
    """Called where a frozen dataclass is built: scalars of NumPy in its fields become Python's, which JSON knows.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Length:
        ...     steps: int
        >>> with_python_numbers(Length(np.int64(3)))
        Length(steps=3)
    """
    for name, held in vars(value).items():
        if isinstance(held, np.generic):
            object.__setattr__(value, name, held.item())
    return value


Static = Annotated[T, _IsStatic]


class Part:
    """Base of everything that a sampler is made of. Subclasses are frozen dataclasses (`eq=False`).

    A subclass that is no dataclass, or holds more than its fields, is taken as one piece, and compared by identity.

    Example:
        >>> @dataclasses.dataclass(frozen=True, eq=False)
        ... class Spring(Part):
        ...     stiffness: float
        ...     name: Static[str] = ""
        >>> jax.tree.leaves(Spring(2.0, "a")), jax.tree.map(lambda k: 3 * k, Spring(2.0, "a")).stiffness
        ([2.0], 6.0)
    """

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        # Ahead of the dataclass decorator, which leaves a `__repr__` that is there alone: its own prints arrays in full.
        cls.__repr__ = cls.__dict__.get("__repr__", Part.__repr__)
        jax.tree_util.register_pytree_with_keys(cls, _flatten_with_keys, lambda *given: _rebuild(cls, *given), _flatten)

    def __repr__(self) -> str:
        return self.short_repr(0)

    def short_repr(self, depth: int) -> str:
        """One line for people, inside `depth` other parts."""
        return short_fields(self, depth) if dataclasses.is_dataclass(self) else f"{type(self).__name__}()"

    def replace_unchecked(self, **changes: Any) -> Self:
        """A copy with other values, which are not checked: for values that are traced."""
        value = object.__new__(type(self))
        for name, old in vars(self).items():
            object.__setattr__(value, name, changes.get(name, old))
        return value


def as_arguments(tree: Any, dtype: Any) -> Any:
    """The leaves of parts as arrays, numbers in one type: Python's, NumPy's and JAX's then make one program."""

    def convert(leaf):
        if isinstance(leaf, jax.Array):
            return leaf
        if isinstance(leaf, (bool, int, float, np.generic)):
            # On the host: a loop by hand converts all numbers of its parts in every step.
            return np.asarray(leaf, dtype)
        return jnp.asarray(leaf)

    return jax.tree.map(convert, tree)


def number_dtype(position: Any) -> Any:
    """The type of a sampler's numbers: that of the position, and no less than single precision."""
    return jnp.promote_types(jnp.result_type(*jax.tree.leaves(position)), jnp.float32)


def functions_of(structure: Any) -> Iterator[Any]:
    """The functions and the like in the structure of a tree, while they exist."""
    for node in _auxiliary(structure):
        for value in node if isinstance(node, tuple) else (node,):
            if isinstance(value, Held) and value.get() is not None:
                yield value.get()


class Held:
    """A value that is compared by identity, held weakly: who keeps a structure does not keep the value."""

    def __init__(self, value: Any):
        self._id = id(value)
        try:
            self.get = weakref.ref(value)
        except TypeError:
            self.get = lambda: value

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Held) and self._id == other._id and self.get() is other.get() is not None

    def __repr__(self) -> str:
        return f"<{self.get()!r}>"


class _Fixed:
    """A function in the place of a child."""

    def __init__(self, value: Any):
        self.value = value


jax.tree_util.register_pytree_node(_Fixed, lambda f: ((), _hold(f.value)), lambda kept, _: _Fixed(_release(kept)))


def _names(value: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Names of the children and of the static fields; None for what is taken as one piece."""
    if not dataclasses.is_dataclass(value):
        return None
    free, fixed = names = _names_of_type(type(value))
    return names if all(name in free or name in fixed for name in vars(value)) else None


@functools.cache
def _names_of_type(cls: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    is_static = {f.name: _IsStatic in getattr(f.type, "__metadata__", ()) for f in dataclasses.fields(cls)}
    return tuple(n for n, s in is_static.items() if not s), tuple(n for n, s in is_static.items() if s)


def _flatten(value: Any) -> tuple[tuple[Any, ...], Any]:
    names = _names(value)
    if names is None:
        return (), Held(value)
    children = (getattr(value, name) for name in names[0])
    children = tuple(_Fixed(child) if _is_structure(child) else child for child in children)
    return children, (names, *(_hold(getattr(value, name)) for name in names[1]))


def _flatten_with_keys(value: Any) -> tuple[tuple[Any, ...], Any]:
    children, structure = _flatten(value)
    keys = () if isinstance(structure, Held) else map(jax.tree_util.GetAttrKey, structure[0][0])
    return tuple(zip(keys, children, strict=True)), structure


def _rebuild(cls: type, structure: Any, children: Any) -> Any:
    if isinstance(structure, Held):
        return structure.get()
    (free, fixed), *kept = structure
    value = object.__new__(cls)
    for name, child in zip(free, children, strict=True):
        object.__setattr__(value, name, child.value if isinstance(child, _Fixed) else child)
    for name, child in zip(fixed, kept, strict=True):
        object.__setattr__(value, name, _release(child))
    return value


def _is_structure(value: Any) -> bool:
    """Whether a child is a plain function or a word, which no program takes as an argument."""
    return isinstance(value, str) or (callable(value) and jax.tree_util.all_leaves([value]))


def _hold(value: Any) -> Any:
    """A static value as structures keep it: numbers, words and what is made of them as they are, all else weakly.

    Scalars of NumPy are the numbers that they hold, and make the same program.
    """
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str, type)):
        return value
    if isinstance(value, tuple):
        return tuple(_hold(child) for child in value)
    is_value = dataclasses.is_dataclass(value) and type(value).__hash__ not in (None, object.__hash__)
    return value if is_value else Held(value)


def _release(value: Any) -> Any:
    if isinstance(value, Held):
        return value.get()
    return tuple(_release(child) for child in value) if isinstance(value, tuple) else value


def _auxiliary(structure: Any) -> Iterator[Any]:
    """What the nodes of a structure hold beside their children."""
    found = structure.node_data()
    if found is not None:
        yield found[1]
    for child in structure.children():
        yield from _auxiliary(child)
