"""CSGLD on nine modes in the plane, beside SGLD, cyclical SGLD and replica exchange.

Differs from the thesis: replica exchange measures the variance of the energies instead of assuming 0.1; CSGLD has the exact field
beside the thesis' own. Every method is also run with its best step size, chosen on other seeds from a grid of ratio two that goes
on until the best is inside it, by the inner and outer halves of modes.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from isotherm.api import sample
from isotherm.contour import Partition
from isotherm.demo.plots import draw_maps
from isotherm.demo.result import Row, masses_in_box
from isotherm.foundation.gains import PolynomialGain
from isotherm.potentials import with_noise
from isotherm.run import Run
from isotherm.samplers import csgld, cycsgld, resgld, sgld, thesis
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import Target
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.scoring import (
    SHAPE,
    TUNING_OFFSET,
    choose_setting,
    coupling_rows,
    shape_variations_of,
    variation_rows,
)
from isotherm_thesis.targets import modes9

TITLE = "Nine modes: true masses are 0.307 in the center, 0.124 on each side, 0.0495 in each corner"

# Share of its true mass from which on a mode counts as found.
_FOUND = 0.1


@dataclasses.dataclass(frozen=True)
class Config:
    """The thesis' settings.

    Attributes:
        num_steps: iterations; replica exchange, with two chains, has half of them.
        num_runs: independent repeats.
        step_size: of all samplers; the cyclical one starts from `cycle_step_size`.
        cycle_step_size: the largest of a cycle.
        num_cycles: in a run.
        zeta: how far CSGLD flattens.
        lowest: the first edge, above the lowest energy, -6.67; the thesis' lies below it, where no chain comes.
        width: of the bins.
        num_bins: up to an energy of 17.3.
        hot: the temperature of the hot chain.
        intensity: the probability that an iteration tries to swap.
        factors: on the step size, among which every method chooses, and more where the best is at an edge.
        noise: standard deviation on energies and gradients.
        burn_in: iterations left out.
        thinning: iterations between two draws.
    """

    num_steps: int = 400_000
    num_runs: int = 20
    step_size: float = 1e-3
    cycle_step_size: float = 5e-3
    num_cycles: int = 20
    zeta: float = 0.75
    lowest: float = -6.0
    width: float = 0.25
    num_bins: int = 95
    hot: float = 3.0
    intensity: float = 0.1
    factors: tuple[float, ...] = (2.0, 4.0, 8.0, 16.0, 32.0)
    noise: float = 0.32
    burn_in: int = 5_000
    thinning: int = 20


FULL = Config()
QUICK = Config(num_steps=100_000, num_runs=3)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """All samplers from the corner (2, 2), in the box."""
    target = modes9()
    runs, tuned, tried = {}, {}, []
    for name, options in _METHODS.items():
        log(name)
        attempt = functools.partial(_attempt, name, target, config, options(config))
        runs[name] = attempt(seed, (1.0,))[1.0]
        log(f"{name}, tuned")
        others = functools.partial(attempt, seed + TUNING_OFFSET)
        choice = choose_setting(config.factors, others, lambda found: shape_variations_of(found, target))
        tried += choice.rows(name, SHAPE)
        tuned[f"{name}, tuned ({choice.best:g})"] = attempt(seed, (choice.best,))[choice.best]
    rows = [row for name, found in (runs | tuned).items() for row in _rows(name, found, target)]
    rows += variation_rows(runs | tuned, target, "CSGLD", list(runs), list(tuned)) + tried
    return Outcome(rows, {"modes": draw_maps(runs, target)})


_METHODS: dict[str, Callable[[Config], dict[str, Any]]] = {
    "SGLD": lambda config: {},
    "cycSGLD": lambda config: {"burn_in": 0},
    "reSGLD": lambda config: {"num_steps": config.num_steps // 2, "num_ladders": 1},
    "CSGLD": lambda config: {},
    "CSGLD, exact field": lambda config: {},
}


def _sampler(name: str, factor: float, config: Config, target: Target) -> AnySampler:
    """A method with its step sizes times a factor."""
    box, step = target.box, factor * config.step_size
    if name == "SGLD":
        return sgld(step_size=step, box=box)
    if name == "cycSGLD":
        cycle = config.num_steps // config.num_cycles
        return cycsgld(factor * config.cycle_step_size, cycle_length=cycle, sampling_from=0.5, box=box)
    if name == "reSGLD":
        return resgld(step, temperatures=(1.0, config.hot), intensity=config.intensity, box=box)
    own: dict[str, Any] = {
        "gain": PolynomialGain(10.0, 0.8, 100.0, 3e-3),
        "initial_theta": "decreasing",
        "partition": Partition(config.lowest, config.width, config.num_bins),
        "zeta": config.zeta,
        "box": box,
    }
    own |= {"field": "psi"} if "exact" in name else {}
    return csgld(step, **thesis.csgld(**own))


def _attempt(
    name: str, target: Target, config: Config, options: dict[str, Any], seed: int, factors: Sequence[float]
) -> dict[float, Run]:
    """Runs of a method by the factor on its step sizes."""
    samplers = {factor: _sampler(name, factor, config, target) for factor in factors}
    return {factor: _sample(target, sampler, config, seed, **options) for factor, sampler in samplers.items()}


def _sample(target: Target, sampler: AnySampler, config: Config, seed: int, **options: Any) -> Run:
    potential = with_noise(target.potential, energy_scale=config.noise, gradient_scale=config.noise)
    settings = {"num_steps": config.num_steps, "burn_in": config.burn_in, "thinning": config.thinning, **options}
    start = jnp.array([2.0, 2.0])
    return sample(potential, sampler, num_runs=config.num_runs, seed=seed, init=start, **settings)


def _rows(name: str, run: Run, target: Target) -> list[Row]:
    each = [(np.asarray(one.draws), np.asarray(one.log_weights)) for one in run.split_runs()]
    masses = np.array([masses_in_box(*one, target) for one in each])
    distance = np.sum(np.abs(np.round(target.modes)) > 0, axis=1)
    rows = [
        Row.of_runs(name, f"mass, {place}", masses[:, distance == number].mean(axis=1))
        for number, place in enumerate(("center", "sides", "corners"))
    ]
    found = np.sum(masses >= _FOUND * target.mode_masses, axis=1)
    rows.append(Row.of_runs(name, "modes with a tenth of their mass or more", found))
    return rows + coupling_rows(name, run)
