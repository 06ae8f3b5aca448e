"""Samplers of replicas that exchange rungs."""

import numpy as np

from isotherm.errors import check_integer, refuse
from isotherm.estimators import ControlVariate, Estimator, Plain
from isotherm.exchange import (
    Adjacent,
    Corrected,
    Deterministic,
    DeterministicEvenOdd,
    EquiAcceptance,
    Exchange,
    Ladder,
    geometric_ladder,
)
from isotherm.exchange.schemes import Scheme
from isotherm.kernels import PSGLD, SGHMC, SGLD, Kernel, within
from isotherm.samplers.independent import Box
from isotherm.sampling.sampler import Sampler
from isotherm.schedules import CollectionWindow, CyclicalCosine, CyclicalTemperature, PolynomialGain, Schedule


def naive_resgld(
    step_size: float | tuple[float, ...],
    *,
    temperatures: tuple[float, ...] = (1.0, 10.0),
    num_replicas: int | None = None,
    scheme: Scheme | None = None,
    box: Box = None,
) -> Sampler:
    """Replica exchange SGLD without correction: right for exact energies, biased for noisy ones."""
    rule = Corrected(np.inf)
    return _exchange("naive_resgld", SGLD(), Plain(), step_size, temperatures, num_replicas, scheme, rule, box)


def resgld(
    step_size: float | tuple[float, ...],
    *,
    temperatures: tuple[float, ...] = (1.0, 10.0),
    num_replicas: int | None = None,
    correction_factor: Schedule = 1.0,
    measure_every: int = 100,
    num_measured: int = 10,
    energy_batch: str = "shared",
    scheme: Scheme | None = None,
    box: Box = None,
) -> Sampler:
    """Replica exchange SGLD with corrected swaps."""
    rule = Corrected(correction_factor, measure_every, num_measured)
    return _exchange("resgld", SGLD(), Plain(energy_batch), step_size, temperatures, num_replicas, scheme, rule, box)


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
    jump: float = 1.0,
    energy_batch: str = "shared",
    scheme: Scheme | None = None,
    box: Box = None,
) -> Sampler:
    """Replica exchange SGHMC with corrected swaps."""
    rule = Corrected(correction_factor, measure_every, num_measured, smoothing, jump)
    kernel, estimator = SGHMC(friction), Plain(energy_batch)
    return _exchange("resghmc", kernel, estimator, step_size, temperatures, num_replicas, scheme, rule, box)


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
    scheme: Scheme | None = None,
    box: Box = None,
) -> Sampler:
    """Replica exchange SGLD whose swaps read energies with a control variate; variances are measured at its greatest age."""
    rule = Corrected(correction_factor, refresh_every, num_measured, smoothing)
    estimator = ControlVariate(refresh_every, is_adaptive)
    return _exchange("vr_resgld", SGLD(), estimator, step_size, temperatures, num_replicas, scheme, rule, box)


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
    scheme: Scheme | None = None,
    box: Box = None,
) -> Sampler:
    """Replica exchange SGHMC whose swaps read energies with a control variate."""
    rule = Corrected(correction_factor, refresh_every, num_measured, smoothing)
    estimator = ControlVariate(refresh_every, is_adaptive)
    kernel = SGHMC(friction)
    return _exchange("vr_resghmc", kernel, estimator, step_size, temperatures, num_replicas, scheme, rule, box)


def cvr_resghmc(
    step_size: float,
    *,
    cycle_length: int,
    temperatures: tuple[float, ...] = (1.0, 5.0),
    step_ratio: float = 1.5,
    sampling_from: float = 0.7,
    friction: float = 0.1,
    refresh_every: int = 392,
    is_adaptive: bool = True,
    correction_factor: Schedule = 1.0,
    box: Box = None,
) -> Sampler:
    """`vr_resghmc` with cyclical step sizes and temperatures; draws are collected late in a cycle.

    While a cycle explores there is no noise, and the deterministic limit of the rule is off: nothing swaps.
    """
    steps = tuple(step_size * step_ratio**rung for rung in range(len(temperatures)))
    coupling = Exchange(
        Ladder(steps, temperatures), _scheme(None, len(temperatures)), Corrected(correction_factor, refresh_every)
    )
    return Sampler(
        within(SGHMC(friction), box),
        CyclicalCosine(step_size, cycle_length),
        CyclicalTemperature(temperatures[0], cycle_length, sampling_from),
        ControlVariate(refresh_every, is_adaptive),
        coupling,
        CollectionWindow(cycle_length, sampling_from),
        "cvr_resghmc",
    )


