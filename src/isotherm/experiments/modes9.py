"""CSGLD on nine modes in the plane, beside SGLD, cyclical SGLD and replica exchange."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from isotherm.contour import Partition
from isotherm.experiments.plots import draw_maps
from isotherm.experiments.reproduce import Outcome
from isotherm.experiments.result import Row
from isotherm.foundation.gains import PolynomialGain
from isotherm.potentials import with_noise
from isotherm.runs import Run
from isotherm.samplers import csgld, cycsgld, resgld, sgld, thesis
from isotherm.sampling import Sampler, sample
from isotherm.targets import Target, modes9

TITLE = "Nine modes: true masses are 0.307 in the center, 0.124 on each side, 0.0495 in each corner"


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
        noise: standard deviation on energies and gradients.
        burn_in: iterations left out.
        thinning: iterations between two draws.
    """

    num_steps: int = 400_000
    num_runs: int = 10
    step_size: float = 1e-3
    cycle_step_size: float = 5e-3
    num_cycles: int = 20
    zeta: float = 0.75
    lowest: float = -6.0
    width: float = 0.25
    num_bins: int = 95
    hot: float = 3.0
    noise: float = 0.32
    burn_in: int = 5_000
    thinning: int = 20


FULL = Config()
QUICK = Config(num_steps=100_000, num_runs=3)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """All samplers from the corner (2, 2), in the box."""
    target = modes9()
    runs = {}
    for name, (sampler, options) in _samplers(config, target).items():
        log(name)
        runs[name] = _sample(target, sampler, config, seed, **options)
    rows = [row for name, found in runs.items() for row in _rows(name, found, target)]
    return Outcome(rows, {"modes": draw_maps(runs, target)})


def _samplers(config: Config, target: Target) -> dict[str, tuple[Sampler, dict[str, Any]]]:
    box = target.box
    cycle = config.num_steps // config.num_cycles
    partition = Partition(config.lowest, config.width, config.num_bins)
    own: dict[str, Any] = {
        "field": "psi",
        "gain": PolynomialGain(10.0, 0.8, 100.0, 3e-3),
        "initial_theta": "decreasing",
    }
    contour = csgld(config.step_size, **thesis.csgld(**own), partition=partition, zeta=config.zeta, box=box)
    cyclical = cycsgld(config.cycle_step_size, cycle_length=cycle, sampling_from=0.5, box=box)
    exchange = resgld(config.step_size, temperatures=(1.0, config.hot), box=box)
    return {
        "SGLD": (sgld(step_size=config.step_size, box=box), {}),
        "cycSGLD": (cyclical, {"burn_in": 0}),
        "reSGLD": (exchange, {"num_steps": config.num_steps // 2}),
        "CSGLD": (contour, {}),
    }


def _sample(target: Target, sampler: Sampler, config: Config, seed: int, **options: Any) -> Run:
    potential = with_noise(target.potential, energy_scale=config.noise, gradient_scale=config.noise)
    settings = {"num_steps": config.num_steps, "burn_in": config.burn_in, "thinning": config.thinning, **options}
    start = jnp.array([2.0, 2.0])
    return sample(potential, sampler, num_runs=config.num_runs, num_ladders=1, seed=seed, init=start, **settings)


def _rows(name: str, run: Run, target: Target) -> list[Row]:
    masses = np.array([one.mode_masses(target.modes) for one in run.split_runs()])
    distance = np.sum(np.abs(np.round(target.modes)) > 0, axis=1)
    rows = [
        Row.of_runs(name, f"mass, {place}", masses[:, distance == number].mean(axis=1))
        for number, place in enumerate(("center", "sides", "corners"))
    ]
    rows.append(Row.of_runs(name, "total variation", [target.total_variation(one) for one in masses]))
    return rows
