"""The methods of chapter 5: CSGHMC beside M-SGD and SGHMC, at fixed and at annealed step sizes and temperatures.

The thesis gives neither zeta nor the gain, the field, nor when theta starts to move. Chosen: zeta such that zeta tau / width is
the 4.5 of its ICSGHMC, that experiment's constant gain of 0.003 and its field, theta, which moves at a large zeta too, and its
weights; theta moves from 0.4 of the run on, where networks are averaged from as well. With an annealed temperature psi goes to 1
as it falls.
"""

import isotherm as iso
from isotherm.contour import Partition, RegularizedWeights
from isotherm.foundation.schedules import Annealed, Scaled, Schedule
from isotherm.samplers.sampler import AnySampler
from isotherm_thesis.experiments.images.plan import Clock, Frame, Plan
from isotherm_thesis.experiments.images.schedules import Delayed

_WIDTHS = {"cifar10": 1000.0, "cifar100": 5000.0, "digits": 5000.0}
_STRENGTH = 4.5


def msgd(frame: Frame, *, is_annealed: bool = False, epochs: int = 1000, average_from: float = 0.4) -> Plan:
    """M-SGD and saM-SGD."""
    clock = frame.clock(epochs)
    return _plan(iso.msgd(_steps(frame, clock, is_annealed)), frame, clock, average_from)


def sghmc(
    frame: Frame,
    *,
    is_annealed: bool = False,
    epochs: int = 1000,
    temperature: float = 0.01,
    average_from: float = 0.4,
) -> Plan:
    """SGHMC and saSGHMC."""
    clock = frame.clock(epochs)
    cooling = _temperature(clock, temperature, is_annealed)
    sampler = iso.sghmc(_steps(frame, clock, is_annealed), temperature=cooling)
    return _plan(sampler, frame, clock, average_from)


def csghmc(
    frame: Frame,
    *,
    is_annealed: bool = False,
    epochs: int = 1000,
    temperature: float = 0.01,
    zeta: float | None = None,
    width: float | None = None,
    low: float | None = None,
    num_bins: int = 200,
    gain: float = 0.003,
    clip: float = 5.0,
    warm_up: float = 0.4,
    average_from: float = 0.4,
) -> Plan:
    """CSGHMC and saCSGHMC. The first edge is `low`; None is one width above zero."""
    clock = frame.clock(epochs)
    wide = width or _WIDTHS[frame.data_set]
    start = clock.at(warm_up * clock.thesis_epochs)
    sampler = iso.csghmc(
        _steps(frame, clock, is_annealed),
        partition=Partition(frame.energy(wide if low is None else low), frame.energy(wide), num_bins),
        temperature=_temperature(clock, temperature, is_annealed),
        zeta=frame.energy(zeta or _STRENGTH * wide / temperature),
        **iso.thesis.icsgld(gain=gain, bounds=(-clip, clip)),
        warm_up=start,
        weight_rule=RegularizedWeights(),
    )
    return _plan(sampler, frame, clock, average_from, start)


def _steps(frame: Frame, clock: Clock, is_annealed: bool) -> Schedule:
    """2e-7 throughout, or 2e-6 for 400 epochs and then divided by 1.01 every epoch."""
    if not is_annealed:
        return frame.step_size(0.01)
    fall = Annealed(1.0, clock.rate(1.01), clock.steps_per_epoch)
    return Scaled(frame.step_size(0.1), Delayed(fall, clock.at(0.4 * clock.thesis_epochs)))


def _temperature(clock: Clock, temperature: float, is_annealed: bool) -> Schedule:
    return Annealed(temperature, clock.rate(1.01), clock.steps_per_epoch) if is_annealed else temperature


def _plan(sampler: AnySampler, frame: Frame, clock: Clock, average_from: float, learns_from: int = 0) -> Plan:
    """Networks are judged and averaged every 10 epochs of the thesis."""
    start = clock.at(average_from * clock.thesis_epochs)
    return Plan(sampler, clock, 1, start, frame.epochs(10), learns_from=learns_from)
