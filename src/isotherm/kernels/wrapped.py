"""Kernels around another kernel: a box that rejects moves out of it, and a limit on displacements."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import check_real, refuse, short
from isotherm.foundation.parts import of_inner
from isotherm.kernels.kernel import Kernel, Move


@dataclasses.dataclass(frozen=True, eq=False)
class WrappedKernel(Kernel):
    """Base of kernels around another one, `inner`: all members but `step` are those of `inner`."""

    inner: Kernel

    needs_noise = of_inner("needs_noise")
    needs_curvature = of_inner("needs_curvature")
    is_joint = of_inner("is_joint")
    step_errors = of_inner("step_errors")
    preconditioner = of_inner("preconditioner")
    check = of_inner("check")
    init = of_inner("init")
    rejected = of_inner("rejected")
    statistics = of_inner("statistics")
    diagnose = of_inner("diagnose")


@dataclasses.dataclass(frozen=True, eq=False)
class Limited(WrappedKernel):
    """Shortens gradients, multiplier included, to displacements epsilon |g| of at most `length`; their direction stays.

    Attributes:
        inner: the kernel that moves.
        length: the largest displacement, in units of the position.

    Differs from the thesis: it has no such limit, and some of its runs overflow.
    """

    length: float

    is_elementwise = of_inner("is_elementwise")

    def __post_init__(self):
        check_real("max_displacement", self.length, "Give a length, such as a tenth of the domain.", above=0.0)

    def step(self, state: Any, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> Any:
        # In units of the largest component, whose square cannot overflow; beyond 1e37 its inverse may be flushed to zero.
        leaves = jax.tree.leaves(gradient)
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf), initial=0.0) for leaf in leaves]))
        unit = jnp.where((largest > 0) & jnp.isfinite(largest), jnp.minimum(largest, 1e37), 1.0)
        norm = jnp.sqrt(sum(jnp.sum((leaf / unit) ** 2) for leaf in leaves))
        allowed = self.length / move.step_size
        factor = jnp.where(norm > allowed / unit, allowed / norm, unit)
        # A gradient that is not finite has no direction, and gives no displacement.
        shortened = jax.tree.map(
            lambda g: jnp.nan_to_num((factor * (g / unit)).astype(g.dtype), posinf=0.0, neginf=0.0), gradient
        )
        return self.inner.step(state, shortened, noise, move, curvature)


class BoxedState(NamedTuple):
    """The state of the inner kernel, and the number of rejected moves."""

    inner: Any
    num_rejected: Array

    @property
    def position(self) -> Any:
        """The position of the inner kernel."""
        return self.inner.position


@dataclasses.dataclass(frozen=True, eq=False)
class Within(WrappedKernel):
    """Rejects proposals outside a box: the position stays, and the momentum changes sign.

    With v the proposed momentum, the chain continues from (x, -v). Flat energies then keep the uniform distribution exactly; a
    momentum that is kept, or set to zero, would crowd the chain at the walls.

    Attributes:
        inner: the kernel that moves.
        box: (low, high), numbers or arrays that broadcast against each leaf of the position.

    Differs from the thesis: the author's code, which rejects in the same way, has no momentum in a box.
    """

    box: tuple[Any, Any]

    def __post_init__(self):
        low, high = np.asarray(self.box[0], float), np.asarray(self.box[1], float)
        if _broadcast(low.shape, high.shape) is None:
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
            if _broadcast(shape, own) != own:
                remedy = "Give numbers, or one low and one high end for every coordinate: (lows, highs)."
                refuse("box", f"(low, high) of shape {own}, as the position", f"ends of shape {shape}", remedy)
            if isinstance(leaf, np.ndarray) and not np.all((leaf >= self.box[0]) & (leaf <= self.box[1])):
                rule = "inside the box, which a chain cannot enter from outside"
                got = f"a start from {leaf.min():.6g} to {leaf.max():.6g}"
                refuse("init", rule, got, "Start inside, or widen it.")

    def init(self, position: Any) -> BoxedState:
        return BoxedState(self.inner.init(position), jnp.zeros((), jnp.int32))

    def step(self, state: BoxedState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> BoxedState:
        moved = self.inner.step(state.inner, gradient, noise, move, curvature)
        is_inside = jax.vmap(self._holds)(moved.position) if self.is_joint else self._holds(moved.position)

        def kept(new, old):
            return jnp.where(is_inside.reshape(is_inside.shape + (1,) * (new.ndim - is_inside.ndim)), new, old)

        after = jax.tree.map(kept, moved, self.inner.rejected(state.inner, moved))
        return BoxedState(after, state.num_rejected + (~is_inside).astype(jnp.int32))

    def statistics(self, state: BoxedState) -> dict[str, Any]:
        return {"num_rejected": state.num_rejected, **self.inner.statistics(state.inner)}

    def _holds(self, position: Any) -> Array:
        # NaN counts as outside.
        sides = [jnp.all((x >= self.box[0]) & (x <= self.box[1])) for x in jax.tree.leaves(position)]
        return jnp.all(jnp.stack(sides))


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def limited(kernel: Kernel, length: float | None) -> Kernel:
    """`kernel` with displacements of at most `length`; `kernel` itself for None."""
    return kernel if length is None else Limited(kernel, length)


def within(kernel: Kernel, box: tuple[Any, Any] | None) -> Kernel:
    """`kernel` with proposals outside `box` rejected; `kernel` itself for None."""
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
