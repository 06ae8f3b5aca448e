"""Parts that start late, and an exchange whose rungs are all recorded, as the author's code of the image experiments has them."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.coupling import CouplingInputs, Observed
from isotherm.estimators import ControlVariate
from isotherm.estimators.control_variate import Anchor
from isotherm.exchange import Deterministic, Exchange
from isotherm.exchange.exchange import ExchangeState
from isotherm.exchange.rules import DeterministicState, Pairing
from isotherm.exchange.swaps import Swaps
from isotherm.foundation.errors import check_integer, refuse
from isotherm.foundation.parts import Static
from isotherm.foundation.periodic import Periodic
from isotherm.potentials.potential import Potential


class LateAnchor(NamedTuple):
    """An anchor, and how often it was refreshed."""

    anchor: Anchor
    num_refreshes: Array


@dataclasses.dataclass(frozen=True, eq=False)
class LateControlVariate(ControlVariate):
    """A control variate from iteration `start` on; before, energies are plain and cost nothing more.

    Attributes:
        start: a multiple of `refresh_every`, above 0.

    Reference:
        Deng 2021, supplement on uncertainty estimation: "we only update control variates every 2 epochs in the last 100 epochs".
    """

    start: Static[int] = 0

    def __post_init__(self):
        super().__post_init__()
        check_integer("start", self.start, 1, "Use `ControlVariate` for one from the first iteration on.")
        if self.start % self.refresh_every:
            refuse("start", f"a multiple of `refresh_every`, {self.refresh_every}", self.start, "Round it.")

    def init(self, potential: Potential, position: Any, model_state: Any) -> Any:
        return LateAnchor(super().init(potential, position, model_state), jnp.zeros((), jnp.int32))

    def evaluate(self, potential: Potential, state: LateAnchor, *seen: Any) -> Any:  # pyright: ignore
        return state, super().evaluate(potential, state, *seen)[1]  # pyright: ignore[reportArgumentType]

    def periodic(self) -> tuple[Periodic, ...]:
        # Iteration 0 is due too; what it refreshes is not used.
        return (Periodic(self.start, self._refresh_late, later=((self.start, self.refresh_every),)),)

    def _refresh_late(self, potential: Potential, state: LateAnchor, seen: Any) -> LateAnchor:
        return LateAnchor(super()._refresh(potential, state.anchor, seen), state.num_refreshes + 1)

    def _correction(self, potential: Potential, state: Any, batch: Any, noise: Any) -> Any:
        correct = functools.partial(super()._correction, potential, state.anchor, batch, noise)
        nothing = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), jax.eval_shape(correct))
        return lax.cond(state.num_refreshes > 1, correct, lambda: nothing)


@dataclasses.dataclass(frozen=True, eq=False)
class LateDeterministic(Deterministic):
    """Deterministic swaps from iteration `start` on."""

    start: Static[int] = 0

    def accept(self, state: DeterministicState, pairs: Pairing, uniform: Array, iteration: Array) -> Array:
        return super().accept(state, pairs, uniform, iteration) & (iteration >= self.start)


@dataclasses.dataclass(frozen=True, eq=False)
class PooledExchange(Exchange):
    """Replica exchange whose draws are those of all rungs, which are averaged as one ensemble. Follows no law."""

    def observe(self, state: ExchangeState) -> Observed:
        return super().observe(state)._replace(recorded=None)


@dataclasses.dataclass(frozen=True, eq=False)
class Uncoupled(PooledExchange):
    """The chains of a replica exchange without its swaps: what averaging several chains gains alone."""

    def _decide_swaps(self, state: ExchangeState, uniform: Array, inputs: CouplingInputs, is_allowed: Array) -> Swaps:
        return super()._decide_swaps(state, uniform, inputs, jnp.zeros_like(is_allowed))


def control_variate_from(start: int, refresh_every: int, is_adaptive: bool) -> ControlVariate:
    """A control variate from about iteration `start` on."""
    late = round(start / refresh_every) * refresh_every
    if late == 0:
        return ControlVariate(refresh_every, is_adaptive)
    return LateControlVariate(refresh_every, is_adaptive, start=late)
