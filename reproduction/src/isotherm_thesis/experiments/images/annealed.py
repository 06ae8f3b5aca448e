"""The methods of chapters 2 and 3: step sizes that stay and then fall, temperatures that are annealed.

Numbers are those of the thesis for 50,000 images; where its text and the author's code differ, the text is followed: 1.5 times
the step size for the hot chain (code: 1/0.66), variances every epoch from 10 batches (code: every 5 epochs from 50), no factor on
F after a swap (code: 0.7 or 0.8, the knob `jump`). Chains start from the same weights, as in the code.
"""

import dataclasses
from typing import Any

import isotherm as iso
from isotherm.foundation.schedules import Annealed, Following, Scaled
from isotherm.samplers.sampler import AnySampler
from isotherm_thesis.experiments.images.plan import Clock, Frame, Plan
from isotherm_thesis.experiments.images.schedules import Delayed
from isotherm_thesis.experiments.images.variants import Uncoupled


def msgd(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 500,
    decay: float = 0.984,
    decay_from: float = 0.4,
    average_from: float = 0.4,
) -> Plan:
    """M-SGD: one chain."""
    clock = frame.clock(epochs)
    steps = Scaled(frame.step_size(learning_rate), _falling(clock, decay, decay_from))
    return _plan(iso.msgd(steps), clock, average_from)


def sghmc(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 500,
    decay: float = 0.984,
    decay_from: float = 0.4,
    temperature: float = 0.01,
    annealing: float = 1.02,
    anneal_until: float = 1.0,
    average_from: float = 0.4,
) -> Plan:
    """SGHMC: one chain with the temperature of reSGHMC's cold one."""
    clock = frame.clock(epochs)
    steps = Scaled(frame.step_size(learning_rate), _falling(clock, decay, decay_from))
    cooling = Scaled(temperature, _annealed(clock, annealing, anneal_until))
    return _plan(iso.sghmc(steps, temperature=cooling), clock, average_from)


def resghmc(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 500,
    decay: float = 0.984,
    decay_from: float = 0.4,
    temperature: float = 0.01,
    annealing: float = 1.02,
    anneal_until: float = 1.0,
    step_ratio: float = 1.5,
    temperature_ratio: float = 5.0,
    correction_factor: float = 3e5,
    measure_epochs: int = 1,
    num_measured: int = 10,
    jump: float | None = None,
    rest_epochs: int = 0,
    average_from: float = 0.4,
) -> Plan:
    """reSGHMC: two chains with corrected swaps; the correction factor follows the temperature."""
    clock = frame.clock(epochs)
    step, factor = frame.step_size(learning_rate), _annealed(clock, annealing, anneal_until)
    sampler = iso.resghmc(
        (step, step_ratio * step),
        temperatures=(temperature, temperature_ratio * temperature),
        correction_factor=Following(correction_factor, factor),
        measure_every=measure_epochs * frame.steps_per_epoch,
        num_measured=num_measured,
        smoothing=0.3,
        jump=jump,
        cooling=rest_epochs * frame.steps_per_epoch,
        ignores_prior=True,
        variance="tracked",
        step_factor=_falling(clock, decay, decay_from),
        temperature_factor=factor,
    )
    return _plan(sampler, clock, average_from, records_all=True)


def two_chains(frame: Frame) -> Plan:
    """The two chains of reSGHMC without swaps; the networks of both are averaged."""
    plan = resghmc(frame)
    exchange: Any = plan.sampler.coupling
    fields = {field.name: getattr(exchange, field.name) for field in dataclasses.fields(exchange)}
    return dataclasses.replace(plan, sampler=dataclasses.replace(plan.sampler, coupling=Uncoupled(**fields)))


def vr_resghmc(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 500,
    decay: float = 0.984,
    decay_from: float = 0.4,
    temperature: float = 0.01,
    annealing: float = 1.02,
    anneal_until: float = 0.6,
    step_ratio: float = 1.5,
    temperature_ratio: float = 5.0,
    correction_factor: float = 1.5e5,
    refresh_every: int | None = None,
    is_adaptive: bool = True,
    num_measured: int = 10,
    rest_epochs: int = 1,
    average_from: float = 0.6,
) -> Plan:
    """VR-reSGHMC: reSGHMC whose swaps read energies with a control variate.

    It is refreshed every `refresh_every` iterations; None is every 2 epochs.
    """
    clock = frame.clock(epochs)
    step, factor = frame.step_size(learning_rate), _annealed(clock, annealing, anneal_until)
    sampler = iso.vr_resghmc(
        (step, step_ratio * step),
        temperatures=(temperature, temperature_ratio * temperature),
        refresh_every=refresh_every or 2 * frame.steps_per_epoch,
        is_adaptive=is_adaptive,
        correction_factor=Following(correction_factor, factor),
        num_measured=num_measured,
        smoothing=0.3,
        cooling=rest_epochs * frame.steps_per_epoch,
        ignores_prior=True,
        variance="tracked",
        step_factor=_falling(clock, decay, decay_from),
        temperature_factor=factor,
    )
    return _plan(sampler, clock, average_from, records_all=True)


def _falling(clock: Clock, decay: float, decay_from: float) -> Delayed:
    """1 up to a fraction of the run; then it falls by `decay` in every epoch of the thesis."""
    fall = Annealed(1.0, 1.0 / clock.rate(decay), clock.steps_per_epoch)
    return Delayed(fall, clock.at(decay_from * clock.thesis_epochs))


def _annealed(clock: Clock, rate: float, until: float) -> Annealed:
    """1 at the start, divided by `rate` in every epoch of the thesis, up to a fraction of the run."""
    stop = None if until >= 1.0 else clock.at(until * clock.thesis_epochs)
    return Annealed(1.0, clock.rate(rate), clock.steps_per_epoch, stop)


def _plan(sampler: AnySampler, clock: Clock, average_from: float, records_all: bool = False) -> Plan:
    start = clock.at(average_from * clock.thesis_epochs)
    chains = None if records_all else 1
    return Plan(sampler, clock, chains, start, clock.steps_per_epoch, starts_apart=False, records_all=records_all)
