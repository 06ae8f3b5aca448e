"""Shared options of samplers with corrected swaps, and how their parts are put together."""

import dataclasses
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from isotherm.estimators import Estimator
from isotherm.exchange import (
    Adjacent,
    Corrected,
    DeterministicEvenOdd,
    EquiAcceptance,
    Exchange,
    Ladder,
    LadderSearch,
    geometric_ladder,
)
from isotherm.exchange.schemes import Scheme
from isotherm.foundation.docstrings import defaults_of
from isotherm.foundation.errors import check_choice, check_type, refuse, short
from isotherm.foundation.schedules import Scaled, Schedule, check_schedule
from isotherm.kernels import Kernel, within
from isotherm.samplers.constructor import Box, constructor
from isotherm.samplers.sampler import AnySampler, Sampler, Specification

Steps = float | tuple[float, ...] | Literal["auto"]
Temperatures = tuple[float, ...]

LADDERS = "A `Sampler` for `iso.sample`, which runs two independent ladders unless `num_ladders` says otherwise."
_ARGUMENTS = """
    step_size: eps, one number above 0 for all rungs or a tuple with one for each, in units of position^2 / energy; "auto" finds it,
        and scales of the coordinates, by a pilot run.
    temperatures: T of the rungs, rising, the target's first; with `num_replicas` the two ends. In units of the energy.
    num_replicas: P, the rungs of a geometric ladder between two ends of `temperatures` and `step_size`; None takes both as given.
    correction_factor: F, a number above 0 or a function of the iteration; None and infinity switch the correction off. No unit.
    measure_every: iterations between two measurements of a tracked variance.
    num_measured: batches in a measurement of a tracked variance, at least 2.
    smoothing: the weight of a new measurement, in (0, 1]; None is the mean of all.
    energy_batch: "shared" reads the energy of a swap from the gradient's batch; "fresh" from a batch of its own, for one more
        forward pass, without the O(eps) bias of sharing.
    refresh_every: m, iterations between two full passes, and between two measurements of the variance.
    is_adaptive: whether C is the coefficient of a regression over batches; else it is -1, which is right for a young anchor.
"""


class SwapOptions(TypedDict, total=False):
    """Options of all samplers with corrected swaps, with their defaults.

    Attributes:
        scheme: which pairs of rungs may swap in an iteration, an object of `iso.exchange`; None tries the one pair of two rungs in
            every iteration, and even and odd pairs of more rungs in turn (`DeterministicEvenOdd(1)`).
        intensity: the probability, in (0, 1], that an iteration tries to swap at all; None always tries.
        cooling: iterations for which a pair rests after it swapped, which biases the target towards hot states; 0 is unbiased.
        gate_log_correction: c, subtracted from the log of the acceptance to correct part of the bias of a window's gate; see
            `exchange.DeterministicEvenOdd`. No unit.
        fresh_energies: whether every pair gets energies of its own on further batches, one more forward pass for each. Needed for
            noisy energies by schemes that try pairs in turn (`Adjacent`, `AllPairs`) on three rungs or more.
        ignores_prior: whether swaps may read the loss alone, where the potential has `coupling_includes_prior=False`. Rungs temper
            the prior too, so the draws then follow another distribution; the thesis' networks are sampled so.
        variance: "batch" corrects a swap by the variance of the noise of the two positions at hand, from the examples of their
            mini-batch, where the potential has such; "tracked" by the mean variance of the two rungs, as the thesis does.
        adaptation: `exchange.EquiAcceptance(gain, of="temperature")` moves the inner temperatures until all pairs accept
            equally often; None keeps the ladder fixed.
        path: "temperature" divides the whole energy by the temperatures of the rungs; "reference" keeps the reference of the
            potential, U_0, whole: rung i has the energy U_0 + (U - U_0) T_0 / T_i, and an infinite temperature draws from it.
        ladder: "auto" finds the rungs above the first temperature by a pilot run, all with the first step size; an
            `exchange.LadderSearch(num_steps)` sets the pilot's length; None takes the rungs as given.
        box: (low, high), numbers or arrays that broadcast against the position. Proposals outside are rejected, or reflected for
            (low, high, "reflect"); None has no walls.
    """

    scheme: Annotated[Scheme | None, None]
    intensity: Annotated[float | None, Exchange.intensity]
    cooling: Annotated[int, Exchange.cooling]
    gate_log_correction: Annotated[float, Corrected.gate_log_correction]
    fresh_energies: Annotated[bool, Exchange.fresh_energies]
    ignores_prior: Annotated[bool, Exchange.ignores_prior]
    variance: Annotated[str, Corrected.variance]
    adaptation: Annotated[EquiAcceptance | None, Exchange.adaptation]
    path: Annotated[str, "temperature"]
    ladder: Annotated[str | LadderSearch | None, None]
    box: Annotated[Box, None]


class ExchangeOptions(SwapOptions, total=False):
    """`SwapOptions`, and schedules of the whole ladder.

    Attributes:
        step_factor: multiplies the step sizes of all rungs, a number above 0 or a function of the iteration such as
            `schedules.Annealed(1.0, 1.02, 196)`; no unit.
        temperature_factor: likewise for the temperatures of all rungs. `schedules.Following(F, temperature_factor)` is the
            correction factor that keeps F times the temperature constant.
    """

    step_factor: Annotated[Schedule, 1.0]
    temperature_factor: Annotated[Schedule, 1.0]


