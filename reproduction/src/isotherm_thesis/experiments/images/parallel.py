"""The parallel methods of chapter 6 (ICSGHMC and its rivals): four chains that start apart.

Step sizes fall to a fifth at epochs 250 and 375 of 500; networks are averaged from epoch 400 on. Control variates are refreshed
every 2 epochs from epoch 400 on.
"""

import dataclasses

import isotherm as iso
from isotherm.contour import Partition, RegularizedWeights
from isotherm.exchange import DeterministicEvenOdd, Exchange, Ladder
from isotherm.foundation.schedules import CyclicalCosine
from isotherm.kernels import SGHMC
from isotherm.samplers.sampler import AnySampler, Sampler
from isotherm_thesis.experiments.images.plan import Clock, Frame, Plan
from isotherm_thesis.experiments.images.schedules import Stepwise
from isotherm_thesis.experiments.images.variants import LateDeterministic, PooledExchange, control_variate_from

# Where partitions start. The thesis has CIFAR-100 alone; losses on CIFAR-10 end at about a tenth.
_LOW = {"cifar100": 2e4, "cifar10": 2e3, "digits": 2e4}


def msgd(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 500,
    chains: int = 4,
    hold_from: float = 0.85,
    average_from: float = 0.98,
) -> Plan:
    """M-SGD x P4: one cosine whose last 15 % are constant; the last 2 % are averaged, as in the author's code."""
    clock = frame.clock(epochs)
    steps = CyclicalCosine(frame.step_size(learning_rate), clock.num_steps, hold_from)
    return _plan(iso.msgd(steps), clock, chains, average_from)


def sghmc(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 500,
    chains: int = 4,
    temperature: float = 3e-4,
    decay: float = 0.2,
    average_from: float = 0.8,
) -> Plan:
    """SGHMC x P4: ICSGHMC without its contour."""
    clock = frame.clock(epochs)
    return _plan(
        iso.sghmc(_steps(frame, clock, learning_rate, decay), temperature=temperature), clock, chains, average_from
    )


def resghmc(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 500,
    chains: int = 4,
    temperature: float = 3e-4,
    temperature_ratio: float = 3.0,
    decay: float = 0.2,
    buffer: float = 4000.0,
    swap_from: float = 0.8,
    rest_epochs: int = 1,
    refresh_epochs: int = 2,
    is_adaptive: bool = False,
    is_pooled: bool = False,
    average_from: float = 0.8,
) -> Plan:
    """ReSGHMC x P4: neighbors swap when the hotter loss is lower by a fixed buffer, once an epoch at most, from epoch 400 on.

    The average is that of the target rung, or of all rungs with `is_pooled`: the thesis does not say which. `refresh_epochs` of 0
    reads plain energies.

    Differs from the author's code: the temperatures differ from the start, not from epoch 250 on, and pairs are even and odd in
    turn.
    """
    clock = frame.clock(epochs)
    temperatures = tuple(temperature * temperature_ratio**rung for rung in range(chains))
    rule = LateDeterministic(frame.energy(buffer), start=clock.at(swap_from * clock.thesis_epochs))
    kind = PooledExchange if is_pooled else Exchange
    step = frame.step_size(learning_rate)
    coupling = kind(
        Ladder((step,) * chains, temperatures),
        DeterministicEvenOdd(),
        rule,
        cooling=rest_epochs * frame.steps_per_epoch,
    )
    sampler = Sampler(
        SGHMC(), _steps(frame, clock, learning_rate, decay), temperature, coupling=coupling, name="resghmc"
    )
    sampler = _with_control_variate(sampler, frame, clock, swap_from, refresh_epochs, is_adaptive)
    return _plan(sampler, clock, None, average_from)


def icsghmc(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 500,
    chains: int = 4,
    temperature: float = 3e-4,
    decay: float = 0.2,
    zeta: float = 3e6,
    clip: float = 5.0,
    gain: float = 0.003,
    low: float | None = None,
    width: float = 200.0,
    num_bins: int = 200,
    warm_up: float = 0.75,
    refresh_epochs: int = 2,
    refresh_from: float = 0.8,
    is_adaptive: bool = False,
    average_from: float = 0.8,
) -> Plan:
    """ICSGHMC x P4: chains that flatten the energy together. Energies and zeta are for 50,000 images; `clip` bounds the multiplier.

    `refresh_epochs` of 0 reads plain energies.
    """
    clock = frame.clock(epochs)
    start = clock.at(warm_up * clock.thesis_epochs)
    sampler = iso.icsghmc(
        _steps(frame, clock, learning_rate, decay),
        partition=Partition(frame.energy(_LOW[frame.data_set] if low is None else low), frame.energy(width), num_bins),
        temperature=temperature,
        zeta=frame.energy(zeta),
        **iso.thesis.icsgld(gain=gain, bounds=(-clip, clip)),
        warm_up=start,
        weight_rule=RegularizedWeights(),
    )
    sampler = _with_control_variate(sampler, frame, clock, refresh_from, refresh_epochs, is_adaptive)
    return _plan(sampler, clock, chains, average_from, start)


def _steps(frame: Frame, clock: Clock, learning_rate: float, decay: float) -> Stepwise:
    times = tuple(clock.at(share * clock.thesis_epochs) for share in (0.5, 0.75))
    return Stepwise(frame.step_size(learning_rate), decay, times)


def _with_control_variate(
    sampler: AnySampler, frame: Frame, clock: Clock, start: float, refresh_epochs: int, is_adaptive: bool
) -> AnySampler:
    if refresh_epochs == 0:
        return sampler
    first = clock.at(start * clock.thesis_epochs)
    estimator = control_variate_from(first, refresh_epochs * frame.steps_per_epoch, is_adaptive)
    return dataclasses.replace(sampler, estimator=estimator)


def _plan(sampler: AnySampler, clock: Clock, chains: int | None, average_from: float, learns_from: int = 0) -> Plan:
    start = clock.at(average_from * clock.thesis_epochs)
    return Plan(sampler, clock, chains, start, clock.steps_per_epoch, learns_from=learns_from)
