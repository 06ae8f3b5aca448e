"""Interacting contour SGLD on 25 modes, beside SGLD, cyclical SGLD, SVGD, replica exchange and a single contour chain."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import KDTree

from isotherm.contour import Partition
from isotherm.experiments.plots import draw_maps, panels
from isotherm.experiments.reproduce import Outcome
from isotherm.experiments.result import Row
from isotherm.foundation.gains import PolynomialGain
from isotherm.potentials import with_noise
from isotherm.runs import Run
from isotherm.samplers import csgld, cycsgld, icsgld, resgld, sgld, svgd, thesis
from isotherm.sampling import Sampler, per_chain, sample
from isotherm.targets import Target, modes25

TITLE = "ICSGLD on 25 modes"


@dataclasses.dataclass(frozen=True)
class Config:
    """The thesis' settings. All samplers have the same number of gradients.

    Attributes:
        num_steps: iterations of five chains; single chains have five times as many, SVGD fewer.
        num_runs: independent repeats.
        step_size: of SGLD, CSGLD and ICSGLD.
        zeta: how far to flatten.
        lowest: the first edge, above the lowest energy, -4; the thesis' lies below it, where no chain comes.
        width: of the bins.
        num_bins: up to an energy of 7.5.
        noise: standard deviation on energies and gradients.
        num_particles: of SVGD, which has the gradients of the others.
        burn_in: iterations left out.
        thinning: iterations between two draws.
        num_points: draws of the truth and of a sampler from which divergences are estimated.
        num_times: of the convergence study.
        methods: that are compared.
    """

    num_steps: int = 80_000
    num_runs: int = 20
    step_size: float = 3e-3
    zeta: float = 0.75
    lowest: float = -3.5
    width: float = 0.125
    num_bins: int = 90
    noise: float = 0.25
    num_particles: int = 100
    burn_in: int = 1_000
    thinning: int = 20
    num_points: int = 4_000
    num_times: int = 8
    methods: tuple[str, ...] = (
        "SGLD x P5",
        "cycSGLD x T5",
        "SVGD x P5",
        "reSGLD x P5",
        "CSGLD x T5",
        "ICSGLD x P5",
        "ICSGLD x P5, wide bins",
    )


FULL = Config()
QUICK = Config(num_steps=20_000, num_runs=3, num_times=4)

_STARTS = np.array([(0, -1), (0, 0), (-1, 0), (0, 1), (1, 0)], np.float32)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """All samplers at equal budgets; total variation over the cells, divergence, and their course."""
    target = modes25()
    truth = _truth(target, config.num_points)
    runs, seconds, courses = {}, {}, {}
    samplers = _samplers(config, target)
    for name in config.methods:
        sampler, options = samplers[name]
        log(name)
        runs[name] = _sample(target, sampler, config, seed, **options)
        seconds[name] = runs[name].seconds / config.num_runs
        courses[name] = _course(runs[name], truth, config)
    rows = [row for name in runs for row in _rows(name, runs[name], courses[name], seconds[name], target)]
    figures = {"methods": draw_maps(runs, target, between="\n"), "convergence": _draw_courses(courses, seconds)}
    return Outcome(rows, figures)


def _samplers(config: Config, target: Target) -> dict[str, tuple[Sampler, dict[str, Any]]]:
    """Samplers, and what differs in their runs. Bins wider than the noise, with the exact field, are our own."""
    box, chains = target.box, len(_STARTS)
    long = {"num_steps": chains * config.num_steps, "init": jnp.zeros(2)}
    wide = {"init": per_chain(_STARTS), "num_chains": chains}
    contour: dict[str, Any] = {
        **thesis.icsgld(),
        "partition": Partition(config.lowest, config.width, config.num_bins),
        "zeta": config.zeta,
        "gain": PolynomialGain(1.0, 0.6, 100.0, 3e-3),
        "box": box,
    }
    coarse: dict[str, Any] = {
        **contour,
        "field": "psi",
        "partition": Partition(config.lowest, 4 * config.width, config.num_bins // 4 + 1),
    }
    cycle = chains * config.num_steps // 10
    ladder = 1e-3 * np.arange(1, chains + 1)
    exchange = resgld(tuple(ladder), temperatures=tuple(1e3 * ladder), box=box)
    few = max(chains * config.num_steps // config.num_particles, 20)
    stein = svgd(step_size=config.step_size, box=box)
    uniform = lambda key: jax.random.uniform(key, (2,), minval=-2.5, maxval=2.5)  # noqa: E731
    return {
        "SGLD x P5": (sgld(step_size=config.step_size, box=box), wide),
        "cycSGLD x T5": (cycsgld(0.01, cycle_length=cycle, sampling_from=0.205, box=box), {**long, "burn_in": 0}),
        "SVGD x P5": (
            stein,
            {
                "num_steps": few,
                "num_chains": config.num_particles,
                "burn_in": few // 10,
                "thinning": 1,
                "init": uniform,
            },
        ),
        "reSGLD x P5": (exchange, {"init": per_chain(_STARTS)}),
        "CSGLD x T5": (csgld(config.step_size, slopes="forward", **contour), long),
        "ICSGLD x P5": (icsgld(config.step_size, **contour), wide),
        "ICSGLD x P5, wide bins": (icsgld(config.step_size, **coarse), wide),
    }


def _sample(target: Target, sampler: Sampler, config: Config, seed: int, **options: Any) -> Run:
    potential = with_noise(target.potential, energy_scale=config.noise, gradient_scale=config.noise)
    settings = {"num_steps": config.num_steps, "burn_in": config.burn_in, "thinning": config.thinning}
    return sample(potential, sampler, num_ladders=1, seed=seed, **{"num_runs": config.num_runs, **settings, **options})


def _truth(target: Target, number: int) -> np.ndarray:
    """Points of the true density, uniform in their cells."""
    rng = np.random.default_rng(0)
    points, probabilities = target.truth
    chosen = points[rng.choice(len(points), number, p=probabilities)]
    width = (target.span[1] - target.span[0]) / round(np.sqrt(len(points)))
    return chosen + width * (rng.random(chosen.shape) - 0.5)


def divergence(truth: np.ndarray, draws: np.ndarray) -> float:
    """Perez-Cruz' estimate of KL(truth | draws) from nearest neighbors, for points in the plane."""
    own = KDTree(truth).query(truth, 2)[0][:, 1]
    other = KDTree(draws).query(truth, 1)[0]
    ratios = np.maximum(other, 1e-9) / np.maximum(own, 1e-9)
    return float(truth.shape[1] * np.mean(np.log(ratios)) + np.log(len(draws) / (len(truth) - 1)))


