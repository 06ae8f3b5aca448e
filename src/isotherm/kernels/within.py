"""A box around any kernel."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.estimators.estimator import Curvature
from isotherm.foundation.errors import refuse, short
from isotherm.kernels.kernel import Kernel, Move, WrappedKernel


class BoxedState(NamedTuple):
    """The state of the kernel inside, and how many of its moves were rejected."""

    inner: Any
    num_rejected: Array

    @property
    def position(self) -> Any:
        """The position of the kernel inside."""
        return self.inner.position


@dataclasses.dataclass(frozen=True, eq=False)
class Within(WrappedKernel):
    """Rejects every move of `inner` that leaves a box: the position stays, and a momentum turns round.

    With v the momentum that was proposed, the chain goes on from (x, -v). Flat energies then keep the uniform distribution exactly;
    a momentum that is kept would drive the chain into the same wall again and again, and one that is set to zero crowds it there
    too.

    Attributes:
        inner: the kernel that moves.
        box: (low, high), numbers or arrays that broadcast against each leaf of the position.

    Differs from the thesis: the author's code, which rejects in the same way, has no momentum in a box.
    """

    box: tuple[Any, Any]

    def __post_init__(self):
        low, high = np.asarray(self.box[0], float), np.asarray(self.box[1], float)
        if not _fits(low.shape, high.shape):
            got = f"shapes {low.shape} and {high.shape}"
            refuse("box", "(low, high) of one shape, or numbers", got, "Give as many ends below as above.")
        if not np.all(low < high):
            refuse("box", "(low, high) with low below high", repr(self.box), "Swap the ends, or widen the box.")

    @property
    def is_elementwise(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        # Arrays broadcast against leaves.
        return self.inner.is_elementwise and all(np.ndim(end) == 0 for end in self.box)

    def preconditioner(self, state: BoxedState) -> Any:
        return self.inner.preconditioner(state.inner)

    def check(self, position: Any) -> None:
        super().check(position)
        shape = np.broadcast_shapes(*(np.shape(end) for end in self.box))
        for leaf in jax.tree.leaves(position):
            own = leaf.shape[2:]
            if not _fits(shape, own) or np.broadcast_shapes(shape, own) != own:
                remedy = "Give numbers, or one low and one high end for every coordinate: (lows, highs)."
                refuse("box", f"(low, high) of shape {own}, as the position", f"ends of shape {shape}", remedy)
            if isinstance(leaf, np.ndarray) and not np.all((leaf >= self.box[0]) & (leaf <= self.box[1])):
                got = f"a start from {leaf.min():.6g} to {leaf.max():.6g}"
                refuse(
                    "init", "inside the box, which a chain cannot enter from outside", got, "Start inside, or widen it."
                )

    def init(self, position: Any) -> BoxedState:
        return BoxedState(self.inner.init(position), jnp.zeros((), jnp.int32))

    def step(
        self, state: BoxedState, gradient: Any, noise: Any, move: Move, curvature: Curvature | None = None
    ) -> BoxedState:
        moved = self.inner.step(state.inner, gradient, noise, move, curvature)
        is_inside = jax.vmap(self._holds)(moved.position) if self.is_joint else self._holds(moved.position)

        def kept(new, old):
            return jnp.where(is_inside.reshape(is_inside.shape + (1,) * (new.ndim - is_inside.ndim)), new, old)

        after = jax.tree.map(kept, moved, self.inner.rejected(state.inner, moved))
        return BoxedState(after, state.num_rejected + (~is_inside).astype(jnp.int32))

    def statistics(self, state: BoxedState) -> dict[str, Any]:
        return {"num_rejected": state.num_rejected, **self.inner.statistics(state.inner)}

    def _holds(self, position: Any) -> Array:
        # Written so that NaN counts as outside.
        sides = [jnp.all((x >= self.box[0]) & (x <= self.box[1])) for x in jax.tree.leaves(position)]
        return jnp.all(jnp.stack(sides))


def _fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(one, other)
    except ValueError:
        return False
    return True


def within(kernel: Kernel, box: tuple[Any, Any] | None) -> Kernel:
    """`kernel` with moves out of `box` rejected; `kernel` itself where there is no box."""
    if box is None:
        return kernel
    try:
        ends = [np.asarray(end, float) for end in box]
    except (TypeError, ValueError):
        ends = []
    if isinstance(box, str) or len(ends) != 2:
        refuse("box", "(low, high) of numbers or arrays", short(box), "Write `box=(-1.0, 1.0)`, say.")
    low, high = (float(end) if end.ndim == 0 else end for end in ends)
    return Within(kernel, (low, high))
