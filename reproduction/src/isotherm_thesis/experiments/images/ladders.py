"""The methods of chapter 4: ten pretrained networks that explore by momentum SGD on a ladder of learning rates.

Learning rates and losses are those of mean losses, as in the author's code. Pretrained networks count ten times in the average.

Differs from the thesis: ten networks are pretrained, one for each rung; its code draws ten with replacement from thirteen.
Windows, gains and the target rate are per iteration, and do not shrink with the scale.
"""

import dataclasses

import isotherm as iso
from isotherm.foundation.gains import PolynomialGain
from isotherm.kernels import MomentumSGD
from isotherm_thesis.experiments.images.plan import Frame, Plan
from isotherm_thesis.experiments.images.schedules import Stepwise


def pretraining(frame: Frame, *, chains: int = 10, learning_rate: float = 0.1, epochs: int = 300) -> Plan:
    """M-SGD whose step size falls to a fifth at 70 and 90 % of 300 epochs; the last networks are kept."""
    clock = frame.clock(epochs)
    times = tuple(clock.at(share * clock.thesis_epochs) for share in (0.7, 0.9))
    steps = Stepwise(frame.step_size(learning_rate), 0.2, times)
    return Plan(iso.msgd(steps), clock, chains, clock.num_steps - 1, 1)


def msgd(frame: Frame, *, chains: int = 10, learning_rate: float = 0.005, epochs: int = 500) -> Plan:
    """MSGD x P10: all ten go on at the lowest learning rate; all are averaged every 10 epochs."""
    clock = frame.clock(epochs)
    sampler = iso.msgd(frame.step_size(learning_rate))
    return Plan(sampler, clock, chains, 0, frame.epochs(10), pretraining=pretraining(frame, chains=chains))


def deo_msgd(
    frame: Frame,
    *,
    chains: int = 10,
    learning_rates: tuple[float, float] = (0.005, 0.02),
    epochs: int = 500,
    target: float = 0.005,
    window: int | str = "formula",
    buffer: float = 0.1,
) -> Plan:
    """DEO*-mSGD x P10, and DEO-mSGD x P10 with a window of 1: the network on the target rung is averaged every epoch."""
    clock = frame.clock(epochs)
    low, high = (frame.step_size(rate) for rate in learning_rates)
    sampler = iso.deo_star_msgd(
        (low, high),
        num_replicas=chains,
        temperature=0.0,
        target=target,
        buffer=buffer * frame.num_data,
        gain=PolynomialGain(600.0, 0.8, 1000.0, 0.5),
        buffer_gain=0.1 * frame.num_data,
        window=window,
    )
    sampler = dataclasses.replace(sampler, kernel=MomentumSGD())
    start = pretraining(frame, chains=chains)
    return Plan(sampler, clock, None, 0, frame.steps_per_epoch, records_all=True, pretraining=start)