def _course(run: Run, truth: np.ndarray, config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the run, and the divergence of all draws up to there, of every run: shape (runs, times)."""
    shares = np.geomspace(0.05, 1.0, config.num_times)
    values = []
    for one in run.split_runs():
        counts = np.maximum((shares * one.num_draws).astype(int), 1)
        parts = [one.select(slice(count)) for count in counts]
        values.append([divergence(truth, _scattered(part.resample(config.num_points))) for part in parts])
    return shares, np.array(values)


def _scattered(points: np.ndarray) -> np.ndarray:
    """Points moved by less than anything that matters, so that none is there twice."""
    return points + 1e-3 * np.random.default_rng(0).standard_normal(points.shape)


def _rows(name: str, run: Run, course: tuple[np.ndarray, np.ndarray], seconds: float, target: Target) -> list[Row]:
    variations = [target.total_variation(one.mode_masses(target.modes)) for one in run.split_runs()]
    return [
        Row.of_runs(name, "total variation", variations),
        Row.of_runs(name, "KL divergence", course[1][:, -1]),
        Row(name, "seconds per run, all runs in one program", None, seconds, None, 1),
    ]


def _draw_courses(courses: dict[str, tuple[np.ndarray, np.ndarray]], seconds: dict[str, float]) -> Any:
    figure, ((steps, clock),) = panels(1, 2, (5.0, 3.6))
    for name, (shares, values) in courses.items():
        mean, error = values.mean(axis=0), 2 * values.std(axis=0) / np.sqrt(len(values))
        for axis, times in ((steps, 100 * shares), (clock, seconds[name] * shares)):
            axis.plot(times, mean, label=name)
            axis.fill_between(times, mean - error, mean + error, alpha=0.2)
    steps.set(title="divergence from the truth", xlabel="share of the gradients, %", ylabel="KL", yscale="log")
    clock.set(title="against time", xlabel="seconds per run", xscale="log", yscale="log")
    steps.legend(fontsize=7)
    return figure