exchange_constructor = constructor(SwapOptions, ExchangeOptions, arguments=_ARGUMENTS, returns=LADDERS)
cyclical_exchange_constructor = constructor(SwapOptions, arguments=_ARGUMENTS, returns=LADDERS)


def ladder_of(step_size: Any, temperatures: Temperatures, num_replicas: int | None) -> Ladder:
    """The ladder of a constructor: values for every rung, or the ends of a geometric ladder of `num_replicas`."""
    ends = as_temperatures(temperatures)
    rule = "a number, or one for every rung"
    if callable(step_size):
        refuse("step_size", rule, "a function", "Give numbers, and the schedule as `step_factor`.")
    is_number = np.ndim(np.asarray(step_size, object)) == 0
    if is_number and isinstance(step_size, (str, bytes, type(None))):
        refuse("step_size", rule, short(step_size), "Write `step_size=0.1`, say.")
    steps = (step_size,) * len(ends) if is_number else tuple(step_size)
    if num_replicas is None:
        if len(steps) != len(ends):
            got, remedy = (
                f"{len(steps)} for {len(ends)} temperatures",
                "Give one number for all, or one for every rung.",
            )
            refuse("step_size", "a number, or one for every temperature", got, remedy)
        return Ladder(steps, ends)
    if len(ends) != 2 or len(steps) != 2:
        refuse("temperatures", "(first, last) with `num_replicas`", repr(temperatures), "Give the ends of the ladder.")
    return geometric_ladder(num_replicas, (steps[0], steps[1]), (ends[0], ends[1]))


def as_temperatures(given: Any) -> Temperatures:
    """The temperatures of a ladder, or of its ends, as a tuple."""
    if isinstance(given, str) or np.ndim(np.asarray(given, object)) != 1:
        rule = "a tuple of temperatures, the target's first"
        refuse("temperatures", rule, short(given), "Write `temperatures=(1.0, 10.0)`, say.")
    return tuple(given)


def exchange_sampler(
    name: str, kernel: Kernel, estimator: Estimator, ladder: Ladder, rule: Corrected, given: SwapOptions
) -> AnySampler:
    """The sampler of a ladder with the options of a constructor."""
    options = {**defaults_of(ExchangeOptions), **given}
    rule = dataclasses.replace(rule, **{key: options[key] for key in ("gate_log_correction", "variance")})
    adaptation, search = options["adaptation"], options["ladder"]
    if adaptation is not None:
        remedy = 'Write `adaptation=iso.exchange.EquiAcceptance(0.01, of="temperature")`, say.'
        check_type("adaptation", adaptation, EquiAcceptance, "an `exchange.EquiAcceptance`, or None", remedy)
    check_choice("path", options["path"], ("temperature", "reference"))
    kept = {key: options[key] for key in ("intensity", "cooling", "fresh_energies", "ignores_prior")}
    kept |= {"is_path": options["path"] == "reference", "is_adjusted": kernel.is_adjusted}

    def complete(found: Ladder) -> Exchange:
        return Exchange(found, _scheme(options["scheme"], found.num_rungs), rule, adaptation, **kept)

    # Before the schedules, which name the ladder's numbers otherwise.
    found = None if search is not None else complete(ladder)
    step_size = _scaled("step_factor", ladder.step_sizes[0], options["step_factor"])
    temperature = _scaled("temperature_factor", ladder.temperatures[0], options["temperature_factor"])
    plain = Sampler(within(kernel, options["box"]), step_size, temperature, estimator, name=name)
    if found is not None:
        return dataclasses.replace(plain, coupling=found)
    if options["path"] == "reference":
        remedy = "A pilot finds no rungs above finite temperatures: give them, such as `temperatures=(1.0, 4.0, 16.0, jnp.inf)`."
        refuse("ladder", 'None for `path="reference"`', short(search), remedy)
    for factor in ("temperature_factor", "step_factor"):
        if callable(options[factor]):
            remedy = (
                "A pilot runs at one temperature and one step size: give numbers, or `temperatures` without `ladder`."
            )
            refuse(factor, "a number where a pilot finds the ladder", "a schedule", remedy)
    if not isinstance(search, LadderSearch):
        check_choice("ladder", search, ("auto",))
        search = LadderSearch()
    return Specification(plain, search, lambda plain, found: dataclasses.replace(plain, coupling=complete(found)))


def _scaled(name: str, value: float, factor: Schedule) -> Schedule:
    """The value of the target rung as a schedule; a number where the factor is one."""
    check_schedule(name, factor, allow_zero=callable(factor))
    return Scaled(value, factor) if callable(factor) else value * factor


def _scheme(scheme: Scheme | None, num_rungs: int) -> Scheme:
    if scheme is None:
        return Adjacent() if num_rungs == 2 else DeterministicEvenOdd()
    remedy = "Write `scheme=iso.exchange.DeterministicEvenOdd()`, say."
    return check_type("scheme", scheme, Scheme, "an object of `iso.exchange` that is a scheme, or None", remedy)
