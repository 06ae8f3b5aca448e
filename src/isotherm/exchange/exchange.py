"""Replica exchange as a coupling: replicas exchange rungs and keep their states."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.coupling import Coupling, CouplingInputs, Observed, Traits
from isotherm.exchange.diagnosis import diagnose
from isotherm.exchange.ladder import EquiAcceptance, Ladder
from isotherm.exchange.round_trips import RoundTrips, count_round_trips, init_round_trips
from isotherm.exchange.rules import Corrected, Rule
from isotherm.exchange.schemes import DeterministicEvenOdd, Scheme
from isotherm.exchange.swaps import Readings, Swaps, swap_at_once, swap_in_turn, variance_of_difference
from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.foundation.parts import Static
from isotherm.foundation.periodic import ONCE, Periodic
from isotherm.foundation.randomness import uniforms
from isotherm.kernels.kernel import Move
from isotherm.potentials.potential import Potential

# Without a correction the variance is measured only for the checks, this many times less often.
_UNCORRECTED_FACTOR = 10


class ExchangeState(NamedTuple):
    """The state of a ladder of P rungs with K pairs."""

    rung: Array  # The rung of each replica, shape (P,).
    replica: Array  # The replica on each rung, shape (P,).
    step_ratios: Array  # Step sizes of the rungs over that of rung 0, shape (P,).
    temperature_ratios: Array  # Temperatures of the rungs over that of rung 0, shape (P,).
    is_open: Any  # Gates of the pairs, shape (K,); () if the scheme has none.
    rule: Any  # The state of the swap rule.
    last_swap: Any  # The iteration of each pair's last swap, shape (K,); () without `cooling`.
    counts: Array  # Iterations in which each pair was allowed, swapped, was accepted, and all, shape (4, K).
    trips: RoundTrips  # Round trips of the replicas.
    moves: Any = ()  # Accepted proposals on each rung, shape (P,), of adjusted kernels.
    energies: Any = ()  # The energies of the rungs, shape (P,), on a path.


@dataclasses.dataclass(frozen=True, eq=False)
class Exchange(Coupling):
    r"""Swaps of rungs among P replicas.

        pairs    <- scheme.is_active(k)                                    which pairs of rungs may swap
        accepted <- rule.accept(energies, temperatures, noise variance)    which of them do
        rungs of a swapped pair are exchanged; momentum of a replica on a new rung *= sqrt(epsilon' tau' / (epsilon tau))

    A swap exchanges two integers: its cost does not depend on the number of parameters, and control variates and model states stay
    with their parameters. The factor on the momentum is the ratio of the stationary scales of SGHMC, and 0 if either rung has no
    noise. The draws of a run are the positions of the replica on rung 0.

    Attributes:
        ladder: step sizes and temperatures of the rungs.
        scheme: which pairs may swap.
        rule: which of them do.
        adaptation: moves the inner rungs; None keeps the ladder.
        intensity: the probability that an iteration tries to swap; None always tries.
        cooling: iterations for which a pair rests after a swap. Rests bias, as the gate of a window does: hot states stay on the
            target for that long.
        fresh_energies: whether each pair gets energies of its own on further batches, at the cost of a forward pass per pair.
        ignores_prior: whether swaps may read the loss alone (`coupling_includes_prior=False`) although rungs temper the prior too,
            as the thesis' networks do. The draws then follow another distribution.
        is_path: whether rungs temper the energy without the prior, and keep the prior whole: rung i has the energy
            U_0 + (T_0 / T_i) (U - U_0), with U_0 the potential's prior energy. An infinite temperature is the prior alone, from
            which that rung is drawn anew in every iteration if the potential has a reference.
        is_adjusted: whether accepted proposals are counted by rung, for adjusted kernels.
        records_all: whether the positions of all replicas are recorded, not only the target's: for pilots.

    Differs from the thesis: its code swaps parameters, and velocities stay with the rung.
    """

    ladder: Ladder
    scheme: Scheme = dataclasses.field(default_factory=DeterministicEvenOdd)
    rule: Rule = dataclasses.field(default_factory=Corrected)
    adaptation: EquiAcceptance | None = None
    intensity: float | None = None
    cooling: Static[int] = 0
    fresh_energies: Static[bool] = False
    ignores_prior: Static[bool] = False
    is_path: Static[bool] = False
    is_adjusted: Static[bool] = False
    records_all: Static[bool] = False

    def __post_init__(self):
        self.rule.check(self.ladder)
        if self.intensity is not None:
            check_real("intensity", self.intensity, "Give the probability of trying.", above=0.0, maximum=1.0)
        check_integer("cooling", self.cooling, 0, "Give a number of iterations.")
        if self.fresh_energies and not self._reuses_energies:
            remedy = "Pairs of this scheme are disjoint, so each energy is used once as it is."
            refuse("fresh_energies", "False for disjoint pairs", True, remedy)
        if self.adaptation is not None and self.scheme.is_sequential:
            remedy = "Use StochasticEvenOdd or DeterministicEvenOdd."
            refuse("adaptation", "used with disjoint pairs", type(self.scheme).__name__, remedy)
        if np.inf in self.ladder.temperatures:
            if not self.is_path:
                remedy = 'Write `path="reference"`, for a potential with a reference (`iso.with_reference`); or a finite one.'
                refuse("temperatures", "finite unless a path starts at a reference", "infinity", remedy)
            if self.adaptation is not None:
                remedy = "Leave out `adaptation`, and give all temperatures."
                refuse("adaptation", "None for an infinite temperature", type(self.adaptation).__name__, remedy)

    @property
    def traits(self) -> Traits:
        num_fresh = len(self._pairs) if self.fresh_energies else 0
        reads_noise = isinstance(self.rule, Corrected) and not self.rule.is_naive and self.rule.variance == "batch"
        follows = self.rule.follows_distribution
        return Traits(self.ladder.num_rungs, num_fresh, reads_noise, follows, is_path=self.is_path)

    @property
    def _reuses_energies(self) -> bool:
        # One pair never reuses an energy, whatever the scheme.
        return self.scheme.is_sequential and self.ladder.num_rungs > 2

    @property
    def _has_gates(self) -> bool:
        return self.scheme.length(self.ladder.num_rungs) > 1

    @property
    def _pairs(self) -> np.ndarray:
        return self.scheme.pairs(self.ladder.num_rungs)

    def check(self, potential: Potential) -> None:
        if self._reuses_energies and not potential.is_exact and not self.fresh_energies:
            rule = f"True for {type(self.scheme).__name__} with noisy energies"
            remedy = "Several pairs would use the same noisy energy, which biases. Set it, or use even-odd pairs."
            refuse("fresh_energies", rule, False, remedy)
        if self.is_path:
            self._check_path(potential)
        elif isinstance(self.rule, Corrected) and not potential.coupling_includes_prior and not self.ignores_prior:
            rule = "True for replica exchange, whose rungs temper the prior too"
            remedy = (
                "Swaps that read the loss alone would change the distribution. Leave it out; `ignores_prior=True` of the sampler "
                "accepts that bias, as the thesis' networks do."
            )
            if potential.has_reference:
                remedy = 'Write `path="reference"`, or sample the potential without its reference.'
                refuse("path", '"reference" for a potential with a reference', '"temperature"', remedy)
            refuse("coupling_includes_prior", rule, False, remedy)

    def _check_path(self, potential: Potential) -> None:
        if potential.coupling_includes_prior:
            remedy = "Give it one: `iso.with_reference(potential, draw, log_density)`."
            refuse("potential", 'one with a reference for `path="reference"`', type(potential).__name__, remedy)
        if np.isinf(self.ladder.temperatures[-1]) and not potential.has_reference:
            remedy = "Give a finite one, or a reference: `iso.with_reference(potential, draw, log_density)`."
            refuse("temperatures", "finite for a prior that cannot be drawn", "infinity", remedy)

    def init(self, num_chains: int) -> ExchangeState:
        rung = jnp.arange(num_chains, dtype=jnp.int32)
        number = len(self._pairs)
        steps, temperatures = jnp.stack(self.ladder.step_sizes), jnp.stack(self.ladder.temperatures)
        coldest = jnp.where(temperatures[0] > 0, temperatures[0], 1.0)
        return ExchangeState(
            rung,
            rung,
            steps / steps[0],
            temperatures / coldest,
            jnp.ones(number, bool) if self._has_gates else (),
            self.rule.init(number),
            jnp.full(number, -(2**30), jnp.int32) if self.cooling else (),
            jnp.zeros((4, number), jnp.int32),
            init_round_trips(rung),
            jnp.zeros(num_chains, jnp.int32) if self.is_adjusted else (),
            jnp.zeros(num_chains) if self.is_path else (),
        )

    def draw(self, key: Array, iterations: Array, num_chains: int) -> Array:
        return uniforms(key, iterations, len(self._pairs) + 2)  # One per pair, whether to try, and for the scheme.

    def update(self, state: ExchangeState, random_numbers: Array, inputs: CouplingInputs) -> tuple[ExchangeState, Move]:
        number, iteration = self.ladder.num_rungs, inputs.iteration
        of_pairs, to_try, of_scheme = random_numbers[:-2], random_numbers[-2], random_numbers[-1]
        is_allowed = self.scheme.is_active(number, iteration, of_scheme)
        is_open, last_swap = state.is_open, state.last_swap
        if self._has_gates:
            is_open |= self.scheme.opens_gates(number, iteration)
            is_allowed &= is_open
        if self.cooling:
            is_allowed &= iteration - last_swap > self.cooling
        if self.intensity is not None:
            is_allowed &= to_try < self.intensity
        covariance = inputs.noise_covariance
        if covariance is not None and isinstance(self.rule, Corrected):
            first = covariance if covariance.ndim == 2 else covariance[0]
            # For the statistics: swaps use the variance of this iteration.
            estimated = variance_of_difference(first, *(state.replica[end] for end in self._pairs.T))
            state = state._replace(rule=self.rule.track(state.rule, estimated))
        replica, rung, accepted, swapped = self._decide_swaps(state, of_pairs, inputs, is_allowed)
        step_ratios, temperature_ratios = self._adapted(state, accepted, iteration)
        after = ExchangeState(
            rung,
            replica,
            step_ratios,
            temperature_ratios,
            is_open & ~swapped if self._has_gates else (),
            self.rule.learn(state.rule, accepted, swapped, iteration),
            jnp.where(swapped, iteration, last_swap) if self.cooling else (),
            state.counts + jnp.stack([is_allowed, swapped, accepted, jnp.ones_like(accepted)]).astype(jnp.int32),
            count_round_trips(state.trips, rung),
            self._moves(state, inputs),
            inputs.energies[state.replica].astype(state.energies.dtype) if self.is_path else (),
        )
        return after, self._next_move(state, after, inputs)

    def observe(self, state: ExchangeState) -> Observed:
        values = {"rung": state.rung}
        if self.adaptation is not None:
            ratios = state.temperature_ratios if self.adaptation.of == "temperature" else state.step_ratios
            values |= {"ladder": ratios, "num_accepted": state.counts[2]}
        if self.adaptation is not None or not self.rule.is_naive:
            values |= {name: jnp.atleast_1d(value) for name, value in self.rule.statistics(state.rule).items()}
        if self.is_path:
            values |= {"path_energies": state.energies}
        return Observed(values, None if self.records_all else state.replica[:1])

    def periodic(self, is_exact: bool) -> tuple[Periodic, ...]:
        rule = self.rule
        if not isinstance(rule, Corrected) or (rule.is_naive and is_exact):
            return ()

        def measure_variance(state: ExchangeState, measure: Callable[[int], CouplingInputs]) -> ExchangeState:
            energies = measure(rule.num_measured).energies[:, state.replica]
            cold, hot = (energies[:, ends] for ends in self._pairs.T)
            return state._replace(rule=rule.track(state.rule, jnp.var(cold - hot, axis=0, ddof=1)))

        every = rule.measure_every * (_UNCORRECTED_FACTOR if rule.is_naive else 1)
        return (Periodic(ONCE if is_exact else every, measure_variance),)

    def statistics(self, state: ExchangeState) -> dict[str, Any]:
        num_attempts, num_swaps, num_accepted, num_iterations = state.counts
        return {
            "rung": state.rung,
            "num_swaps": num_swaps,
            "swap_rate": num_swaps / jnp.maximum(num_attempts, 1),
            "acceptance": num_accepted / jnp.maximum(num_iterations, 1),
            "round_trips": state.trips.num_strict,
            "round_trips_thesis": state.trips.num_thesis,
            "step_size_ratios": state.step_ratios,
            "temperature_ratios": state.temperature_ratios,
            **(
                {"num_moves": jnp.full_like(state.moves, num_iterations[0]), "num_moves_accepted": state.moves}
                if self.is_adjusted
                else {}
            ),
            **self.rule.statistics(state.rule),
        }

    def diagnose(self, run: RunView) -> list[Check]:
        return diagnose(self, run)

    def _moves(self, state: ExchangeState, inputs: CouplingInputs) -> Any:
        if not self.is_adjusted or inputs.accepted is None:
            return state.moves
        # A comparison of all pairs: gathers from chains of many runs are slow on a CPU.
        is_on = state.rung == jnp.arange(self.ladder.num_rungs)[:, None]
        return state.moves + jnp.sum(is_on & inputs.accepted, axis=1, dtype=jnp.int32)

    def _decide_swaps(self, state: ExchangeState, uniform: Array, inputs: CouplingInputs, is_allowed: Array) -> Swaps:
        iteration, rule = inputs.iteration, self.rule
        temperatures = inputs.temperature * state.temperature_ratios
        readings = Readings(inputs.energies, inputs.noise_covariance, inputs.num_examples)
        if not self._reuses_energies:
            accept = lambda pairs, u: rule.accept(state.rule, pairs, u, iteration)  # noqa: E731
            is_forced = self.scheme.is_forced(self.ladder.num_rungs, iteration)
            return swap_at_once(
                accept, state.replica, state.rung, readings, temperatures, uniform, is_allowed, is_forced
            )
        if inputs.fresh_energies is not None:
            readings = readings._replace(energies=inputs.fresh_energies)
        accept_one = lambda pair, one, u: rule.accept(rule.of_pair(state.rule, pair), one, u, iteration)  # noqa: E731
        return swap_in_turn(accept_one, self._pairs, state.replica, readings, temperatures, uniform, is_allowed)

    def _adapted(self, state: ExchangeState, accepted: Array, iteration: Array) -> tuple[Array, Array]:
        if self.adaptation is None:
            return state.step_ratios, state.temperature_ratios
        if self.adaptation.of == "temperature":
            return state.step_ratios, self.adaptation.move(state.temperature_ratios, accepted, iteration)
        return self.adaptation.move(state.step_ratios, accepted, iteration), state.temperature_ratios

    def _next_move(self, before: ExchangeState, after: ExchangeState, inputs: CouplingInputs) -> Move:
        step_size = inputs.step_size * after.step_ratios[after.rung]
        old, new = before.step_ratios[before.rung], after.step_ratios[after.rung]
        ratios = after.temperature_ratios[after.rung]
        multiplier, temperature = jnp.ones_like(step_size), inputs.temperature * ratios
        if self.is_path:
            multiplier, temperature = 1.0 / ratios, jnp.full_like(step_size, inputs.temperature)
        else:
            old, new = old * before.temperature_ratios[before.rung], new * ratios
        ratio = jnp.where((old > 0) & (new > 0), jnp.sqrt(new / jnp.where(old > 0, old, 1.0)), 0.0)
        scale = jnp.where(after.rung == before.rung, 1.0, ratio)
        return Move(step_size, temperature, multiplier.astype(step_size.dtype), scale.astype(step_size.dtype))
