"""Agents: a sampler of networks that predict rewards, and a rule by which they act."""

import dataclasses
from typing import Any

import isotherm.samplers as samplers
from isotherm.contour import Partition, RegularizedWeights
from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse
from isotherm.foundation.schedules import Annealed
from isotherm.kernels import PSGLD
from isotherm.samplers.sampler import AnySampler, Sampler, Specification

RULES = ("average", "single")
_PRECONDITIONER: dict[str, Any] = {"decay": 0.99, "regularizer": 1e-3, "gradient_scale": 1 / 512}


@dataclasses.dataclass(frozen=True, eq=False)
class Agent:
    """Thompson sampling with any sampler, or a greedy rule with an optimizer.

    Attributes:
        name: what tables call it.
        sampler: of the networks' weights.
        num_chains: networks at a time. Of replicas that exchange rungs, those of the target act.
        num_updates: iterations of the sampler after every step of pulls.
        rule: "average" acts on the weighted mean prediction of the networks, as the thesis' code does; "single" draws one network
            by its weight for every pull, as Thompson sampling is defined.
        epsilon: the chance of a random action.
        dropout: the rate, in training and in action.
        num_masks: predictions with masks of their own that are averaged, with dropout.
    """

    name: str
    sampler: AnySampler
    num_chains: int = 4
    num_updates: int = 16
    rule: str = "average"
    epsilon: float = 0.0
    dropout: float = 0.0
    num_masks: int = 5

    def __post_init__(self):
        check_integer("num_chains", self.num_chains, 1, "Give the number of networks.")
        check_integer("num_updates", self.num_updates, 1, "Give iterations per step.")
        check_integer("num_masks", self.num_masks, 1, "Give predictions to average.")
        check_choice("rule", self.rule, RULES)
        check_real("epsilon", self.epsilon, "Give a probability.", minimum=0.0, maximum=1.0)
        check_real("dropout", self.dropout, "Give a rate.", minimum=0.0, below=1.0)
        if isinstance(self.sampler, Specification):
            remedy = "Its data come while it is played, so that no pilot can run: give the ladder or the partition."
            refuse("sampler", "one in which nothing is open", repr(self.sampler), remedy)
        self.sampler.choose_num_chains(self.num_chains)


def eps_greedy(*, step_size: float = 5e-7, rate: float = 0.999, epsilon: float = 0.003, num_updates: int = 16) -> Agent:
    """RMSprop with a decaying step size, and a random action now and then."""
    sampler = Sampler(PSGLD(**_PRECONDITIONER), Annealed(step_size, 1 / rate, num_updates), 0.0, name="rmsprop")
    return Agent("EpsGreedy", sampler, num_updates=num_updates, epsilon=epsilon)


def const_sgd(*, step_size: float = 1e-6) -> Agent:
    """SGD with a constant step size, whose noise is all the exploration there is."""
    return Agent("ConstSGD", samplers.sgd(step_size))


def dropout(*, step_size: float = 1e-6, rate: float = 0.5) -> Agent:
    """SGD with dropout, in action too."""
    return Agent("Dropout", samplers.sgd(step_size), dropout=rate)


def psgld_agent(*, step_size: float = 3e-7, temperature: float = 0.3, rule: str = "average") -> Agent:
    """Thompson sampling by preconditioned SGLD."""
    sampler = samplers.psgld(step_size, temperature=temperature, **_PRECONDITIONER)
    return Agent("pSGLD", sampler, rule=rule)


def picsgld_agent(
    *,
    step_size: float = 3e-7,
    temperature: float = 0.3,
    gain: float = 0.03,
    warm_up: int = 3_200,
    num_bins: int = 100,
    width: float = 10.0,
    zeta: float = 20.0,
    bounds: tuple[float, float] | None = None,
    rule: str = "average",
) -> Agent:
    """Thompson sampling by interacting contour chains with a preconditioner; theta is learned after `warm_up` iterations."""
    sampler = _contour(step_size, temperature, gain, warm_up, num_bins, width, zeta, bounds)
    return Agent("pICSGLD", sampler, rule=rule)


def pcsgld_agent(
    *,
    step_size: float = 5e-8,
    temperature: float = 0.3,
    gain: float = 0.006,
    warm_up: int = 12_800,
    num_bins: int = 100,
    width: float = 10.0,
    zeta: float = 20.0,
    bounds: tuple[float, float] | None = None,
    rule: str = "average",
) -> Agent:
    """One contour chain with four times the iterations."""
    sampler = _contour(step_size, temperature, gain, warm_up, num_bins, width, zeta, bounds)
    return Agent("pCSGLD", sampler, num_chains=1, num_updates=64, rule=rule)


def _contour(step_size, temperature, gain, warm_up, num_bins, width, zeta, bounds) -> AnySampler:
    return samplers.picsgld(
        step_size,
        temperature=temperature,
        partition=Partition(width, width, num_bins),
        zeta=zeta,
        **samplers.thesis.icsgld(gain=gain, bounds=bounds),
        warm_up=warm_up,
        weight_rule=RegularizedWeights(zeta, 1e-3),
        **_PRECONDITIONER,
    )