def deo_sgd(
    step_size: tuple[float, float],
    *,
    num_replicas: int = 16,
    temperature: Schedule = 1.0,
    target: float = 0.4,
    buffer: float = 0.0,
    gain: Schedule | None = None,
    buffer_gain: float = 1.0,
    window: int | str = 1,
    is_exact: bool = False,
    box: Box = None,
) -> Sampler:
    """SGLD at the target and SGD on the rungs above, with deterministic even-odd swaps; ladder and buffer adapt."""
    scheme = DeterministicEvenOdd(window, 1.0 - target, is_exact)
    return _deo("deo_sgd", SGLD(), step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box)


def deo_star_sgd(
    step_size: tuple[float, float],
    *,
    num_replicas: int = 16,
    temperature: Schedule = 1.0,
    target: float = 0.4,
    buffer: float = 0.0,
    gain: Schedule | None = None,
    buffer_gain: float = 1.0,
    window: int | str = "optimal",
    is_exact: bool = False,
    box: Box = None,
) -> Sampler:
    """`deo_sgd` with the optimal window."""
    scheme = DeterministicEvenOdd(window, 1.0 - target, is_exact)
    return _deo(
        "deo_star_sgd", SGLD(), step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box
    )


def deo_star_psgd(
    step_size: tuple[float, float],
    *,
    num_replicas: int = 16,
    temperature: Schedule = 1.0,
    target: float = 0.4,
    buffer: float = 0.0,
    gain: Schedule | None = None,
    buffer_gain: float = 1.0,
    window: int | str = "optimal",
    is_exact: bool = False,
    decay: float = 0.99,
    regulariser: float = 1e-3,
    gradient_scale: float = 1.0,
    box: Box = None,
) -> Sampler:
    """`deo_star_sgd` with RMSprop's preconditioner on every rung."""
    kernel, scheme = PSGLD(decay, regulariser, gradient_scale), DeterministicEvenOdd(window, 1.0 - target, is_exact)
    return _deo(
        "deo_star_psgd", kernel, step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box
    )


def deo_star_msgd(
    step_size: tuple[float, float],
    *,
    num_replicas: int = 16,
    temperature: Schedule = 1.0,
    target: float = 0.4,
    buffer: float = 0.0,
    gain: Schedule | None = None,
    buffer_gain: float = 1.0,
    window: int | str = "optimal",
    is_exact: bool = False,
    friction: float = 0.1,
    box: Box = None,
) -> Sampler:
    """`deo_star_sgd` with momentum on every rung; a replica that changes rungs starts from rest."""
    kernel, scheme = SGHMC(friction), DeterministicEvenOdd(window, 1.0 - target, is_exact)
    return _deo(
        "deo_star_msgd", kernel, step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box
    )


def _exchange(
    name: str,
    kernel: Kernel,
    estimator: Estimator,
    step_size: float | tuple[float, ...],
    temperatures: tuple[float, ...],
    num_replicas: int | None,
    scheme: Scheme | None,
    rule: Corrected,
    box: Box,
) -> Sampler:
    """Temperatures and step sizes are given for every rung, or as ends of a geometric ladder of `num_replicas`."""
    steps = tuple(step_size) if isinstance(step_size, (tuple, list)) else (step_size,) * len(temperatures)
    if num_replicas is None:
        ladder = Ladder(steps, tuple(temperatures))
    else:
        ends = tuple(temperatures)
        if len(ends) != 2 or len(steps) != 2:
            refuse(
                "temperatures", "(first, last) with `num_replicas`", repr(temperatures), "Give the ends of the ladder."
            )
        ladder = geometric_ladder(num_replicas, (steps[0], steps[1]), (ends[0], ends[1]))
    coupling = Exchange(ladder, _scheme(scheme, ladder.num_rungs), rule)
    first = ladder.step_sizes[0], ladder.temperatures[0]
    return Sampler(within(kernel, box), *first, estimator=estimator, coupling=coupling, name=name)


def _deo(name, kernel, step_size, num_replicas, temperature, target, buffer, gain, buffer_gain, scheme, box) -> Sampler:
    check_integer("num_replicas", num_replicas, 2, "Replica exchange needs two replicas.")
    steps = geometric_ladder(num_replicas, step_size, (1.0, 1.0)).step_sizes
    gain = PolynomialGain() if gain is None else gain
    ladder = Ladder(steps, (1.0,) + (0.0,) * (num_replicas - 1))
    rule = Deterministic(buffer, target, gain, buffer_gain)
    coupling = Exchange(ladder, scheme, rule, EquiAcceptance(target, gain) if num_replicas > 2 else None)
    return Sampler(within(kernel, box), steps[0], temperature, coupling=coupling, name=name)


def _scheme(scheme: Scheme | None, num_rungs: int) -> Scheme:
    """One pair is tried in every iteration; many by deterministic even-odd."""
    if scheme is not None:
        return scheme
    return Adjacent() if num_rungs == 2 else DeterministicEvenOdd()
