"""Energies with a control variate: far less noise, for one more forward pass and a full pass from time to time."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from isotherm.estimators.estimator import EnergyAndGradient, Estimator, Plain, Refreshed
from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.foundation.parts import Static
from isotherm.foundation.periodic import Periodic
from isotherm.potentials.potential import Potential


class Anchor(NamedTuple):
    """The last refresh of a replica: its position, its energy there on all data, and its coefficient."""

    position: Any
    model_state: Any
    full_energy: Array
    coefficient: Array


@dataclasses.dataclass(frozen=True, eq=False)
class ControlVariate(Estimator):
    r"""The energy of a batch, corrected by the error of the same batch at an anchor.

        U~(x) + c * ( U~(anchor) - U(anchor) ),        anchor <- x every m iterations

    The gradient is that of the batch. With c = -1 this is the SVRG estimator. With `is_adaptive`, c is the smoothed regression
    coefficient -Cov(U~(x), U~(anchor)) / Var(U~(anchor)) over batches, with the old anchor, before its refresh. Anchor and
    coefficient belong to the replica and stay with its parameters.

    Attributes:
        refresh_every: m.
        is_adaptive: whether c is estimated; else it is -1.
        smoothing: weight of a new coefficient.
        num_regressed: batches from which a coefficient is estimated.

    Reference:
        Deng 2021, Algorithms VR-reSGLD and adaptive VR-reSGLD of section 3.2.

    Differs from the thesis: it measures the coefficient when anchor and position are equal, where it is always -1.
    """

    reduces_variance = True

    refresh_every: Static[int] = 100
    is_adaptive: Static[bool] = False
    smoothing: float = 0.3
    num_regressed: Static[int] = 20

    def __post_init__(self):
        check_integer("refresh_every", self.refresh_every, 1, "Give the iterations between two full passes.")
        check_real("smoothing", self.smoothing, "Give a weight.", above=0.0, maximum=1.0)
        check_integer("num_regressed", self.num_regressed, 3, "A regression needs three batches.")

    def check(self, potential: Potential) -> None:
        if not potential.has_data:
            remedy = "Use the plain estimator, or give the potential data and a batch size."
            refuse("estimator", "plain for a potential without batches", "a control variate", remedy)

    def init(self, potential: Potential, position: Any, model_state: Any) -> Anchor:
        # NaN until the refresh of iteration 0, which comes before the first move.
        dtype = jnp.result_type(*jax.tree.leaves(position))
        return Anchor(position, model_state, jnp.full((), jnp.nan, dtype), -jnp.ones((), dtype))

    def evaluate(
        self,
        potential: Potential,
        state: Anchor,
        position: Any,
        model_state: Any,
        batches: tuple[Any, ...],
        noises: tuple[Any, ...],
        probe: Any = None,
    ) -> tuple[Anchor, EnergyAndGradient]:
        _, found = Plain().evaluate(potential, (), position, model_state, batches, noises, probe)
        energy, residuals = self._correction(potential, state, batches[0], noises[0])
        return state, found._replace(energy=found.energy + energy, residuals=_sum(found.residuals, residuals))

    def measure(
        self, potential: Potential, state: Anchor, position: Any, model_state: Any, batch: Any, noise: Any
    ) -> tuple[Array, Array, Array | None]:
        found = potential.evaluate(position, batch, noise, model_state)
        energy, residuals = self._correction(potential, state, batch, noise)
        return found.energy + energy, found.prior_energy, _sum(found.residuals, residuals)

    def periodic(self) -> tuple[Periodic, ...]:
        return (Periodic(self.refresh_every, self._refresh),)

    def _refresh(self, potential: Potential, state: Anchor, seen: Refreshed) -> Anchor:
        coefficient = state.coefficient
        if self.is_adaptive:
            found = self._regress(potential, state, seen)
            coefficient = ((1.0 - self.smoothing) * coefficient + self.smoothing * found).astype(coefficient.dtype)
        return Anchor(seen.position, seen.model_state, seen.full_energy.astype(coefficient.dtype), coefficient)

    def _correction(self, potential: Potential, state: Anchor, batch: Any, noise: Any) -> tuple[Array, Array | None]:
        """The terms that are added to the energy and to its residuals."""
        found = lax.stop_gradient(potential.evaluate(state.position, batch, noise, state.model_state))
        residuals = None if found.residuals is None else state.coefficient * found.residuals
        return state.coefficient * (found.energy - state.full_energy), residuals

    def _regress(self, potential: Potential, state: Anchor, seen: Refreshed) -> Array:
        """The coefficient by regression over batches; the old one if the anchor equals the position."""

        def energies(place):
            batch, words = seen.batch(place), jnp.zeros(2, jnp.uint32)
            drawn = potential.draw(words, words, place[None], seen.position)
            noise = jax.tree.map(lambda leaf: leaf[0], drawn)
            now = potential.evaluate(seen.position, batch, noise, seen.model_state).energy
            return now, potential.evaluate(state.position, batch, noise, state.model_state).energy

        now, then = lax.map(energies, jnp.arange(self.num_regressed))
        now, then = now - jnp.mean(now), then - jnp.mean(then)
        spread = jnp.sum(then**2)
        return jnp.where(spread > 0, -jnp.sum(now * then) / jnp.where(spread > 0, spread, 1.0), state.coefficient)


def _sum(one: Array | None, other: Array | None) -> Array | None:
    return None if one is None or other is None else one + other
