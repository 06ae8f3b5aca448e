"""Kernels around another kernel: a box that rejects moves out of it, or reflects them, and a limit on displacements."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from isotherm.foundation.errors import check_real, refuse, short
from isotherm.foundation.parts import Static, of_inner
from isotherm.kernels.kernel import Kernel, Move, Point

# (low, high), or (low, high, "reflect").
Box = tuple[Any, Any] | tuple[Any, Any, str] | None


@dataclasses.dataclass(frozen=True, eq=False)
class WrappedKernel(Kernel):
    """Base of kernels around another one, `inner`: all members but `step` are those of `inner`."""

    inner: Kernel

    needs_noise = of_inner("needs_noise")
    needs_words = of_inner("needs_words")
    needs_curvature = of_inner("needs_curvature")
    is_joint = of_inner("is_joint")
    moves_copies = of_inner("moves_copies")
    is_adjusted = of_inner("is_adjusted")
    step_errors = of_inner("step_errors")
    preconditioner = of_inner("preconditioner")
    step_for = of_inner("step_for")
    check = of_inner("check")
    init = of_inner("init")
    placed = of_inner("placed")
    settle = of_inner("settle")
    was_accepted = of_inner("was_accepted")
    rejected = of_inner("rejected")
    reflected = of_inner("reflected")
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
        return self.inner.step(state, self._shortened(gradient, move), noise, move, curvature)

    def settle(self, before: Any, proposed: Any, here: Point, there: Point, move: Move, uniform: Array) -> Any:
        # The test must see the forces that moved the chain.
        here, there = (point._replace(gradient=self._shortened(point.gradient, move)) for point in (here, there))
        return self.inner.settle(before, proposed, here, there, move, uniform)

    def _shortened(self, gradient: Any, move: Move) -> Any:
        # In units of the largest component, whose square cannot overflow; beyond 1e37 its inverse may be flushed to zero.
        leaves = jax.tree.leaves(gradient)
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf), initial=0.0) for leaf in leaves]))
        limit = min(1e37, float(jnp.finfo(largest.dtype).max))
        unit = jnp.where((largest > 0) & jnp.isfinite(largest), jnp.minimum(largest, limit), 1.0)
        norm = jnp.sqrt(sum(jnp.sum((leaf / unit) ** 2) for leaf in leaves))
        allowed = self.length / move.step_size
        factor = jnp.where(norm > allowed / unit, allowed / norm, unit)
        # A gradient that is not finite has no direction, and gives no displacement.
        return jax.tree.map(
            lambda g: jnp.nan_to_num((factor * (g / unit)).astype(g.dtype), posinf=0.0, neginf=0.0), gradient
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Scaled(WrappedKernel):
    """Moves a chain in the coordinates z of x = A z: a preconditioner A A^T, which leaves the distribution unchanged.

    Attributes:
        inner: the kernel that moves z.
        factor: A: a tree like the position for a diagonal, or a matrix over the flattened position.
        is_dense: whether it is a matrix.
    """

    factor: Any
    is_dense: Static[bool] = False

    def check(self, position: Any) -> None:
        self.inner.check(position)
        if self.is_joint or self.moves_copies:
            whom = "particles, which move together" if self.is_joint else "clients, which are averaged"
            refuse("step_size", f"one number for {whom}", "one for every coordinate", "Give one.")
        shapes = [leaf.shape[2:] for leaf in jax.tree.leaves(position)]
        size = sum(int(np.prod(shape)) for shape in shapes)
        if self.is_dense:
            if np.shape(self.factor) != (size, size):
                refuse(
                    "scales",
                    f"a matrix of shape {(size, size)}",
                    np.shape(self.factor),
                    "Give one row for every number.",
                )
            return
        is_alike = jax.tree.structure(self.factor) == jax.tree.structure(position)
        given = [np.shape(leaf) for leaf in jax.tree.leaves(self.factor)]
        if not is_alike or any(_broadcast(a, b) != b for a, b in zip(given, shapes, strict=True)):
            refuse(
                "step_size",
                f"a number, or like the position, of shapes {shapes}",
                f"shapes {given}",
                "Give one for every coordinate.",
            )

    def preconditioner(self, state: Any) -> Any:
        inner = self.inner.preconditioner(state)
        squares = self.factor
        if self.is_dense:
            flat, structured = ravel_pytree(state.position)
            squares = structured(jnp.sqrt(jnp.sum(jnp.asarray(self.factor) ** 2, axis=1)).astype(flat.dtype))
        squares = jax.tree.map(lambda a, x: jnp.broadcast_to(a**2, x.shape), squares, state.position)
        return squares if inner is None else jax.tree.map(jnp.multiply, squares, inner)

    def step(self, state: Any, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> Any:
        at_zero = self.inner.placed(state, jax.tree.map(jnp.zeros_like, state.position))
        moved = self.inner.step(at_zero, self._pulled(gradient), noise, move, curvature)
        displacement = self._pushed(moved.position)
        return self.inner.placed(moved, jax.tree.map(jnp.add, state.position, displacement))

    def settle(self, before: Any, proposed: Any, here: Point, there: Point, move: Move, uniform: Array) -> Any:
        here, there = (point._replace(gradient=self._pulled(point.gradient)) for point in (here, there))
        return self.inner.settle(before, proposed, here, there, move, uniform)

    def _pulled(self, gradient: Any) -> Any:
        """A^T times a gradient."""
        if not self.is_dense:
            return jax.tree.map(lambda a, g: (a * g).astype(g.dtype), self.factor, gradient)
        flat, structured = ravel_pytree(gradient)
        return structured((flat @ self.factor).astype(flat.dtype))

    def _pushed(self, displacement: Any) -> Any:
        """A times a displacement."""
        if not self.is_dense:
            return jax.tree.map(lambda a, z: (a * z).astype(z.dtype), self.factor, displacement)
        flat, structured = ravel_pytree(displacement)
        return structured((jnp.asarray(self.factor) @ flat).astype(flat.dtype))


class BoxedState(NamedTuple):
    """The state of the inner kernel, and the number of moves out of the box, rejected or reflected."""

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
            if not isinstance(leaf, np.ndarray):
                continue
            # An end beyond the largest number of half precision is infinite there.
            with np.errstate(over="ignore"):
                is_inside = np.all((leaf >= self.box[0]) & (leaf <= self.box[1]))
            if not is_inside:
                rule = "inside the box, which a chain cannot enter from outside"
                got = f"a start from {leaf.min():.6g} to {leaf.max():.6g}"
                refuse("init", rule, got, "Start inside, or widen it.")

    def init(self, position: Any) -> BoxedState:
        return BoxedState(self.inner.init(position), jnp.zeros((), jnp.int32))

    def step(self, state: BoxedState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> BoxedState:
        moved = self.inner.step(state.inner, gradient, noise, move, curvature)
        if self.is_adjusted:
            # `settle` rejects proposals outside.
            return state._replace(inner=moved)
        is_inside = self._is_inside(moved.position)
        after = self._after(state.inner, moved, is_inside)
        return BoxedState(after, state.num_rejected + (~is_inside).astype(jnp.int32))

    def placed(self, state: BoxedState, position: Any) -> BoxedState:
        return state._replace(inner=self.inner.placed(state.inner, position))

    def settle(
        self, before: BoxedState, proposed: BoxedState, here: Point, there: Point, move: Move, uniform: Array
    ) -> BoxedState:
        is_inside = self._is_inside(proposed.position)
        there = there._replace(energy=jnp.where(is_inside, there.energy, jnp.inf))
        after = self.inner.settle(before.inner, proposed.inner, here, there, move, uniform)
        return BoxedState(after, before.num_rejected + (~is_inside).astype(jnp.int32))

    def was_accepted(self, state: BoxedState) -> Array:
        return self.inner.was_accepted(state.inner)

    def statistics(self, state: BoxedState) -> dict[str, Any]:
        return {"num_rejected": state.num_rejected, **self.inner.statistics(state.inner)}

    def _after(self, before: Any, moved: Any, is_inside: Array) -> Any:
        """The state of the inner kernel: `moved` where it is inside, else `before` with its move rejected."""

        def kept(new, old):
            return jnp.where(is_inside.reshape(is_inside.shape + (1,) * (new.ndim - is_inside.ndim)), new, old)

        return jax.tree.map(kept, moved, self.inner.rejected(before, moved))

    def _is_inside(self, position: Any) -> Array:
        return jax.vmap(self._holds)(position) if self.is_joint else self._holds(position)

    def _holds(self, position: Any) -> Array:
        # NaN counts as outside.
        sides = [jnp.all((x >= self.box[0]) & (x <= self.box[1])) for x in jax.tree.leaves(position)]
        return jnp.all(jnp.stack(sides))


@dataclasses.dataclass(frozen=True, eq=False)
class Reflecting(Within):
    """Reflects proposals at the walls of a box, as often as needed; a coordinate's momentum changes sign at every wall.

    With w = high - low, r = d mod 2w and d the distance of a coordinate beyond a wall, it comes back to the distance min(r, 2w - r)
    from that wall. A move that is not finite is rejected, as `Within` does.

    Flat energies keep the uniform distribution exactly. On a slope each wall acts as if it lay about epsilon g / 2 further inside,
    where g is the slope of the energy towards it: a bias of order epsilon. `Within` has none for SGLD on a constant slope, but
    loses the whole move if one coordinate of many leaves the box.

    Attributes:
        inner: the kernel that moves.
        box: (low, high), numbers or arrays that broadcast against each leaf of the position; an end may be infinite.

    Reference:
        Zheng et al. 2024, "Constrained exploration via reflected replica exchange stochastic gradient Langevin dynamics"
        (arXiv:2405.07839).
    """

    def _after(self, before: Any, moved: Any, is_inside: Array) -> Any:
        position = jax.tree.map(lambda x: self._folded(x)[0], moved.position)
        is_turned = jax.tree.map(lambda x: self._folded(x)[1], moved.position)
        back = self.inner.reflected(moved, position, is_turned)
        return super()._after(before, back, self._is_inside(back.position))

    def statistics(self, state: BoxedState) -> dict[str, Any]:
        return {"num_reflected": state.num_rejected, **self.inner.statistics(state.inner)}

    def _folded(self, x: Array) -> tuple[Array, Array]:
        """Coordinates that the walls brought back, and whether they met an odd number of walls."""
        low, high = map(jnp.asarray, self.box)
        width = high - low
        beyond = jnp.maximum(jnp.maximum(low - x, x - high), 0.0)
        rest = jnp.mod(beyond, 2.0 * width)
        depth = jnp.minimum(rest, 2.0 * width - rest)
        back = jnp.clip(jnp.where(x < low, low + depth, high - depth), low, high)
        is_beyond = beyond > 0.0
        return jnp.where(is_beyond, back, x).astype(x.dtype), is_beyond & (rest < width)


def innermost_kernel(kernel: Any) -> Any:
    """A kernel without its wrappers."""
    while isinstance(kernel, WrappedKernel):
        kernel = kernel.inner
    return kernel


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def limited(kernel: Kernel, length: float | None) -> Kernel:
    """`kernel` with displacements of at most `length`; `kernel` itself for None."""
    return kernel if length is None else Limited(kernel, length)


def scaled(kernel: Kernel, factor: Any, is_dense: bool = False) -> Kernel:
    """`kernel` in coordinates scaled by `factor`; a box stays around it."""
    if is_dense and (np.ndim(factor) != 2 or np.shape(factor)[0] != np.shape(factor)[1]):
        remedy = "Leave out `is_dense` for a diagonal."
        refuse("factor", "a square matrix", f"shape {np.shape(factor)}", remedy)
    if is_dense and isinstance(kernel, Reflecting):
        refuse("factor", "diagonal for a box that reflects", "a matrix", "Use `box=(low, high)`.")
    if isinstance(kernel, Within):
        return dataclasses.replace(kernel, inner=scaled(kernel.inner, factor, is_dense))
    return Scaled(kernel, factor, is_dense)


def within(kernel: Kernel, box: Box) -> Kernel:
    """`kernel` with proposals outside `box` rejected, or reflected for (low, high, "reflect"); `kernel` itself for None."""
    if box is None:
        return kernel
    given: Any = box
    is_reflecting = isinstance(box, (tuple, list)) and len(box) == 3 and isinstance(box[2], str) and box[2] == "reflect"
    try:
        ends = [np.asarray(end, float) for end in (given[:2] if is_reflecting else given)]
    except (TypeError, ValueError):
        ends = []
    if isinstance(box, str) or len(ends) != 2:
        remedy = 'Write `box=(-1.0, 1.0)`, say, or `box=(-1.0, 1.0, "reflect")`.'
        refuse("box", '(low, high) of numbers or arrays, or (low, high, "reflect")', short(box), remedy)
    if is_reflecting and getattr(kernel, "is_adjusted", False):
        remedy = 'Leave out "reflect": its test would need the density of reflected proposals.'
        refuse("box", f"(low, high) for {type(kernel).__name__}, which rejects proposals", short(box), remedy)
    low, high = (float(end) if end.ndim == 0 else end for end in ends)
    return (Reflecting if is_reflecting else Within)(kernel, (low, high))
