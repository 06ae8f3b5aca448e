"""Agents: a sampler of networks that predict rewards, and a rule for actions."""

import dataclasses
from typing import Any

import isotherm.samplers as samplers
from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse
from isotherm.samplers.sampler import AnySampler, Specification

RULES = ("average", "single")


@dataclasses.dataclass(frozen=True, eq=False)
class Agent:
    """Thompson sampling with any sampler, or a greedy rule with an optimizer.

    Attributes:
        name: label in tables.
        sampler: sampler of the networks' parameters.
        num_chains: number of networks. Of replicas on a ladder, those on the target rung act.
        num_updates: iterations of the sampler after every step of pulls.
        rule: "average" acts on the weighted mean prediction of the networks, as in the thesis' code; "single" draws one network
            by its weight for every pull, the definition of Thompson sampling.
        epsilon: probability of a random action.
        dropout: dropout rate, for updates and for actions.
        num_masks: dropout masks over which predictions are averaged.
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
            remedy = "Data arrive during the run, so a pilot run is impossible: give the step size, the ladder or the partition."
            refuse("sampler", "a sampler without options left to a pilot run", repr(self.sampler), remedy)
        self.sampler.choose_num_chains(self.num_chains)


def psgld_agent(*, step_size: float = 3e-7, temperature: float = 0.3, rule: str = "average") -> Agent:
    """Thompson sampling by preconditioned SGLD."""
    options: dict[str, Any] = {"decay": 0.99, "regularizer": 1e-3, "gradient_scale": 1 / 512}
    sampler = samplers.psgld(step_size, temperature=temperature, **options)
    return Agent("pSGLD", sampler, rule=rule)
