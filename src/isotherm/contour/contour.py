"""Contour sampling as a coupling: chains learn the weights of energy bins, and gradients are multiplied so as to flatten them."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.contour.diagnosis import diagnose
from isotherm.contour.draw_weights import log_weights_of_draws
from isotherm.contour.fields import Field, Psi, Pulled
from isotherm.contour.integral import init_sums, update_sums
from isotherm.contour.learning import learn
from isotherm.contour.multiplier import Multiplier
from isotherm.contour.partition import Partition
from isotherm.contour.report import statistics_of
from isotherm.contour.start import as_theta, check_initial_theta, starting_masses
from isotherm.contour.state import ContourState, init_contour_state
from isotherm.contour.theta_histogram import (
    LogTheta,
    ThetaHistogram,
    add,
    fold_scale,
    fold_times,
    log_mass,
    log_theta_around,
)
from isotherm.contour.weight_rule import RegularizedWeights
from isotherm.coupling import Coupling, CouplingInputs, Traits, WeightEdges, measured_variance
from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.parts import Static
from isotherm.foundation.periodic import Periodic
from isotherm.foundation.schedules import Schedule, check_schedule
from isotherm.kernels.kernel import Move

# It falls as 1 / k and remembers all of the run: theta that follows a chain from mode to mode would bias its weights.
DEFAULT_GAIN = PolynomialGain(3.0, 1.0, 300.0)
# Wide enough for the fixed points of distributions with one mode or many; a chain is never pushed uphill.
DEFAULT_BOUNDS = (0.0, 2.0)
# Sums for the weights are kept up in every iteration where there are this many bins to a chain; else made anew for every draw.
_BINS_TO_TRACK = 64
# Iterations between two measurements of the noise of energies, and the energies of each: under 1 % of the work.
_MEASURE_EVERY, _NUM_MEASURED = 1_000, 8


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
        partition: the bins.
        zeta: how far to flatten: 0 is the plain sampler, 1 gives a flat energy histogram at the fixed point.
        gain: g_k, a function of the iteration, in (0, 1].
        field: f, one of `isotherm.contour.fields`.
        is_shared: whether the chains of a run learn one theta together, or each its own.
        slopes: "backward" as above, or "forward", (log theta(J + 1) - log theta(J)) / width.
        bounds: of psi; None leaves it free.
        empty_step: a step of log theta above which the lower bin counts as empty, and psi is 1 in the upper one, where energies
            end; None takes every step as a slope. Not for cumulative fields or forward slopes.
        initial_theta: its m values, or "uniform", "decreasing", or "flat" (0.1 everywhere for a cumulative field).
        is_frozen: whether theta stays as it starts.
        warm_up: iterations of the plain sampler before anything is learned.
        offset: subtracted from energies.
        noise: the standard deviation of energies at one position, where it is known; else the run measures it.
        weight_rule: None for the exact weights; or regularized ones, for a zeta so large that these degenerate.
        fold_times: when the scale of theta is folded in, often enough that it cannot underflow. Not given.

    Reference:
        Deng 2021, Algorithms CSGLD (section 4.1), ICSGLD (4.2) and AWSGLD (4.3).

    Differs from the thesis: its weight theta^zeta(J) belongs to a density that is constant on bins, which is not the one sampled;
    its top-bin slope lets CSGLD escape to infinity; bounds, the rule for empty bins and the default gain are ours (`iso.thesis`).
    """

    partition: Partition
    zeta: float = 0.75
    gain: Schedule = DEFAULT_GAIN
    field: Field = dataclasses.field(default_factory=Psi)
    is_shared: Static[bool] = True
    slopes: Static[str] = "backward"
    bounds: tuple[float, float] | None = DEFAULT_BOUNDS
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
        object.__setattr__(self, "initial_theta", as_theta("initial_theta", self.initial_theta))
        check_initial_theta(self.initial_theta, self.partition.num_bins)

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
        """The group of each chain, shape (P,): those that learn one theta together."""
        return jnp.zeros(num_chains, jnp.int32) if self.is_shared else jnp.arange(num_chains, dtype=jnp.int32)

    def init(self, num_chains: int) -> ContourState:
        groups = 1 if self.is_shared else num_chains
        start = starting_masses(self.initial_theta, self.partition.num_bins, self.field.is_cumulative)
        masses = jnp.broadcast_to(jnp.asarray(start, jnp.result_type(float)), (groups, len(start)))
        is_many = self.partition.num_bins >= _BINS_TO_TRACK * num_chains
        is_tracked = is_many and self.bounds is not None and not self.field.is_cumulative
        return init_contour_state(self.multiplier, masses, self.groups(num_chains), is_tracked)

    def update(self, state: ContourState, draws: Any, inputs: CouplingInputs) -> tuple[ContourState, Move]:
        group = self.groups(len(inputs.energies))
        histogram = add(state.histogram, group, state.bins, state.masses)
        total = state.total + self.per_group(jnp.where(self.multiplier.is_known(state.bins), state.masses, 0.0))
        sums = state.sums
        if sums is not None and state.logs is not None:
            after = self._after(state.logs, state.bins, histogram, group)
            sums = update_sums(self.multiplier, sums, group, state.bins, state.logs.steps, after.steps, self.is_shared)
        energies = inputs.energies - self.offset
        bins = self.partition.index(energies)
        logs = log_theta_around(histogram, group, bins, self.field.is_cumulative)
        slope = self.multiplier.slope(logs.steps[int(self.multiplier.is_forward)], bins)
        psi = self.multiplier.free(slope, inputs.temperature)
        is_warming = inputs.iteration < self.warm_up
        bounded = jnp.where(is_warming, 1.0, self.multiplier.bounded(psi))
        log_psi = self.multiplier.log_psi(bins, energies, logs, slope)
        log_scale, log_heaviest = jnp.log(histogram.scale)[group], log_mass(histogram, group, state.anchor[group])
        strength = self.field.strength(Pulled(log_scale, logs.here, log_psi, log_heaviest, self.zeta))
        histogram, masses = learn(self, histogram, strength, inputs)
        is_top = bins == self.partition.num_bins - 1
        seen = (bounded != psi) & ~is_warming, bounded < 0, is_top
        everyone = jnp.ones_like(inputs.energies)
        multiplier = jnp.where(inputs.is_alive, bounded, 1.0).astype(everyone.dtype)
        move = Move(inputs.step_size * everyone, inputs.temperature * everyone, multiplier, everyone)
        # Where psi is 1 whatever the energy, there is nothing to undo, which an infinite temperature says.
        is_plain = is_warming | (inputs.temperature <= 0)
        after = state._replace(
            histogram=histogram,
            energies=energies,
            temperature=jnp.where(is_plain, jnp.inf, inputs.temperature),
            bins=bins,
            masses=masses,
            counts=tuple(count + is_so.astype(count.dtype) for count, is_so in zip(state.counts, seen, strict=True)),
            extremes=(jnp.fmin(state.extremes[0], bounded), jnp.fmax(state.extremes[1], bounded)),
            total=total,
            multiplier=multiplier,
            sums=sums,
            logs=None if sums is None else logs,
        )
        return jax.tree.map(lambda new, old: new.astype(old.dtype), after, state), move

    def periodic(self, is_exact: bool) -> tuple[Periodic, ...]:
        every, later = self.fold_times
        rescale = Periodic(every, self.rescaled, needs_data=False, later=later)
        if is_exact or self.noise is not None:
            return (rescale,)
        return Periodic(_MEASURE_EVERY, self._with_noise), rescale

    def log_weights(self, state: ContourState) -> Array:
        return log_weights_of_draws(self, state)

    def statistics(self, state: ContourState) -> dict[str, Any]:
        return statistics_of(self, state)

    def diagnose(self, run: RunView) -> list[Check]:
        return diagnose(self, run, DEFAULT_BOUNDS)

    def _with_noise(self, state: ContourState, measure: Callable[[int], CouplingInputs]) -> ContourState:
        found = jnp.stack([part.astype(state.noise.dtype) for part in measured_variance(measure, _NUM_MEASURED)])
        return state._replace(noise=state.noise + found)

    def rescaled(self, state: ContourState, measure: Any = None) -> ContourState:
        """The same theta with its scale folded in, and what hangs on it."""
        histogram = fold_scale(state.histogram)
        masses = state.masses * state.histogram.scale / histogram.scale
        sums, logs = state.sums, state.logs
        if sums is not None:
            sums = init_sums(self.multiplier, histogram.levels[0], state.temperature)
            logs = log_theta_around(histogram, self.groups(len(state.bins)), state.bins, False)
        anchor, total = self.multiplier.heaviest(histogram.levels[0]), self.multiplier.known_mass(histogram.levels[0])
        return state._replace(histogram=histogram, masses=masses, anchor=anchor, total=total, sums=sums, logs=logs)

    def per_group(self, values: Array) -> Array:
        """Sums over the chains of a group, of shape (G,), which is (1,) or (P,)."""
        return jnp.sum(values, keepdims=True) if self.is_shared else values

    def _after(self, before: LogTheta, bins: Array, histogram: ThetaHistogram, group: Array) -> LogTheta:
        """Log theta around the bins of the last iteration, once its masses are added."""
        if self.is_shared and len(bins) > 1:
            return log_theta_around(histogram, group, bins, False)
        return before._replace(here=log_mass(histogram, group, bins))
