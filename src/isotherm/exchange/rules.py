"""When two replicas swap rungs: the corrected Metropolis rule, and the deterministic rule with a buffer."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.exchange.ladder import Ladder, check_rising
from isotherm.foundation.errors import check_choice, check_integer, check_real
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.parts import Part, Static
from isotherm.foundation.schedules import Schedule, as_schedule, check_schedule


class Pairing(NamedTuple):
    """Energies and temperatures of pairs of rungs, along the last axis; `cold` is the lower rung of a pair.

    Attributes:
        variance: of the noise of the energy difference at these positions; None uses the tracked one.
        num_examples: number of examples that it is estimated from.
    """

    cold_energy: Array
    hot_energy: Array
    cold_temperature: Array
    hot_temperature: Array
    variance: Array | None = None
    num_examples: Array | None = None


class CorrectedState(NamedTuple):
    """The tracked noise of the energy differences, per pair."""

    variance: Array  # The smoothed estimates.
    square: Array  # Their smoothed squares.
    num_estimates: Array  # Their number.
    log_factor: Array  # Log of the factor on F due to swaps; a scalar.


@dataclasses.dataclass(frozen=True, eq=False)
class Corrected(Part):
    r"""Metropolis swaps that stay right on average under noisy energies.

        accept with probability min(1, exp{ delta (U_1 - U_2) - delta^2 Var(U_1 - U_2) / (2 F) - c })

    with delta = 1/tau_1 - 1/tau_2 and rung 1 the colder. Under Gaussian noise F = 1 keeps detailed balance on average; a larger
    F swaps more often and is biased; without F, which is F = infinity, the rule is the naive one.

    `variance="batch"` estimates the variance at the two positions from the examples of their mini-batch, if the potential gives one
    value per example: noise that depends on the position, or on the size of a short last batch, is corrected as it is. Otherwise
    the variance is tracked: measured every `measure_every` iterations on `num_measured` further batches, which replicas share if
    they share batches, with weights 1/m or a constant. No swap before the first measurement. Exact energies are measured once.

    Attributes:
        correction_factor: F, a number or a function of the iteration; None for no correction. With an annealed temperature,
            F_0 tau_0 / tau_k, which is `schedules.Following(F_0, temperature)`, keeps delta / F constant.
        measure_every: iterations between two measurements of the variance.
        num_measured: batches in a measurement.
        smoothing: weight of a new measurement; None is 1/m, the mean of all.
        variance: "batch", or "tracked": one variance per pair of rungs, as in the thesis, which biases where the noise depends on
            the position.
        jump: factor on F after every swap; None keeps F.
        gate_log_correction: c, which removes a part of the bias of a window's gate; see `DeterministicEvenOdd`.

    Reference:
        Deng 2021, Algorithm of section 3.1 (adaptive reSGLD) and section 3.2.

    Differs from the thesis: its variance-reduced algorithm inserts Var(U_1 - U_2) where half of it belongs.
    """

    follows_distribution = True

    correction_factor: Schedule | None = 1.0
    measure_every: Static[int] = 100
    num_measured: Static[int] = 10
    smoothing: float | None = None
    jump: float | None = None
    gate_log_correction: float = 0.0
    variance: Static[str] = "batch"

    def __post_init__(self):
        check_choice("variance", self.variance, ("batch", "tracked"))
        if not callable(self.correction_factor) and self.correction_factor == math.inf:
            object.__setattr__(self, "correction_factor", None)
        if self.correction_factor is not None:
            check_schedule("correction_factor", self.correction_factor, allow_zero=False)
        check_integer("measure_every", self.measure_every, 1, "Give the iterations between two measurements.")
        check_integer("num_measured", self.num_measured, 2, "A variance needs two energies.")
        if self.smoothing is not None:
            check_real("smoothing", self.smoothing, "Give a weight, or None for 1/m.", above=0.0, maximum=1.0)
        if self.jump is not None:
            check_real("jump", self.jump, "Give a factor, such as 0.8, or None.", above=0.0)
        check_real("gate_log_correction", self.gate_log_correction, "Give a log probability.")

    @property
    def is_naive(self) -> bool:
        """Whether energy noise is not corrected."""
        return self.correction_factor is None

    def check(self, ladder: Ladder) -> None:
        """Refuse a ladder that this rule cannot use."""
        check_rising("temperatures", ladder.temperatures)
        check_real("temperatures", ladder.temperatures[0], "The Metropolis rule divides by them.", above=0.0)

    def init(self, num_pairs: int) -> CorrectedState:
        """The state before the first measurement."""
        variance = jnp.zeros(num_pairs) if self.is_naive else jnp.full(num_pairs, jnp.inf)
        return CorrectedState(variance, jnp.zeros(num_pairs), jnp.zeros(num_pairs, jnp.int32), jnp.zeros(()))

    def of_pair(self, state: Any, pair: Array) -> Any:
        """The state of one pair."""
        variance, square, num_estimates = (values[pair] for values in state[:3])
        return CorrectedState(variance, square, num_estimates, state.log_factor)

    def log_acceptance(self, state: CorrectedState, pairs: Pairing, iteration: Array) -> Array:
        """Log of the probability to swap, at most 0."""
        delta = 1.0 / pairs.cold_temperature - 1.0 / pairs.hot_temperature
        exponent = delta * (pairs.cold_energy - pairs.hot_energy) - self.gate_log_correction
        if self.correction_factor is not None:
            factor = as_schedule(self.correction_factor)(iteration) * jnp.exp(state.log_factor)
            exponent = exponent - self._penalty(delta, state.variance, pairs) / factor
        return jnp.minimum(exponent, 0.0)

    def _penalty(self, delta: Array, tracked_variance: Array, pairs: Pairing) -> Array:
        """Half of the variance of the exponent, plus a correction for the scatter of an estimate from n examples.

        With v the estimate, v / 2 + v^2 / (4 (n + 1)) + v^3 / (3 (n + 1) (n + 3)), for v below n / 4.

        Reference:
            Ceperley and Dewing 1999, "The penalty method for random walks with uncertain energies".
        """
        if pairs.variance is None or pairs.num_examples is None:
            return 0.5 * (delta**2 * tracked_variance)
        v = delta**2 * pairs.variance
        n = pairs.num_examples.astype(v.dtype)
        return 0.5 * v + v**2 / (4.0 * (n + 1.0)) + v**3 / (3.0 * (n + 1.0) * (n + 3.0))

    def accept(self, state: CorrectedState, pairs: Pairing, uniform: Array, iteration: Array) -> Array:
        """Whether each pair would swap."""
        # One minus a number in [0, 1) is never zero, so its logarithm is finite; it is at most 0, so a certain swap is accepted.
        return jnp.log1p(-uniform) <= self.log_acceptance(state, pairs, iteration)

    def learn(self, state: CorrectedState, accepted: Array, swapped: Array, iteration: Array) -> CorrectedState:
        """The state after the swaps of an iteration."""
        if self.jump is None:
            return state
        number = jnp.sum(swapped).astype(state.log_factor.dtype)
        return state._replace(log_factor=state.log_factor + number * jnp.log(self.jump))

    def track(self, state: CorrectedState, estimated: Array) -> CorrectedState:
        """The state after an estimate of the variance of every pair's energy difference, shape (num_pairs,)."""
        number = state.num_estimates + jnp.isfinite(estimated).astype(state.num_estimates.dtype)
        later = 1.0 / jnp.maximum(number, 1).astype(float) if self.smoothing is None else self.smoothing
        weight = jnp.where(number <= 1, 1.0, later)
        kept = jnp.where(jnp.isfinite(state.variance), (1.0 - weight) * state.variance, 0.0)
        variance = jnp.where(jnp.isfinite(estimated), kept + weight * estimated, state.variance)
        square = jnp.where(jnp.isfinite(estimated), (1.0 - weight) * state.square + weight * estimated**2, state.square)
        dtype = state.variance.dtype
        return CorrectedState(variance.astype(dtype), square.astype(dtype), number, state.log_factor)

    def statistics(self, state: CorrectedState) -> dict[str, Array]:
        """Entries of `Run.stats`."""
        # The mean square of a variance estimated from normal noise, over its squared mean.
        scatter = 1.0 + 2.0 / (self.num_measured - 1)
        spread = jnp.sqrt(jnp.maximum(state.square / scatter - state.variance**2, 0.0))
        return {"variance_of_difference": state.variance, "spread_of_variance": spread}


