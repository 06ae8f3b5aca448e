"""Positions as users mean them, and as samplers move them."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from isotherm.foundation.errors import refuse
from isotherm.foundation.parts import Part
from isotherm.transforms.transform import Transform


@dataclasses.dataclass(frozen=True, eq=False)
class Space(Part):
    """Transforms of some leaves of a position. Called with a free position it gives the constrained one.

    Attributes:
        transforms: a transform for all leaves, or a dict of them by the names of a position that is a dict; dicts may be nested,
            and leaves that are not named stay free.
    """

    transforms: Any

    def __post_init__(self):
        _check(self.transforms)

    def __call__(self, free: Any) -> Any:
        """The position as the user means it. Leading axes are allowed, as in `unconstrained`."""
        return _mapped(self.transforms, free, lambda transform, leaf: transform.forward(leaf))

    def unconstrained(self, position: Any) -> Any:
        """The position as the sampler moves it. Refuses values outside their constraints, unless they are traced."""

        def inverse(transform, leaf):
            if not isinstance(leaf, Tracer) and not np.all(transform.is_inside(leaf)):
                got = np.array2string(np.asarray(leaf), precision=3, threshold=8)
                refuse("init", f"{transform.rule}, as {transform!r} says", got, "Start inside the constraint.")
            return transform.inverse(leaf)

        return _mapped(self.transforms, position, inverse)

    def log_jacobian(self, free: Any) -> Array:
        """The log of the volume that a unit of free volume becomes."""
        parts: list[Array] = []
        _mapped(self.transforms, free, lambda transform, leaf: parts.append(transform.log_jacobian(leaf)))
        return sum(parts, jnp.zeros(()))

    def places(self, free: Any) -> np.ndarray:
        """For every coordinate of a free position, counted through the leaves, that of the constrained one beside it."""
        constrained = jax.eval_shape(self, free)
        found, begin = [], 0
        for own, other in zip(jax.tree.leaves(free), jax.tree.leaves(constrained), strict=True):
            numbers = np.arange(other.size).reshape(other.shape)
            found.append(begin + numbers[tuple(slice(size) for size in own.shape)].reshape(-1))
            begin += other.size
        return np.concatenate(found)


def _check(transforms: Any) -> None:
    if isinstance(transforms, dict) and transforms:
        for inner in transforms.values():
            _check(inner)
    elif not isinstance(transforms, Transform):
        rule = "a transform, or a dict of transforms by the names of parameters"
        refuse("transforms", rule, repr(transforms), 'Give {"sigma": iso.transforms.positive()}, say.')


def _mapped(transforms: Any, tree: Any, function: Callable[[Transform, Any], Any]) -> Any:
    """`function(transform, leaf)` at the leaves that have one."""
    if transforms is None:
        return tree
    if isinstance(transforms, Transform):
        return jax.tree.map(lambda leaf: function(transforms, leaf), tree)
    if not isinstance(tree, dict) or not set(transforms) <= set(tree):
        got = sorted(map(str, tree)) if isinstance(tree, dict) else type(tree).__name__
        refuse(
            "init",
            f"a dict with {', '.join(map(str, transforms))}",
            got,
            "The names of the transforms must be its own.",
        )
    return {name: _mapped(transforms.get(name), child, function) for name, child in tree.items()}
