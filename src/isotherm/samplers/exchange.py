"""Samplers of replicas that exchange rungs by corrected swaps."""

import dataclasses
from typing import Any, TypedDict, Unpack

from isotherm.estimators import ControlVariate, Estimator, Plain
from isotherm.exchange import (
    Adjacent,
    Corrected,
    DeterministicEvenOdd,
    EquiAcceptance,
    Exchange,
    Ladder,
    PilotLadder,
    geometric_ladder,
)
from isotherm.exchange.schemes import Scheme
from isotherm.foundation.errors import check_choice, check_options, refuse
from isotherm.foundation.schedules import (
    CollectionWindow,
    CyclicalCosine,
    CyclicalTemperature,
    Scaled,
    Schedule,
    check_schedule,
)
from isotherm.kernels import SGHMC, SGLD, Kernel, within
from isotherm.samplers.independent import Box
from isotherm.sampling.sampler import Sampler


class ExchangeOptions(TypedDict, total=False):
    """Options that all samplers with corrected swaps take.

    Attributes:
        scheme: which pairs may swap; by default the one pair in every iteration, or deterministic even-odd pairs.
        intensity: the probability that an iteration tries to swap at all; 1.
        cooling: iterations for which a pair rests after a swap; 0.
        gate_log_correction: what makes up for part of the bias of a window's gate; 0. See `exchange.DeterministicEvenOdd`.
        fresh_energies: whether each pair gets energies of its own on further batches; False. Needed by sequential schemes.
        adaptation: `exchange.EquiAcceptance(target, gain, of="temperature")` moves the inner temperatures; None.
        step_factor: a function of the iteration that multiplies the step sizes of all rungs, such as `Annealed(1.0, 1.02, 196)`; 1.
        temperature_factor: likewise for the temperatures; 1. `schedules.Following(F, factor)` is the correction factor that keeps
            F times the temperature constant.
        ladder: "auto" has a pilot find the rungs above the first temperature, all with the first step size; or a `PilotLadder` for
            pilots of another length; None.
        box: (low, high), out of which moves are rejected; None.
    """

    scheme: Scheme
    intensity: float
    cooling: int
    gate_log_correction: float
    fresh_energies: bool
    adaptation: EquiAcceptance | None
    step_factor: Schedule
    temperature_factor: Schedule
    ladder: str | PilotLadder | None
    box: Box


def naive_resgld(
    step_size: float | tuple[float, ...],
    *,
    temperatures: tuple[float, ...] = (1.0, 10.0),
    num_replicas: int | None = None,
    **options: Unpack[ExchangeOptions],
) -> Sampler:
    """Replica exchange SGLD without correction.

    Promises exp(-U / T) on the target rung, up to O(step size), for exact energies; biased for noisy ones. Options:
    `ExchangeOptions`.
    """
    ladder = _ladder(step_size, temperatures, num_replicas)
    return _exchange("naive_resgld", SGLD(), Plain(), ladder, Corrected(None), options)


def resgld(
    step_size: float | tuple[float, ...],
    *,
    temperatures: tuple[float, ...] = (1.0, 10.0),
    num_replicas: int | None = None,
    correction_factor: Schedule = 1.0,
    measure_every: int = 100,
    num_measured: int = 10,
    energy_batch: str = "shared",
    **options: Unpack[ExchangeOptions],
) -> Sampler:
    """Replica exchange SGLD with corrected swaps.

    Promises exp(-U / T) on the target rung, up to O(step size), for exact energies, and with F = 1 for noisy ones whose noise is
    Gaussian. Options: `ExchangeOptions`.
    """
    rule = Corrected(correction_factor, measure_every, num_measured)
    ladder = _ladder(step_size, temperatures, num_replicas)
    return _exchange("resgld", SGLD(), Plain(energy_batch), ladder, rule, options)


def resghmc(
    step_size: float | tuple[float, ...],
    *,
    temperatures: tuple[float, ...] = (1.0, 5.0),
    num_replicas: int | None = None,
    friction: float = 0.1,
    correction_factor: Schedule = 1.0,
    measure_every: int = 100,
    num_measured: int = 10,
    smoothing: float | None = 0.3,
    jump: float | None = None,
    energy_batch: str = "shared",
    **options: Unpack[ExchangeOptions],
) -> Sampler:
    """Replica exchange SGHMC with corrected swaps: `resgld` with momentum, and with the same promise and options."""
    rule = Corrected(correction_factor, measure_every, num_measured, smoothing, jump)
    ladder = _ladder(step_size, temperatures, num_replicas)
    return _exchange("resghmc", SGHMC(friction), Plain(energy_batch), ladder, rule, options)


def vr_resgld(
    step_size: float | tuple[float, ...],
    *,
    temperatures: tuple[float, ...] = (1.0, 10.0),
    num_replicas: int | None = None,
    refresh_every: int = 40,
    is_adaptive: bool = False,
    correction_factor: Schedule = 1.0,
    num_measured: int = 10,
    smoothing: float | None = 0.3,
    **options: Unpack[ExchangeOptions],
) -> Sampler:
    """Replica exchange SGLD whose swaps read energies with a control variate; variances are measured at its greatest age.

    Promises and takes what `resgld` does. Options: `ExchangeOptions`.
    """
    rule = Corrected(correction_factor, refresh_every, num_measured, smoothing)
    ladder = _ladder(step_size, temperatures, num_replicas)
    return _exchange("vr_resgld", SGLD(), ControlVariate(refresh_every, is_adaptive), ladder, rule, options)