class DeterministicState(NamedTuple):
    """The buffer."""

    buffer: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Deterministic(Part):
    r"""Swaps when the energy of the hotter replica is lower by more than a buffer: accept iff U_2 + C < U_1.

        C <- C + s g_k (mean over pairs of accepted - S)

    For rungs without noise (SGD exploration): it finds low energies and moves replicas fast, but samples no distribution. With an
    adaptive ladder the acceptance of every pair converges to S.

    Attributes:
        buffer: C at the start, in units of energy.
        target: S, the target acceptance rate of every pair; None keeps C.
        gain: g_k, a function of the iteration; the adaptive ladder uses it too.
        buffer_gain: s, a factor on the gain of C (1, or 0.1 in the thesis' image experiments).

    Reference:
        Deng 2021, Algorithm of section 3.3 (DEO*-SGD).
    """

    buffer: float = 0.0
    target: float | None = None
    gain: Schedule = dataclasses.field(default_factory=PolynomialGain)
    buffer_gain: float = 1.0

    is_naive = True
    follows_distribution = False

    def __post_init__(self):
        check_real("buffer", self.buffer, "Give an energy.")
        if self.target is not None:
            check_real("target", self.target, "Give an acceptance rate.", above=0.0, below=1.0)
        check_schedule("gain", self.gain, allow_zero=True)
        check_real("buffer_gain", self.buffer_gain, "Give a factor.", minimum=0.0)

    def check(self, ladder: Ladder) -> None:
        rising = ladder.step_sizes if len(set(ladder.step_sizes)) > 1 else ladder.temperatures
        check_rising("step_sizes" if rising is ladder.step_sizes else "temperatures", rising)

    def init(self, num_pairs: int) -> DeterministicState:
        return DeterministicState(jnp.asarray(self.buffer, jnp.result_type(float)))

    def of_pair(self, state: Any, pair: Array) -> Any:
        return state

    def accept(self, state: DeterministicState, pairs: Pairing, uniform: Array, iteration: Array) -> Array:
        return pairs.hot_energy + state.buffer < pairs.cold_energy

    def learn(self, state: DeterministicState, accepted: Array, swapped: Array, iteration: Array) -> DeterministicState:
        """The buffer after an iteration, from the acceptance of all pairs, allowed to swap or not."""
        if self.target is None:
            return state
        step = self.buffer_gain * as_schedule(self.gain)(iteration)
        return DeterministicState(state.buffer + step * (jnp.mean(accepted.astype(state.buffer.dtype)) - self.target))

    def statistics(self, state: DeterministicState) -> dict[str, Array]:
        return {"buffer": state.buffer}


Rule = Corrected | Deterministic


def expected_swap_rate(mean: Array | float, deviation: Array | float) -> Array:
    """E min(1, S) for log S normal with mean u - s^2 / 2 and standard deviation s: e^u Phi(-u/s - s/2) + Phi(u/s - s/2).

    With u = delta (U_1 - U_2) and s^2 = delta^2 Var(U_1 - U_2), the rate of the corrected rule at F = 1 under Gaussian noise.
    Without noise it is min(1, e^u).

    Differs from the thesis: its second term carries a further 1/s, which is wrong.
    """
    u, s = jnp.asarray(mean, float), jnp.asarray(deviation, float)
    safe = jnp.where(s > 0, s, 1.0)
    # In the logarithm: e^u alone overflows where the other factor vanishes.
    low = jnp.exp(u + jax.scipy.stats.norm.logcdf(-u / safe - safe / 2))
    noisy = low + jax.scipy.stats.norm.cdf(u / safe - safe / 2)
    return jnp.where(s > 0, noisy, jnp.exp(jnp.minimum(u, 0.0)))
