"""Parts as pytrees: frozen dataclasses whose numbers are arguments of compiled programs, and whose structure is static.

A field is a child of the tree unless its type is `Static[...]`. Numbers and arrays are leaves, parts and tuples of them subtrees.
Plain functions, such as schedules of optax, are structure, compared by identity. Static fields are counts, periods, switches, names
and functions. So a changed number does not recompile, and `jax.vmap` maps over settings. `__post_init__` checks fields when a user
builds a part, not when JAX rebuilds it around tracers.
"""

import dataclasses
import functools
import weakref
from collections.abc import Iterator
from typing import Annotated, Any, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.errors import refuse
from isotherm.foundation.short_text import short_fields


class _IsStatic:
    """Marks the type of a field."""


T = TypeVar("T")
Static = Annotated[T, _IsStatic]


def with_python_numbers(value: T) -> T:
    """Replace NumPy scalars in the fields of a frozen dataclass by Python's, which JSON can hold."""
    for name, held in vars(value).items():
        if isinstance(held, np.generic):
            object.__setattr__(value, name, held.item())
    return value


class Part:
    """Base of everything that a sampler is made of. Subclasses are frozen dataclasses (`eq=False`).

    A subclass that is not a dataclass, or has attributes that are not fields, is static as a whole, and compared by identity.

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
        # Set before the dataclass decorator runs, which otherwise adds a `__repr__` that prints arrays in full.
        cls.__repr__ = cls.__dict__.get("__repr__", Part.__repr__)
        jax.tree_util.register_pytree_with_keys(cls, _flatten_with_keys, lambda *given: _rebuild(cls, *given), _flatten)

    def __repr__(self) -> str:
        return self.short_repr(0)

    def short_repr(self, depth: int) -> str:
        """One line, inside `depth` other parts."""
        return short_fields(self, depth) if dataclasses.is_dataclass(self) else f"{type(self).__name__}()"

    def replace_unchecked(self, **changes: Any) -> Self:
        """A copy with other values, which may be traced and are not checked."""
        value = object.__new__(type(self))
        for name, old in vars(self).items():
            object.__setattr__(value, name, changes.get(name, old))
        return value


def of_inner(name: str) -> Any:
    """A property: the member `name` of `self.inner`, for parts that wrap another one."""
    return property(lambda self: getattr(self.inner, name))


def as_arguments(tree: Any, dtype: Any) -> Any:
    """Leaves as arrays, with all numbers in one dtype, so that numbers of Python, NumPy and JAX share one program."""

    def convert(leaf):
        if isinstance(leaf, (bool, int, float, np.generic)):
            with np.errstate(over="ignore"):
                number = np.asarray(leaf, dtype)  # On the host: loops by hand convert all numbers in every step.
            if np.isinf(number) and not np.isinf(leaf):
                rule = f"made of numbers that {number.dtype} can hold, at most {np.finfo(number.dtype).max:.3g}"
                refuse("sampler", rule, leaf, "Give a smaller number, or np.inf for an end of a box.")
            return number
        return leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf)

    return jax.tree.map(convert, tree)


def number_dtype(position: Any) -> Any:
    """The dtype of a sampler's numbers: that of the position, at least float32."""
    return jnp.promote_types(jnp.result_type(*jax.tree.leaves(position)), jnp.float32)


def functions_of(structure: Any) -> Iterator[Any]:
    """The live functions and other objects held by the structure of a tree."""
    found = structure.node_data()
    static = () if found is None else found[1] if isinstance(found[1], tuple) else (found[1],)
    for value in static:
        if isinstance(value, Held) and value.get() is not None:
            yield value.get()
    for child in structure.children():
        yield from functions_of(child)


class Held:
    """A weak reference compared by identity."""

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


@functools.cache
def _names(cls: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Names of the children and of the static fields; None for a class that is not a dataclass."""
    if not dataclasses.is_dataclass(cls):
        return None
    is_static = {f.name: _IsStatic in getattr(f.type, "__metadata__", ()) for f in dataclasses.fields(cls)}
    return tuple(n for n, s in is_static.items() if not s), tuple(n for n, s in is_static.items() if s)


def _flatten(value: Any) -> tuple[tuple[Any, ...], Any]:
    names = _names(type(value))
    if names is None or not vars(value).keys() <= {*names[0], *names[1]}:
        return (), Held(value)
    functions = tuple(name for name in names[0] if _is_structure(getattr(value, name)))
    free, fixed = tuple(name for name in names[0] if name not in functions), (*names[1], *functions)
    children = tuple(getattr(value, name) for name in free)
    return children, ((free, fixed), *(_hold(getattr(value, name)) for name in fixed))


def _flatten_with_keys(value: Any) -> tuple[tuple[Any, ...], Any]:
    children, structure = _flatten(value)
    keys = () if isinstance(structure, Held) else map(jax.tree_util.GetAttrKey, structure[0][0])
    return tuple(zip(keys, children, strict=True)), structure


def _rebuild(cls: type, structure: Any, children: Any) -> Any:
    if isinstance(structure, Held):
        return structure.get()
    (free, fixed), *kept = structure
    value = object.__new__(cls)
    for name, child in zip((*free, *fixed), (*children, *map(_release, kept)), strict=True):
        object.__setattr__(value, name, child)
    return value


def _is_structure(value: Any) -> bool:
    """Whether a value is a string or a plain function, which cannot be an argument of a program."""
    return isinstance(value, str) or (callable(value) and jax.tree_util.all_leaves([value]))


def _hold(value: Any) -> Any:
    """A static value in a structure: numbers, strings and tuples by value, all else by weak reference."""
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
