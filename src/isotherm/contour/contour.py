"""Contour sampling as a coupling: chains learn the weights of energy bins, and a multiplier of the gradient flattens them."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.contour.diagnosis import diagnose
from isotherm.contour.draw_weights import RegularizedWeights, log_weights_of_draws
from isotherm.contour.fields import Field, FieldInputs, Psi
from isotherm.contour.multiplier import Multiplier, Sums, init_sums, update_sums
from isotherm.contour.partition import Partition
from isotherm.contour.theta_histogram import (
    LogTheta,
    ThetaHistogram,
    add,
    check_start,
    fold_scale,
    fold_times,
    init_histogram,
    log_mass,
    log_theta_around,
    starting_masses,
)
from isotherm.coupling import Coupling, CouplingInputs, Traits, WeightEdges, measured_variance
from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.parts import Static
from isotherm.foundation.periodic import Periodic
from isotherm.foundation.schedules import Schedule, as_schedule, check_schedule
from isotherm.kernels.kernel import Move

# It falls as 1 / k and averages over the whole run: theta that follows a chain from mode to mode would bias its weights.
DEFAULT_GAIN = PolynomialGain(3.0, 1.0, 300.0)
# With this many bins per chain, sums for the weights are updated in every iteration; with fewer they are computed for every draw.
_BINS_TO_TRACK = 64
# Iterations between two measurements of the energy noise, and the energies of each: under 1 % of the work.
_MEASURE_EVERY, _NUM_MEASURED = 1_000, 8
# The largest share of the way that theta moves: a share of 1 would make its scale 0.
_MAX_MOVE = 1 - 1e-6


class ContourState(NamedTuple):
    """Theta of G groups of P chains."""

    histogram: ThetaHistogram  # Theta of this iteration once `masses` are added at `bins`.
    energies: Array  # Of the last iteration, shape (P,).
    temperature: Array  # Of the last iteration.
    bins: Array  # Of the last energies, shape (P,).
    masses: Array  # What they add there, shape (P,). Added first in an iteration and read after: XLA then copies no histogram.
    counts: tuple[
        Array, ...
    ]  # Iterations with the multiplier at its bound, negative, and with the energy in the top bin.
    extremes: tuple[Array, Array]  # The lowest and the highest multiplier so far, each of shape (P,).
    total: Array  # The mass of all bins that Psi covers, in the units of `histogram.levels`, shape (G,).
    noise: Array  # Number of measurements of the energy variance at one position, and their sum, shape (2, P).
    multiplier: Array  # Of the last iteration, shape (P,).
    anchor: Array  # A heavy bin, shape (G,), from whose edge weights are integrated.
    sums: Sums | None  # For the integral of weights; None if they are computed for every draw.
    logs: LogTheta | None  # Log theta around `bins`, before `masses`; None without `sums`.


@dataclasses.dataclass(frozen=True, eq=False)
class Contour(Coupling):
    r"""Flattens the energy: chains sample pi(x) / Psi^zeta(U(x)), and log weights of the draws undo it.

        psi(u) = 1 + zeta tau (log theta(J) - log theta(J - 1)) / width,     J the bin of u
        theta <- theta + g_k * mean over chains of f * (hit - theta)

    The gradient of the chain is multiplied by psi at its energy. The log weight is the integral of (psi - 1) / tau up to U(x), of
    theta at the time of the draw: exact for any theta and any bound when energies are exact. It equals zeta log(theta / s) at the
    edge of a heavy bin, and zeta log(Psi / s) everywhere if psi meets no bound. Here s is the sum of theta over the bins that Psi
    covers, all but the top one (with forward slopes, but the first): weights of different times compare, and do not sink when theta
    runs into the other bin. In the open bins psi is 1, except that a cumulative field keeps its slope in the top bin. Energy noise
    biases the weights unless noise times slope is small.

    Draws with their weights follow exp(-U / tau), up to the step size and to changes of theta while the chain mixes. A cumulative
    field with its large multipliers finds low energies fast.

    Attributes:
        partition: the bins.
        zeta: how far to flatten: 0 is the plain sampler, 1 gives a flat energy histogram at the fixed point.
        gain: g_k, a function of the iteration, in (0, 1].
        field: f, one of `isotherm.contour.fields`.
        is_shared: whether the chains of a run learn one theta together, or each its own.
        slopes: "backward" as above, or "forward", (log theta(J + 1) - log theta(J)) / width.
        bounds: of psi; None leaves it free.
        empty_step: a step of log theta above which the lower bin counts as empty, and psi is 1 in the upper one; None takes every
            step as a slope. Not for cumulative fields or forward slopes.
        initial_theta: its m values, or "uniform", "decreasing", or "flat" (0.1 everywhere for a cumulative field).
        is_frozen: whether theta keeps its start.
        warm_up: iterations of the plain sampler before theta is learned.
        offset: subtracted from energies.
        noise: the standard deviation of energies at one position, if known; else the run measures it.
        weight_rule: None for the exact weights; regularized ones for a zeta so large that these degenerate.
        fold_times: when the scale of theta is folded in, often enough that it cannot underflow. Not an argument.

    Reference:
        Deng 2021, Algorithms CSGLD (section 4.1), ICSGLD (4.2) and AWSGLD (4.3).

    Differs from the thesis: its weight theta^zeta(J) is that of a density constant on bins, not of the sampled one; its slope in
    the top bin lets CSGLD escape to infinity. Bounds, the rule for empty bins and the default gain are new (see `iso.thesis`).
    """

    partition: Partition
    zeta: float = 0.75
    gain: Schedule = DEFAULT_GAIN
    field: Field = dataclasses.field(default_factory=Psi)
    is_shared: Static[bool] = True
    slopes: Static[str] = "backward"
    # Wide enough for the fixed points of distributions with one mode or many; a chain is never pushed uphill.
    bounds: tuple[float, float] | None = (0.0, 2.0)
    empty_step: float | None = 5.0
    initial_theta: Any = "uniform"
    is_frozen: Static[bool] = False
    warm_up: Static[int] = 0
    offset: float = 0.0
    noise: float | None = None
    weight_rule: RegularizedWeights | None = None
    fold_times: Static[tuple[int, tuple[tuple[int, int], ...]]] = dataclasses.field(default=(0, ()), init=False)

    def __post_init__(self):
        check_real("zeta", self.zeta, "Give 0 for no flattening, 1 for a flat histogram.", minimum=0.0)
        check_schedule("gain", self.gain, allow_zero=False)
        check_choice("slopes", self.slopes, ("backward", "forward"))
        if self.slopes == "forward" and self.field.is_cumulative:
            refuse("slopes", "backward for a cumulative field", "forward", "Leave it out.")
        is_pair = isinstance(self.bounds, (tuple, list)) and [isinstance(b, str) for b in self.bounds] == [False, False]
        if self.bounds is not None and not (is_pair and self.bounds[0] < 1.0 < self.bounds[1]):
            rule = "(low, high) with 1 between them"
            refuse("bounds", rule, repr(self.bounds), "A multiplier of 1 is the plain sampler; or give None.")
        check_integer("warm_up", self.warm_up, 0, "Give a number of iterations.")
        check_real("offset", self.offset, "Give an energy.")
        if self.empty_step is not None:
            check_real("empty_step", self.empty_step, "Give a step of log theta, such as 5, or None.", above=0.0)
        object.__setattr__(self, "fold_times", fold_times(self.gain))
        start = check_start("initial_theta", self.initial_theta, self.partition.num_bins)
        object.__setattr__(self, "initial_theta", start)

    @property
    def traits(self) -> Traits:
        low, width = self.partition.low + self.offset, self.partition.width
        return Traits(weight_edges=None if self.weight_rule else WeightEdges(low, width, self.field.is_cumulative))

    @property
    def multiplier(self) -> Multiplier:
        """Psi as a function of the energy."""
        is_cumulative = self.field.is_cumulative
        empty_step = None if is_cumulative or self.bounds is None else self.empty_step
        return Multiplier(self.partition, self.zeta, self.slopes == "forward", self.bounds, is_cumulative, empty_step)

    def groups(self, num_chains: int) -> Array:
        """The group of each chain, shape (P,): chains of a group learn one theta."""
        return jnp.zeros(num_chains, jnp.int32) if self.is_shared else jnp.arange(num_chains, dtype=jnp.int32)

    def init(self, num_chains: int) -> ContourState:
        start = starting_masses(self.initial_theta, self.partition.num_bins, self.field.is_cumulative)
        shape = (1 if self.is_shared else num_chains, len(start))
        masses = jnp.broadcast_to(jnp.asarray(start, jnp.result_type(float)), shape)
        is_many = self.partition.num_bins >= _BINS_TO_TRACK * num_chains
        is_tracked = is_many and self.bounds is not None and not self.field.is_cumulative
        multiplier, group = self.multiplier, self.groups(num_chains)
        histogram, bins = init_histogram(masses, multiplier.has_top_slope), jnp.zeros_like(group)
        zeros = jnp.zeros(num_chains, masses.dtype)
        return ContourState(
            histogram,
            energies=zeros,
            temperature=jnp.ones((), masses.dtype),
            bins=bins,
            masses=zeros,
            counts=tuple(jnp.zeros(num_chains, jnp.int32) for _ in range(3)),
            extremes=(jnp.full_like(zeros, jnp.inf), jnp.full_like(zeros, -jnp.inf)),
            total=multiplier.covered_mass(histogram.levels[0]),
            noise=jnp.zeros((2, num_chains), masses.dtype),
            multiplier=jnp.ones_like(zeros),
            anchor=multiplier.heaviest(histogram.levels[0]),
            sums=init_sums(multiplier, masses, jnp.zeros((), masses.dtype)) if is_tracked else None,
            logs=log_theta_around(histogram, group, bins, False) if is_tracked else None,
        )

    def update(self, state: ContourState, random_numbers: Any, inputs: CouplingInputs) -> tuple[ContourState, Move]:
        multiplier, group = self.multiplier, self.groups(len(inputs.energies))
        histogram = add(state.histogram, group, state.bins, state.masses)
        total = state.total + self._per_group(jnp.where(multiplier.is_covered(state.bins), state.masses, 0.0))
        sums = state.sums
        if sums is not None and state.logs is not None:
            if self.is_shared and len(state.bins) > 1:
                after = log_theta_around(histogram, group, state.bins, False)
            else:
                after = state.logs._replace(here=log_mass(histogram, group, state.bins))
            sums = update_sums(multiplier, sums, group, state.bins, state.logs.steps, after.steps, self.is_shared)
        energies = inputs.energies - self.offset
        bins = self.partition.index(energies)
        logs = log_theta_around(histogram, group, bins, self.field.is_cumulative)
        slope = multiplier.slope(logs.steps[int(multiplier.is_forward)], bins)
        psi = multiplier.free(slope, inputs.temperature)
        is_warming = inputs.iteration < self.warm_up
        bounded = jnp.where(is_warming, 1.0, multiplier.bounded(psi))
        log_psi = multiplier.log_psi(bins, energies, logs, slope)
        log_scale, log_heaviest = jnp.log(histogram.scale)[group], log_mass(histogram, group, state.anchor[group])
        strength = self.field.strength(FieldInputs(log_scale, logs.here, log_psi, log_heaviest, self.zeta))
        histogram, masses = self._learn(histogram, strength, inputs)
        counted = (bounded != psi) & ~is_warming, bounded < 0, bins == self.partition.num_bins - 1
        ones = jnp.ones_like(inputs.energies)
        factor = jnp.where(inputs.is_alive, bounded, 1.0).astype(ones.dtype)
        # An infinite temperature marks a plain iteration, whose draws have one weight.
        is_plain = is_warming | (inputs.temperature <= 0)
        after = state._replace(
            histogram=histogram,
            energies=energies,
            temperature=jnp.where(is_plain, jnp.inf, inputs.temperature),
            bins=bins,
            masses=masses,
            counts=tuple(count + is_so.astype(count.dtype) for count, is_so in zip(state.counts, counted, strict=True)),
            extremes=(jnp.fmin(state.extremes[0], bounded), jnp.fmax(state.extremes[1], bounded)),
            total=total,
            multiplier=factor,
            sums=sums,
            logs=None if sums is None else logs,
        )
        after = jax.tree.map(lambda new, old: new.astype(old.dtype), after, state)
        return after, Move(inputs.step_size * ones, inputs.temperature * ones, factor, ones)

    def periodic(self, is_exact: bool) -> tuple[Periodic, ...]:
        every, later = self.fold_times
        rescale = Periodic(every, self.rescaled, needs_data=False, later=later)
        if is_exact or self.noise is not None:
            return (rescale,)
        return Periodic(_MEASURE_EVERY, self._measure_noise), rescale

    def log_weights(self, state: ContourState) -> Array:
        return log_weights_of_draws(self, state)

    def statistics(self, state: ContourState) -> dict[str, Any]:
        histogram = add(state.histogram, self.groups(len(state.bins)), state.bins, state.masses)
        theta = jnp.cumsum(histogram.theta, axis=1) if self.field.is_cumulative else histogram.theta
        num_bounded, num_negative, num_top = state.counts
        num_measured, variances = jnp.sum(state.noise, axis=1)
        measured = jnp.sqrt(jnp.where(num_measured > 0, variances / num_measured, jnp.nan))
        noise = measured if self.noise is None else jnp.full_like(measured, self.noise)
        # The root mean square, weighted by the mass of the bins.
        inner = histogram.theta[:, 1:]
        squares = jnp.where(inner > 0, inner * jnp.diff(jnp.log(theta), axis=1) ** 2, 0.0)
        slope = jnp.sqrt(jnp.sum(squares, axis=1)) / self.partition.width
        temperature = jnp.where(jnp.isfinite(state.temperature), state.temperature, 1.0)
        return {
            "theta": theta,
            "num_bounded": num_bounded,
            "num_negative": num_negative,
            "num_top": num_top,
            "lowest_multiplier": state.extremes[0],
            "highest_multiplier": state.extremes[1],
            "energy_noise": noise,
            "weight_slopes": self.multiplier.excess_of_all(theta, temperature) / temperature,
            "noise_times_slope": noise * self.zeta * slope,
        }

    def diagnose(self, run: RunView) -> list[Check]:
        return diagnose(self, run)

    def rescaled(self, state: ContourState, measure: Any = None) -> ContourState:
        """The same theta with its scale folded in, and all that depends on the scale."""
        histogram = fold_scale(state.histogram)
        masses = state.masses * state.histogram.scale / histogram.scale
        sums, logs = state.sums, state.logs
        if sums is not None:
            sums = init_sums(self.multiplier, histogram.levels[0], state.temperature)
            logs = log_theta_around(histogram, self.groups(len(state.bins)), state.bins, False)
        anchor, total = self.multiplier.heaviest(histogram.levels[0]), self.multiplier.covered_mass(histogram.levels[0])
        return state._replace(histogram=histogram, masses=masses, anchor=anchor, total=total, sums=sums, logs=logs)

    def _measure_noise(self, state: ContourState, measure: Callable[[int], CouplingInputs]) -> ContourState:
        found = jnp.stack([part.astype(state.noise.dtype) for part in measured_variance(measure, _NUM_MEASURED)])
        return state._replace(noise=state.noise + found)

    def _learn(
        self, histogram: ThetaHistogram, strength: Array, inputs: CouplingInputs
    ) -> tuple[ThetaHistogram, Array]:
        """The new scale, and the mass that each chain adds to its bin; chains that are not alive add none."""
        is_learning = jnp.asarray(not self.is_frozen) & (inputs.iteration >= self.warm_up)
        gain = jnp.where(is_learning, as_schedule(self.gain)(inputs.iteration), 0.0)
        pull = jnp.where(inputs.is_alive, strength, 0.0)
        number = jnp.maximum(self._per_group(inputs.is_alive.astype(pull.dtype)), 1.0)
        wanted = gain * self._per_group(pull) / number
        share = _MAX_MOVE / jnp.maximum(wanted, _MAX_MOVE)
        scale = histogram.scale * (1.0 - share * wanted)
        return histogram._replace(scale=scale), share * gain * pull / (number * scale)

    def _per_group(self, values: Array) -> Array:
        """Sums over the chains of each group, of shape (G,), which is (1,) or (P,)."""
        return jnp.sum(values, keepdims=True) if self.is_shared else values
