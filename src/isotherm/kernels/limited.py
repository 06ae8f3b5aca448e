"""A limit on how far a gradient may carry any kernel in one move."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from isotherm.estimators.estimator import Curvature
from isotherm.foundation.errors import check_real
from isotherm.kernels.kernel import Kernel, Move, WrappedKernel


@dataclasses.dataclass(frozen=True, eq=False)
class Limited(WrappedKernel):
    """Shortens gradients, multiplier included, whose displacement epsilon |g| exceeds a length; their direction stays.

    Attributes:
        inner: the kernel that moves.
        length: the longest displacement, in units of the position.

    Differs from the thesis: it has no such limit, and some of its runs overflow.
    """

    length: float

    def __post_init__(self):
        check_real("max_displacement", self.length, "Give a length, such as a tenth of the domain.", above=0.0)

    @property
    def is_elementwise(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.is_elementwise

    def init(self, position: Any) -> Any:
        return self.inner.init(position)

    def step(self, state: Any, gradient: Any, noise: Any, move: Move, curvature: Curvature | None = None) -> Any:
        # In units of the largest component, whose square cannot overflow; of numbers beyond 1e37 the inverse may count as zero.
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf), initial=0.0) for leaf in jax.tree.leaves(gradient)]))
        unit = jnp.where((largest > 0) & jnp.isfinite(largest), jnp.minimum(largest, 1e37), 1.0)
        norm = jnp.sqrt(sum(jnp.sum((leaf / unit) ** 2) for leaf in jax.tree.leaves(gradient)))
        allowed = self.length / move.step_size
        factor = jnp.where(norm > allowed / unit, allowed / norm, unit)
        # A gradient that is not finite has no direction: it becomes no displacement at all.
        shortened = jax.tree.map(
            lambda g: jnp.nan_to_num((factor * (g / unit)).astype(g.dtype), posinf=0.0, neginf=0.0), gradient
        )
        return self.inner.step(state, shortened, noise, move, curvature)

    def statistics(self, state: Any) -> dict[str, Any]:
        return self.inner.statistics(state)


def limited(kernel: Kernel, length: float | None) -> Kernel:
    """`kernel` with displacements of at most `length`; `kernel` itself where there is no limit."""
    return kernel if length is None else Limited(kernel, length)
