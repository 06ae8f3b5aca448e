"""Contour sampling as a coupling: chains learn the weights of energy bins, and gradients are multiplied so as to flatten them."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.contour.partition import Partition
from isotherm.contour.weights import FLOOR, Weights, add, fold_scale, init_weights, prefix_sums, read
from isotherm.coupling import Coupling, Readings
from isotherm.errors import check_choice, check_integer, check_real, refuse
from isotherm.kernels.kernel import Move
from isotherm.schedules import PolynomialGain, Schedule, as_schedule, check_schedule

FIELDS = ("psi", "theta^zeta", "theta", "cumulative")
DEFAULT_GAIN = PolynomialGain(1.0, 0.6, 100.0)
# The scale of the weights may fall to exp of this between two folds.
_LOWEST_LOG_SCALE = 30.0


class ContourState(NamedTuple):
    """What is learnt of the bins, for G groups of P chains.

    Attributes:
        weights: theta of this iteration once `bins` and `masses` are added.
        energies: of the last iteration, shape (P,).
        temperature: of the last iteration.
        bins: where its chains hit, shape (P,).
        masses: what they add there, shape (P,). Added first in an iteration, and read after: XLA then copies no histogram.
        counts: iterations in which a chain's multiplier was at its bound, was negative, and its energy in the top bin, (3, P).
    """

    weights: Weights
    energies: Array
    temperature: Array
    bins: Array
    masses: Array
    counts: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Contour(Coupling):
    r"""Flattens the energy: chains sample pi(x) / Psi^zeta(U(x)), and their draws carry the weight that undoes it.

        psi(u) = 1 + zeta tau (log theta(J) - log theta(J - 1)) / width,     J the bin of u
        theta <- theta + g_k * mean over chains of f * (hit - theta)

    The gradient of the chain is multiplied by psi at its energy. The log weight is the integral of (psi - 1) / tau from the first
    edge to U(x), of theta at the draw's own time: exact for any theta and any bound when energies are exact. In the open bins psi
    is 1, but for a cumulative field, whose slope goes on in the top bin.

    Attributes:
        partition: the bins.
        zeta: how far to flatten: 0 is the plain sampler, 1 gives a flat energy histogram at the fixed point.
        gain: g_k, a function of the iteration, in (0, 1].
        field: f. "psi" is Psi^zeta at the energy, whose fixed point is the mass of each bin; "theta^zeta" is the thesis' CSGLD and
            "theta" its ICSGLD, both at the bin; "cumulative" is its AWSGLD: theta at the bin, and all bins from J on are hit.
        is_shared: whether the chains of a run learn one theta together, or each its own.
        slopes: "backward" as above, or "forward", (log theta(J + 1) - log theta(J)) / width.
        bounds: of psi; None leaves it free.
        start: theta at the start: "uniform", "decreasing", "flat" (for a cumulative field: 0.1 everywhere), or its m values.
        is_frozen: whether theta stays as it starts.
        warm_up: iterations of the plain sampler before anything is learnt.
        include_prior: whether the energies hold the prior.
        offset: subtracted from energies.

    Reference:
        Deng 2021, Algorithms CSGLD (section 4.1), ICSGLD (4.2) and AWSGLD (4.3).

    Differs from the thesis: its weight theta^zeta(J) belongs to a density that is constant on bins, which is not the one sampled;
    its top-bin slope lets CSGLD escape to infinity; bounds are from the author's code.
    """

    partition: Partition
    zeta: float = 0.75
    gain: Schedule = DEFAULT_GAIN
    field: str = "psi"
    is_shared: bool = True
    slopes: str = "backward"
    bounds: tuple[float, float] | None = (-5.0, 5.0)
    start: str | tuple[float, ...] = "uniform"
    is_frozen: bool = False
    warm_up: int = 0
    include_prior: bool = True
    offset: float = 0.0

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
        self._start()
        _ = self._fold_every

    @property
    def is_cumulative(self) -> bool:
        """Whether theta is a running sum over bins."""
        return self.field == "cumulative"

    def init(self, num_chains: int) -> ContourState:
        groups = 1 if self.is_shared else num_chains
        masses = jnp.broadcast_to(jnp.asarray(self._start(), jnp.result_type(float)), (groups, self.partition.num_bins))
        return ContourState(
            init_weights(masses, self.is_cumulative),
            jnp.zeros(num_chains, masses.dtype),
            jnp.ones((), masses.dtype),
            jnp.zeros(num_chains, jnp.int32),
            jnp.zeros(num_chains, masses.dtype),
            jnp.zeros((3, num_chains), jnp.int32),
        )

    def update(self, state: ContourState, draws: Any, readings: Readings) -> tuple[ContourState, Move]:
        group = self._groups(len(readings.energies))
        weights = add(state.weights, group, state.bins, state.masses)
        energies = self._energies(readings)
        bins = self.partition.index(energies)
        lower, upper, here = self._read(weights, group, bins)
        slope = self._slope(lower, upper, bins)
        psi = 1.0 + self.zeta * readings.temperature * slope
        bounded = jnp.where(readings.iteration < self.warm_up, 1.0, self._bounded(psi))
        strength = self._strength(weights.scale[group], bins, energies, lower, upper, slope, here)
        weights, masses = self._learn(weights, group, strength, readings)
        is_top = bins == self.partition.num_bins - 1
        counts = state.counts + jnp.stack([bounded != psi, bounded < 0, is_top])
        everyone = jnp.ones_like(readings.energies)
        move = Move(
            readings.step_size * everyone,
            readings.temperature * everyone,
            jnp.where(readings.is_alive, bounded, 1.0).astype(everyone.dtype),
            everyone,
        )
        # While nothing is learnt yet there is nothing to undo: the weights of infinite temperature are one.
        temperature = jnp.where(readings.iteration < self.warm_up, jnp.inf, readings.temperature)
        kept = energies.astype(state.energies.dtype), temperature.astype(state.temperature.dtype)
        return ContourState(weights, *kept, bins, masses, counts), move

    @property
    def upkeep_every(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._fold_every

    def upkeep(self, state: ContourState) -> ContourState:
        scale = state.weights.scale
        masses = state.masses * scale[self._groups(len(state.bins))]
        return state._replace(weights=fold_scale(state.weights), masses=masses)

    def log_weights(self, state: ContourState) -> Array:
        energies, bins, temperature = state.energies, state.bins, state.temperature
        theta = state.weights.levels[0]
        theta = jnp.maximum(jnp.cumsum(theta, axis=1) if self.is_cumulative else theta, FLOOR)
        logs = jnp.log(theta)
        every = jnp.arange(self.partition.num_bins)
        shifted = jnp.roll(logs, -1, axis=1) if self.slopes == "forward" else jnp.roll(logs, 1, axis=1)
        steps = (shifted - logs if self.slopes == "forward" else logs - shifted) / self.partition.width
        slopes = jnp.where(self._has_slope(every), steps, 0.0)
        psi = 1.0 + self.zeta * jnp.where(jnp.isfinite(temperature), temperature, 0.0) * slopes
        excess = self._bounded(psi) - 1.0
        of_chain = jnp.broadcast_to(excess, (len(bins), self.partition.num_bins))
        below = jnp.sum(jnp.where((every >= 1) & (every < bins[:, None]), of_chain, 0.0), axis=1) * self.partition.width
        here = jnp.take_along_axis(of_chain, bins[:, None], axis=1)[:, 0]
        inside = jnp.where(bins > 0, here * (energies - self.partition.left(bins)), 0.0)
        return (below + inside) / temperature

    def statistics(self, state: ContourState) -> dict[str, Any]:
        weights = add(state.weights, self._groups(len(state.bins)), state.bins, state.masses)
        theta = jnp.cumsum(weights.theta, axis=1) if self.is_cumulative else weights.theta
        num_bounded, num_negative, num_top = state.counts
        return {"theta": theta, "num_bounded": num_bounded, "num_negative": num_negative, "num_top": num_top}

    def _energies(self, readings: Readings) -> Array:
        energies = readings.energies if self.include_prior else readings.energies - readings.prior_energies
        return energies - self.offset

    def _groups(self, num_chains: int) -> Array:
        return jnp.zeros(num_chains, jnp.int32) if self.is_shared else jnp.arange(num_chains, dtype=jnp.int32)

    def _bounded(self, psi: Array) -> Array:
        return psi if self.bounds is None else jnp.clip(psi, *self.bounds)

    def _has_slope(self, bins: Array) -> Array:
        """Whether psi may differ from 1 in a bin: not below the first edge, and in the top bin only for a cumulative field."""
        return (bins > 0) & ((bins < self.partition.num_bins - 1) | self.is_cumulative)

    def _read(self, weights: Weights, group: Array, bins: Array) -> tuple[Array, Array, Array]:
        """Masses, before the scale, at the two ends of the slope, and at the bin itself; none of them zero."""
        last = self.partition.num_bins - 1
        if self.is_cumulative:
            here = prefix_sums(weights, group, bins)
            ends = here - read(weights, group, bins), here
        else:
            here = read(weights, group, bins)
            if self.slopes == "forward":
                ends = here, read(weights, group, jnp.minimum(bins + 1, last))
            else:
                ends = read(weights, group, jnp.maximum(bins - 1, 0)), here
        return jnp.maximum(ends[0], FLOOR), jnp.maximum(ends[1], FLOOR), jnp.maximum(here, FLOOR)

    def _slope(self, lower: Array, upper: Array, bins: Array) -> Array:
        steps = (jnp.log(upper) - jnp.log(lower)) / self.partition.width
        return jnp.where(self._has_slope(bins), steps, 0.0)

    def _strength(
        self, scale: Array, bins: Array, energies: Array, lower: Array, upper: Array, slope: Array, here: Array
    ) -> Array:
        """How strongly each chain pulls theta towards its bin: f."""
        if self.field in ("theta", "cumulative"):
            return scale * here
        if self.field == "theta^zeta":
            return (scale * here) ** self.zeta
        # Psi is constant in the open bins: its value at the nearest edge.
        inside = lower * jnp.exp(slope * (energies - self.partition.left(bins)))
        at_bottom, at_top = (here, lower) if self.slopes == "backward" else (upper, here)
        ends = jnp.where(bins == 0, at_bottom, at_top)
        return jnp.minimum(scale * jnp.where(self._has_slope(bins), inside, ends), 1.0) ** self.zeta

    def _learn(self, weights: Weights, group: Array, strength: Array, readings: Readings) -> tuple[Weights, Array]:
        """The new scale, and what each chain adds to its bin. Chains that are not alive leave no trace."""
        is_learning = jnp.asarray(not self.is_frozen) & (readings.iteration >= self.warm_up)
        gain = jnp.where(is_learning, as_schedule(self.gain)(readings.iteration), 0.0)
        pull = jnp.where(readings.is_alive, strength, 0.0)
        alive = readings.is_alive.astype(pull.dtype)
        nothing = jnp.zeros_like(weights.scale)
        number = jnp.maximum(nothing.at[group].add(alive), 1.0)
        scale = weights.scale * (1.0 - gain * nothing.at[group].add(pull) / number)
        return weights._replace(scale=scale), gain * pull / (number * scale)[group]

    def _start(self) -> np.ndarray:
        """The masses of the bins at the start, shape (m,)."""
        number = self.partition.num_bins
        if isinstance(self.start, str):
            check_choice("start", self.start, ("uniform", "decreasing", "flat"))
            if self.start == "flat":
                return (
                    np.concatenate([[0.1], np.zeros(number - 1)]) if self.is_cumulative else np.full(number, 1 / number)
                )
            falling = np.arange(number, 0, -1.0)
            return falling / falling.sum() if self.start == "decreasing" else np.full(number, 1 / number)
        values = np.asarray(self.start, float)
        if values.shape != (number,) or not np.all(values > 0) or not np.all(np.isfinite(values)):
            refuse("start", f"{number} positive numbers", f"{values.shape}", "Give a value for every bin.")
        return np.diff(values, prepend=0.0) if self.is_cumulative else values

    @functools.cached_property
    def _fold_every(self) -> int:
        """Iterations after which the scale is folded in: few enough that it cannot underflow. Refuses a gain out of range."""
        counts = np.unique(np.concatenate([[0], np.geomspace(1, 1e8, 60).astype(np.int32)]))
        with jax.ensure_compile_time_eval():
            gains = np.asarray([as_schedule(self.gain)(count) for count in counts])
        check_real("gain", float(gains.min()), "Theta moves this fraction of the way.", above=0.0)
        largest = check_real("gain", float(gains.max()), "Lower it: theta moves this fraction of the way.", maximum=1.0)
        return int(np.clip(_LOWEST_LOG_SCALE / -np.log1p(-min(largest, 1 - 1e-7)), 1, 4096))
