"""Replica exchange on the 25 modes of ICSGLD with the thesis' own correction: 30 at the start, smoothed with the gain of ICSGLD.

`modes25-icsgld` has replica exchange whose correction is measured. Starts, seeds, noise and scores are those of that experiment.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from isotherm.api import sample
from isotherm.demo.plots import draw_maps
from isotherm.demo.result import Row
from isotherm.exchange import Corrected
from isotherm.potentials import with_noise
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import modes25
from isotherm_thesis.experiments import modes25_icsgld, scoring
from isotherm_thesis.experiments.reproduce import Outcome

TITLE = "Replica exchange with the thesis' correction on 25 modes"
_PRINTED, _MEASURED, _OWN, _PLAIN = "reSGLD x P5, correction of 30", "reSGLD x P5", "ICSGLD x P5", "SGLD x P5"


@dataclasses.dataclass(frozen=True)
class Config:
    """The settings of `modes25-icsgld`.

    Attributes:
        num_steps: iterations of five chains.
        num_runs: independent repeats.
        correction: at the start: half of the variance of an energy difference.
        smoothing: weight of a new measurement: the largest gain of ICSGLD, which holds for the 800 measurements of a run.
    """

    num_steps: int = 80_000
    num_runs: int = 20
    correction: float = 30.0
    smoothing: float = 3e-3


FULL = Config()
QUICK = Config(num_steps=10_000, num_runs=3)


@dataclasses.dataclass(frozen=True, eq=False)
class Smoothed(Corrected):
    """A corrected rule that begins with a given variance, and smooths it from the first measurement on."""

    initial: float = 60.0

    def init(self, num_pairs: int) -> Any:
        state = super().init(num_pairs)
        return state._replace(variance=jnp.full(num_pairs, self.initial), num_estimates=state.num_estimates + 2)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """Both corrections, ICSGLD and SGLD, at equal budgets."""
    own = dataclasses.replace(modes25_icsgld.FULL, num_steps=config.num_steps, num_runs=config.num_runs)
    target = modes25()
    potential = with_noise(target.potential, energy_scale=own.noise, gradient_scale=own.noise)
    truth = modes25_icsgld.true_points(target, 4 * own.num_points)
    theta = modes25_icsgld.pilot_theta(potential, target, own, seed)
    runs = {}
    for name in (_OWN, _PLAIN, _MEASURED, _PRINTED):
        log(name)
        method = modes25_icsgld.method_of(name.split(",")[0], own, target, theta)
        sampler = method.sampler(method.published)
        if name == _PRINTED:
            sampler = _with_correction(sampler, config)
        runs[name] = sample(potential, sampler, **modes25_icsgld.settings_of(own, seed) | method.options)
    divergences = [
        Row.of_runs(name, "KL divergence", modes25_icsgld.course(found, truth, own)[1][:, -1])
        for name, found in runs.items()
    ]
    rows = scoring.variation_rows(runs, target, "ICSGLD", list(runs)) + divergences
    rows += scoring.compared(divergences, "KL divergence", "ICSGLD", list(runs))
    rows += [row for name, found in runs.items() for row in scoring.coupling_rows(name, found)]
    return Outcome(rows, {"methods": draw_maps(runs, target)})


def _with_correction(sampler: Any, config: Config) -> AnySampler:
    """A sampler of a ladder with the thesis' correction, which is half of the variance that its rule keeps."""
    old = sampler.coupling.rule
    rule = Smoothed(
        old.correction_factor, old.measure_every, old.num_measured, config.smoothing, initial=2 * config.correction
    )
    return dataclasses.replace(sampler, coupling=dataclasses.replace(sampler.coupling, rule=rule))
