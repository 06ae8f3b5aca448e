"""Positions of many leaves as one vector per dtype.

A network has dozens of leaves, which kernels move alike. Leaf by leaf, each draw of noise and each move would be compiled, and on
an accelerator launched, dozens of times. The engine holds vectors; energies, priors and `collect` get the tree.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.foundation.parts import Static
from isotherm.kernels.kernel import Kernel
from isotherm.potentials.potential import Evaluation, Potential, WrappedPotential

# With fewer leaves there is little to compile, and on CPUs matrix products on slices of a vector take a third longer.
MIN_LEAVES = 16


@dataclasses.dataclass(frozen=True)
class Packing:
    """How positions are packed."""

    structure: Any = None  # Of the tree; None leaves trees as they are.
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()

    @classmethod
    def of(cls, one: Any, kernel: Kernel) -> "Packing":
        """For positions like `one`; packs many leaves if the kernel is elementwise."""
        leaves, structure = jax.tree.flatten(one)
        if len(leaves) < MIN_LEAVES or not kernel.is_elementwise:
            return cls()
        return cls(structure, tuple(leaf.shape for leaf in leaves), tuple(str(leaf.dtype) for leaf in leaves))

    def pack(self, tree: Any) -> Any:
        """Vectors (*lead, size) by dtype, of a tree with leaves (*lead, *shape)."""
        if self.structure is None:
            return tree
        flat = [
            leaf.reshape((*leaf.shape[: leaf.ndim - len(shape)], -1))
            for leaf, shape in zip(jax.tree.leaves(tree), self.shapes, strict=True)
        ]
        return {name: jnp.concatenate([flat[k] for k in places], axis=-1) for name, places in self._places().items()}

    def unpack(self, vectors: Any) -> Any:
        """The inverse of `pack`."""
        if self.structure is None:
            return vectors
        leaves: list[Any] = [None] * len(self.shapes)
        for name, places in self._places().items():
            lead = vectors[name].shape[:-1]
            # The transpose of `split` is one concatenation; that of slices would be a sum of padded vectors.
            pieces = lax.split(vectors[name], [math.prod(self.shapes[k]) for k in places], axis=len(lead))
            for k, piece in zip(places, pieces, strict=True):
                leaves[k] = piece.reshape((*lead, *self.shapes[k]))
        return self.structure.unflatten(leaves)

    def around(self, potential: Potential) -> Potential:
        """The potential of packed positions."""
        return potential if self.structure is None else PackedPotential(potential, self)

    def _places(self) -> dict[str, list[int]]:
        return {name: [k for k, other in enumerate(self.dtypes) if other == name] for name in sorted(set(self.dtypes))}


@dataclasses.dataclass(frozen=True, eq=False)
class PackedPotential(WrappedPotential):
    """A potential whose positions are packed."""

    packing: Static[Packing]

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        return self.inner.draw(key_shared, key_own, iterations, self.packing.unpack(position))

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        return self.inner.evaluate(self.packing.unpack(position), batch, noise, model_state)

    def draw_reference(self, key: Any) -> Any:
        return self.packing.pack(self.inner.draw_reference(key))

    def prior_energy(self, position: Any) -> Array:
        return self.inner.prior_energy(self.packing.unpack(position))

    def piece_energy(self, position: Any, model_state: Any, batch: Any, piece: Array) -> Array:
        return self.inner.piece_energy(self.packing.unpack(position), model_state, batch, piece)

    def full_energy(self, position: Any, model_state: Any = None) -> Array:
        return self.inner.full_energy(self.packing.unpack(position), model_state)
