"""Contour sampling as a coupling: chains learn the weights of energy bins, and gradients are multiplied so as to flatten them."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.contour.draw_weights import log_weights_of_draws
from isotherm.contour.fields import FIELDS, strength_of
from isotherm.contour.integral import init_sums, update_sums
from isotherm.contour.multiplier import Multiplier
from isotherm.contour.partition import Partition, Pilot
from isotherm.contour.report import statistics_of
from isotherm.contour.start import masses_of, starting_masses
from isotherm.contour.state import ContourState
from isotherm.contour.weighing import Regularised
from isotherm.contour.weights import (
    FLOOR,
    LOWEST_LOG_SCALE,
    Logs,
    Weights,
    add,
    around,
    fold_scale,
    init_weights,
    read,
)
from isotherm.coupling import Coupling, Readings
from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse
from isotherm.foundation.schedules import PolynomialGain, Schedule, as_schedule, check_schedule
from isotherm.kernels.kernel import Move

DEFAULT_GAIN = PolynomialGain(1.0, 0.6, 100.0)
# Sums for the weights are kept up in every iteration where there are this many bins to a chain; else made anew for every draw.
_BINS_TO_TRACK = 64
# Energies of every chain from which the noise is found at the end of a run.
_NUM_MEASURED = 8
_FURTHEST = 1 - 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Contour(Coupling):
    r"""Flattens the energy: chains sample pi(x) / Psi^zeta(U(x)), and their draws carry the weight that undoes it.

        psi(u) = 1 + zeta tau (log theta(J) - log theta(J - 1)) / width,     J the bin of u
        theta <- theta + g_k * mean over chains of f * (hit - theta)

    The gradient of the chain is multiplied by psi at its energy. The log weight is the integral of (psi - 1) / tau up to U(x), of
    theta at the draw's own time: exact for any theta and any bound when energies are exact. It equals zeta log(theta / s) at the
    edge of a heavy bin, and zeta log(Psi / s) everywhere if psi meets no bound, where s is the sum of theta over the bins whose
    weight Psi takes somewhere: all but the top one (with forward slopes, but the first). So weights of different times compare, and
    do not sink when theta runs into a bin that Psi does not know. In the open bins psi is 1, but for a cumulative field, whose
    slope goes on in the top bin. Where energies are noisy, weights are biased once noise times slope is no longer small.

    Promises that draws with their weights follow exp(-U / tau), up to the step size and to what theta moves while the chain
    mixes. A cumulative field with its large multipliers is made to find low energies fast.

    Attributes:
        partition: the bins, or a pilot that finds them when a run starts.
        zeta: how far to flatten: 0 is the plain sampler, 1 gives a flat energy histogram at the fixed point.
        gain: g_k, a function of the iteration, in (0, 1].
        field: f. "psi" is Psi^zeta at the energy over that of the bin that was heaviest when the scale was last folded in, and
            at most 1; its fixed point is the mass of each bin. "theta^zeta" is the thesis' CSGLD and "theta" its ICSGLD, both at
            the bin; "cumulative" is its AWSGLD: theta at the bin, and all bins from J on are hit. "theta" has no fixed point when
            chains meet the top bin, where psi is 1 and nothing pushes them back: theta runs away into it. "theta^zeta" hardly
            moves when zeta is large: 200 bins at zeta 10 start with f = 200^-10.
        is_shared: whether the chains of a run learn one theta together, or each its own.
        slopes: "backward" as above, or "forward", (log theta(J + 1) - log theta(J)) / width.
        bounds: of psi; None leaves it free.
        start: theta at the start: "uniform", "decreasing", "flat" (for a cumulative field 0.1 everywhere), "pilot" (a histogram),
            or its m values.
        is_frozen: whether theta stays as it starts.
        warm_up: iterations of the plain sampler before anything is learnt.
        offset: subtracted from energies.
        noise: the standard deviation of energies at one position, where it is known; a pilot measures it.
        weighing: None for the exact weights; or `Regularised` ones, for a zeta so large that these degenerate.
        perturbation: added to f of the field "theta^zeta", so that theta moves at a large zeta too; the fixed point is then no
            longer the mass of each bin, but the weights stay those of the theta that was used.

    Reference:
        Deng 2021, Algorithms CSGLD (section 4.1), ICSGLD (4.2) and AWSGLD (4.3).

    Differs from the thesis: its weight theta^zeta(J) belongs to a density that is constant on bins, which is not the one sampled;
    its top-bin slope lets CSGLD escape to infinity; bounds are from the author's code.
    """

    partition: Partition | Pilot
    zeta: float = 0.75
    gain: Schedule = DEFAULT_GAIN
    field: str = "psi"
    is_shared: bool = True
    slopes: str = "backward"
    bounds: tuple[float, float] | None = (-5.0, 5.0)
    start: str | tuple[float, ...] = "uniform"
    is_frozen: bool = False
    warm_up: int = 0
    offset: float = 0.0
    noise: float | None = None
    weighing: Regularised | None = None
    perturbation: float = 0.0

    is_weighted = True  # pyright: ignore[reportIncompatibleVariableOverride, reportAssignmentType]

    def __post_init__(self):
        check_real("zeta", self.zeta, "Give 0 for no flattening, 1 for a flat histogram.", minimum=0.0)
        check_schedule("gain", self.gain, allow_zero=False)
        check_choice("field", self.field, FIELDS)
        check_choice("slopes", self.slopes, ("backward", "forward"))
        if self.slopes == "forward" and self.is_cumulative:
            refuse("slopes", "backward for a cumulative field", "forward", "Leave it out.")
        if self.bounds is not None and not self.bounds[0] < 1.0 < self.bounds[1]:
            rule = "(low, high) with 1 between them"
            refuse("bounds", rule, repr(self.bounds), "A multiplier of 1 is the plain sampler; or give None.")
        check_integer("warm_up", self.warm_up, 0, "Give a number of iterations.")
        check_real("offset", self.offset, "Give an energy.")
        check_real("perturbation", self.perturbation, "Give a small number, such as 1e-3.", minimum=0.0, maximum=1.0)
        if self.perturbation > 0 and self.field != "theta^zeta":
            refuse("perturbation", "0 for this field", self.perturbation, 'Leave it out, or use field="theta^zeta".')
        if isinstance(self.partition, Partition):
            starting_masses(self.start, self.bins.num_bins, self.is_cumulative)
        _ = self._fold_every

    @property
    def num_measured(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _NUM_MEASURED if self.noise is None else 0

    @property
    def pilot_steps(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.partition.num_steps if isinstance(self.partition, Pilot) else None

    def settle(self, cold: Any, hot: Any, noise: float) -> "Contour":
        if isinstance(self.partition, Partition):
            return self
        bins = self.partition.settle(cold - self.offset, hot - self.offset, noise)
        start = self.start
        if start == "pilot":
            met = np.asarray(bins.index(jnp.asarray(cold - self.offset)))
            start = masses_of(met, bins.num_bins, self.is_cumulative)
        return dataclasses.replace(self, partition=bins, noise=noise, start=start)

    @property
    def bins(self) -> Partition:
        """The partition, once it is known."""
        if isinstance(self.partition, Pilot):
            refuse("partition", "settled by a pilot", repr(self.partition), "Use `iso.sample`, which runs one.")
        return self.partition

    @property
    def is_cumulative(self) -> bool:
        """Whether theta is a running sum over bins."""
        return self.field == "cumulative"

    @property
    def multiplier(self) -> Multiplier:
        """Psi as a function of the energy."""
        return Multiplier(self.bins, self.zeta, self.slopes == "forward", self.bounds, self.is_cumulative)

    def init(self, num_chains: int) -> ContourState:
        groups = 1 if self.is_shared else num_chains
        start = starting_masses(self.start, self.bins.num_bins, self.is_cumulative)
        masses = jnp.broadcast_to(jnp.asarray(start, jnp.result_type(float)), (groups, len(start)))
        weights, bins = init_weights(masses, self.is_cumulative), jnp.zeros(num_chains, jnp.int32)
        nothing = jnp.zeros(num_chains, masses.dtype)
        is_many = self.bins.num_bins >= _BINS_TO_TRACK * num_chains
        is_tracked = is_many and self.bounds is not None and not self.is_cumulative
        sums = init_sums(self.multiplier, masses, jnp.zeros((), masses.dtype)) if is_tracked else None
        logs = around(weights, self.groups(num_chains), bins, False) if is_tracked else None
        return ContourState(
            weights,
            energies=nothing,
            temperature=jnp.ones((), masses.dtype),
            bins=bins,
            masses=nothing,
            counts=tuple(jnp.zeros(num_chains, jnp.int32) for _ in range(3)),
            extremes=(jnp.full_like(nothing, jnp.inf), jnp.full_like(nothing, -jnp.inf)),
            total=self.multiplier.known_mass(weights.levels[0]),
            variance=jnp.full_like(nothing, jnp.nan),
            anchor=self.multiplier.heaviest(weights.levels[0]),
            sums=sums,
            logs=logs,
        )

    def update(self, state: ContourState, draws: Any, readings: Readings) -> tuple[ContourState, Move]:
        group = self.groups(len(readings.energies))
        weights = add(state.weights, group, state.bins, state.masses)
        total = state.total + self._per_group(jnp.where(self.multiplier.is_known(state.bins), state.masses, 0.0))
        sums = state.sums
        if sums is not None and state.logs is not None:
            after = self._after(state.logs, state.bins, weights, group)
            sums = update_sums(self.multiplier, sums, group, state.bins, state.logs.steps, after.steps, self.is_shared)
        energies = readings.energies - self.offset
        bins = self.bins.index(energies)
        logs = around(weights, group, bins, self.is_cumulative)
        slope = self.multiplier.slope(logs.steps[int(self.multiplier.is_forward)], bins)
        psi = self.multiplier.free(slope, readings.temperature)
        is_warming = readings.iteration < self.warm_up
        bounded = jnp.where(is_warming, 1.0, self.multiplier.bounded(psi))
        strength = strength_of(self, weights, bins, energies, logs, slope, state.anchor[group])
        weights, masses = self._learn(weights, strength, readings)
        is_top = bins == self.bins.num_bins - 1
        seen = (bounded != psi) & ~is_warming, bounded < 0, is_top
        counts = tuple(count + is_so for count, is_so in zip(state.counts, seen, strict=True))
        extremes = jnp.fmin(state.extremes[0], bounded), jnp.fmax(state.extremes[1], bounded)
        everyone = jnp.ones_like(readings.energies)
        move = Move(
            readings.step_size * everyone,
            readings.temperature * everyone,
            jnp.where(readings.is_alive, bounded, 1.0).astype(everyone.dtype),
            everyone,
        )
        # Where psi is 1 whatever the energy, there is nothing to undo, which an infinite temperature says.
        is_plain = is_warming | (readings.temperature <= 0)
        temperature = jnp.where(is_plain, jnp.inf, readings.temperature)
        after = state._replace(
            weights=weights,
            energies=energies.astype(state.energies.dtype),
            temperature=temperature.astype(state.temperature.dtype),
            bins=bins,
            masses=masses,
            counts=counts,
            extremes=tuple(extreme.astype(masses.dtype) for extreme in extremes),
            total=total,
            sums=sums,
            logs=None if sums is None else logs,
        )
        return after, move

    @property
    def upkeep_every(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._fold_every

    def upkeep(self, state: ContourState) -> ContourState:
        group = self.groups(len(state.bins))
        weights = fold_scale(state.weights)
        masses = state.masses * state.weights.scale / weights.scale
        sums, logs = state.sums, state.logs
        if sums is not None:
            sums = init_sums(self.multiplier, weights.levels[0], state.temperature)
            logs = around(weights, group, state.bins, False)
        anchor, total = self.multiplier.heaviest(weights.levels[0]), self.multiplier.known_mass(weights.levels[0])
        return state._replace(weights=weights, masses=masses, anchor=anchor, total=total, sums=sums, logs=logs)

    def log_weights(self, state: ContourState) -> Array:
        return log_weights_of_draws(self, state)

    def calibrate(self, state: ContourState, measured: Readings) -> ContourState:
        variance = jnp.var(measured.energies, axis=0, ddof=1)
        return state._replace(variance=variance.astype(state.variance.dtype))

    def statistics(self, state: ContourState) -> dict[str, Any]:
        return statistics_of(self, state)

    def _per_group(self, values: Array) -> Array:
        """Sums over the chains of a group, of shape (G,), which is (1,) or (P,)."""
        return jnp.sum(values, keepdims=True) if self.is_shared else values

    def groups(self, num_chains: int) -> Array:
        """The group of each chain, shape (P,): those that learn one theta together."""
        return jnp.zeros(num_chains, jnp.int32) if self.is_shared else jnp.arange(num_chains, dtype=jnp.int32)

    def _after(self, before: Logs, bins: Array, weights: Weights, group: Array) -> Logs:
        """Log theta around the bins of the last iteration, once its masses are added."""
        if self.is_shared and len(bins) > 1:
            return around(weights, group, bins, False)
        here = jnp.maximum(read(weights, group, bins), FLOOR)
        return before._replace(here=jnp.log(here))

    def log_psi(self, bins: Array, energies: Array, logs: Logs, slope: Array) -> Array:
        """Log Psi, without bounds and before the scale. In the open bins it is that of the nearest edge."""
        first = int(self.multiplier.is_forward)
        at_left = jnp.where(bins == 0, logs[first + 1], logs[first])
        above = jnp.where(bins == 0, 0.0, energies - self.bins.left(bins))
        return at_left + slope * above

    def _learn(self, weights: Weights, strength: Array, readings: Readings) -> tuple[Weights, Array]:
        """The new scale, and what each chain adds to its bin. Chains that are not alive leave no trace."""
        is_learning = jnp.asarray(not self.is_frozen) & (readings.iteration >= self.warm_up)
        gain = jnp.where(is_learning, as_schedule(self.gain)(readings.iteration), 0.0)
        pull = jnp.where(readings.is_alive, strength, 0.0)
        alive = readings.is_alive.astype(pull.dtype)
        number = jnp.maximum(self._per_group(alive), 1.0)
        # Theta never moves all of the way: nothing of it would be left.
        wanted = gain * self._per_group(pull) / number
        share = _FURTHEST / jnp.maximum(wanted, _FURTHEST)
        scale = weights.scale * (1.0 - share * wanted)
        return weights._replace(scale=scale), share * gain * pull / (number * scale)

    @functools.cached_property
    def _fold_every(self) -> int:
        """Iterations after which the scale is folded in: few enough that it cannot underflow. Refuses a gain out of range."""
        counts = np.unique(np.concatenate([[0], np.geomspace(1, 1e8, 60).astype(np.int32)]))
        with jax.ensure_compile_time_eval():
            gains = np.asarray([as_schedule(self.gain)(count) for count in counts])
        check_real("gain", float(gains.min()), "Theta moves this fraction of the way.", above=0.0)
        largest = check_real("gain", float(gains.max()), "Lower it: theta moves this fraction of the way.", maximum=1.0)
        return int(np.clip(LOWEST_LOG_SCALE / -np.log1p(-min(largest, 1 - 1e-7)), 1, 16_384))