def vr_resghmc(
    step_size: float | tuple[float, ...],
    *,
    temperatures: tuple[float, ...] = (1.0, 5.0),
    num_replicas: int | None = None,
    friction: float = 0.1,
    refresh_every: int = 392,
    is_adaptive: bool = True,
    correction_factor: Schedule = 1.0,
    num_measured: int = 10,
    smoothing: float | None = 0.3,
    **options: Unpack[ExchangeOptions],
) -> Sampler:
    """Replica exchange SGHMC whose swaps read energies with a control variate: `vr_resgld` with momentum."""
    rule = Corrected(correction_factor, refresh_every, num_measured, smoothing)
    ladder = _ladder(step_size, temperatures, num_replicas)
    return _exchange("vr_resghmc", SGHMC(friction), ControlVariate(refresh_every, is_adaptive), ladder, rule, options)


def cvr_resghmc(
    step_size: float,
    *,
    cycle_length: int,
    temperatures: tuple[float, ...] = (1.0, 5.0),
    step_ratio: float = 1.5,
    sampling_from: float = 0.7,
    hold_from: float = 1.0,
    floor: float = 0.0,
    friction: float = 0.1,
    refresh_every: int = 392,
    is_adaptive: bool = True,
    correction_factor: Schedule = 1.0,
    num_measured: int = 10,
    smoothing: float | None = 0.3,
    **options: Unpack[ExchangeOptions],
) -> Sampler:
    """`vr_resghmc` with cyclical step sizes and temperatures; draws are collected late in a cycle.

    While a cycle explores there is no noise, and the deterministic limit of the rule is off: nothing swaps. Promises the law within
    a mode, as `cycsgld` does; masses of modes are those of the cycles. Options: `ExchangeOptions`, without the two factors.
    """
    for name in ("step_factor", "temperature_factor"):
        if name in options:
            refuse(name, "left out", repr(options.get(name)), "The cyclical schedules are those of this sampler.")
    steps = tuple(step_size * step_ratio**rung for rung in range(len(temperatures)))
    rule = Corrected(correction_factor, refresh_every, num_measured, smoothing)
    estimator = ControlVariate(refresh_every, is_adaptive)
    sampler = _exchange("cvr_resghmc", SGHMC(friction), estimator, Ladder(steps, tuple(temperatures)), rule, options)
    return dataclasses.replace(
        sampler,
        step_size=CyclicalCosine(step_size, cycle_length, hold_from, floor),
        temperature=CyclicalTemperature(temperatures[0], cycle_length, sampling_from),
        window=CollectionWindow(cycle_length, sampling_from),
    )


def _ladder(step_size: float | tuple[float, ...], temperatures: tuple[float, ...], num_replicas: int | None) -> Ladder:
    """Temperatures and step sizes are given for every rung, or as ends of a geometric ladder of `num_replicas`."""
    steps = tuple(step_size) if isinstance(step_size, (tuple, list)) else (step_size,) * len(temperatures)
    ends = tuple(temperatures)
    if num_replicas is None:
        return Ladder(steps, ends)
    if len(ends) != 2 or len(steps) != 2:
        refuse("temperatures", "(first, last) with `num_replicas`", repr(temperatures), "Give the ends of the ladder.")
    return geometric_ladder(num_replicas, (steps[0], steps[1]), (ends[0], ends[1]))


def _exchange(
    name: str, kernel: Kernel, estimator: Estimator, ladder: Ladder, rule: Corrected, options: ExchangeOptions
) -> Sampler:
    check_options(name, options, ExchangeOptions.__annotations__)
    given: dict[str, Any] = dict(options)
    own = {
        option: given[option] for option in ("adaptation", "intensity", "cooling", "fresh_energies") if option in given
    }
    if "gate_log_correction" in given:
        rule = dataclasses.replace(rule, gate_log_correction=given["gate_log_correction"])
    ladder = _found_or_given(options.get("ladder"), ladder)
    # A ladder that is to be found may have many rungs.
    number = ladder.num_rungs if not isinstance(ladder, PilotLadder) else None
    coupling = Exchange(ladder, _scheme(options.get("scheme"), number), rule, **own)
    first = (("step_factor", ladder.step_sizes[0]), ("temperature_factor", ladder.temperatures[0]))
    step_size, temperature = (_scaled(option, value, given.get(option, 1.0)) for option, value in first)
    kernel = within(kernel, options.get("box"))
    return Sampler(kernel, step_size, temperature, estimator, coupling, name=name)


def _scaled(name: str, value: float, factor: Schedule) -> Schedule:
    """The value of the target rung as a schedule; a number where the factor is one."""
    check_schedule(name, factor, allow_zero=callable(factor))
    return Scaled(value, factor) if callable(factor) else value * factor


def _found_or_given(asked: Any, given: Ladder) -> Ladder:
    if asked is None or isinstance(asked, PilotLadder):
        return given if asked is None else asked
    check_choice("ladder", asked, ("auto",))
    return PilotLadder(given.step_sizes[:2], given.temperatures[:2])


def _scheme(scheme: Scheme | None, num_rungs: int | None) -> Scheme:
    """One pair is tried in every iteration; many by deterministic even-odd."""
    if scheme is not None:
        return scheme
    return Adjacent() if num_rungs == 2 else DeterministicEvenOdd()
