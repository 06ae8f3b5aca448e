"""Interacting contour SGLD on 25 modes, beside SGLD, cyclical SGLD, SVGD, replica exchange and a single contour chain.

CSGLD and ICSGLD have the thesis' own fields, theta^zeta and theta, and start from the energies of a run of SGLD, as in the
author's code: one run of 20,000 gradients, beyond the budget, whose theta all runs share. The exact field and the defaults of this
library are run too. Every method is also run with its best step size, chosen on other seeds from a grid of ratio two that goes on
until the best is inside it, by the inner and outer halves of modes. All move in the box in which they are judged: exact draws would
score zero.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import KDTree

from isotherm.api import sample, sweep
from isotherm.contour import Partition
from isotherm.contour.theta_histogram import masses_of
from isotherm.demo.plots import draw_maps
from isotherm.demo.result import Row, variations_of
from isotherm.foundation.gains import PolynomialGain
from isotherm.potentials import Potential, with_noise
from isotherm.potentials.start import per_chain
from isotherm.run import Run
from isotherm.samplers import csgld, cycsgld, icsgld, resgld, sgld, svgd, thesis
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import Target, modes25
from isotherm_thesis.experiments import scoring
from isotherm_thesis.experiments.figures import color_of, legend_below, page, styled
from isotherm_thesis.experiments.reproduce import Outcome

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
        num_points: draws of a sampler from which divergences are estimated, at most, and a quarter of those of the truth.
        num_times: of the convergence study.
        num_pilot_steps: of SGLD, whose energies give theta at the start.
        methods: that are compared.
        others: further settings of contours, which are not tuned.
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
    num_points: int = 1_000
    num_times: int = 8
    num_pilot_steps: int = 20_000
    methods: tuple[str, ...] = ("SGLD x P5", "cycSGLD x T5", "SVGD x P5", "reSGLD x P5", "CSGLD x T5", "ICSGLD x P5")
    others: tuple[str, ...] = ("CSGLD x T5, exact field", "ICSGLD x P5, exact field", "ICSGLD x P5, defaults")


FULL = Config()
QUICK = Config(num_steps=20_000, num_runs=3, num_times=4)

_STARTS = np.array([(0, -1), (0, 0), (-1, 0), (0, 1), (1, 0)], np.float32)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """All samplers at equal budgets; total variation over the cells, divergence, and their course."""
    target = modes25()
    potential = with_noise(target.potential, energy_scale=config.noise, gradient_scale=config.noise)
    truth = true_points(target, 4 * config.num_points)
    theta = pilot_theta(potential, target, config, seed)
    runs, tuned, courses, tried = {}, {}, {}, []
    for name in config.methods:
        log(name)
        method = method_of(name, config, target, theta)
        settings = settings_of(config, seed) | method.options
        runs[name] = sample(potential, method.sampler(method.published), **settings)
        log(f"{name}, tuned")
        others = settings_of(config, seed + scoring.TUNING_OFFSET) | method.options
        choice = scoring.choose_setting(
            method.settings,
            lambda grid: sweep(potential, {one: method.sampler(one) for one in grid}, **others),  # noqa: B023
            lambda found: scoring.shape_variations_of(found, target),
        )
        tried += choice.rows(name, scoring.SHAPE)
        tuned[f"{name}, tuned ({choice.best:g})"] = sample(potential, method.sampler(choice.best), **settings)
    for name, sampler in _others(config, target, theta).items():
        log(name)
        options = _long(config) if "T5" in name else _WIDE
        runs[name] = sample(potential, sampler, **settings_of(config, seed) | options)
    for name in runs:
        courses[name] = course(runs[name], truth, config)
    seconds = {name: found.seconds / config.num_runs for name, found in runs.items()}
    divergences = [Row.of_runs(name, "KL divergence", courses[name][1][:, -1]) for name in runs]
    rows = scoring.variation_rows(runs | tuned, target, "ICSGLD", list(runs), list(tuned)) + divergences
    rows += [row for name, found in (runs | tuned).items() for row in scoring.coupling_rows(name, found)]
    rows += [Row(name, "seconds per run, all runs in one program", None, seconds[name], None, 1) for name in runs]
    rows += scoring.compared(divergences, "KL divergence", "ICSGLD", list(runs)) + tried
    shown = {name: runs[name] for name in config.methods}
    figures = {"methods": draw_maps(shown, target), "convergence": _draw_courses(shown, courses, target)}
    return Outcome(rows, figures)


class _Method(NamedTuple):
    """A method: its sampler by the setting that is chosen, those to choose from, the thesis' own, and what differs in its runs."""

    sampler: Callable[[float], AnySampler]
    settings: tuple[float, ...]
    published: float
    options: dict[str, Any]


_WIDE = {"init": per_chain(_STARTS), "num_chains": len(_STARTS)}


def _long(config: Config) -> dict[str, Any]:
    return {"num_steps": len(_STARTS) * config.num_steps, "init": jnp.zeros(2)}


def method_of(name: str, config: Config, target: Target, theta: tuple[float, ...]) -> _Method:
    """A method by its name. What is chosen is the step size; of exchange, a factor on those of the rungs."""
    box, chains, long = target.box, len(_STARTS), _long(config)
    cycle, few = chains * config.num_steps // 10, max(chains * config.num_steps // config.num_particles, 20)
    step, steps = config.step_size, tuple(config.step_size * factor for factor in (1, 2, 4, 8, 16))
    contour = {**_bins(config), "initial_theta": theta, "box": box, "zeta": config.zeta}
    uniform = lambda key: jax.random.uniform(key, (2,), minval=-2.5, maxval=2.5)  # noqa: E731
    particles = {"num_steps": few, "num_chains": config.num_particles, "burn_in": few // 10, "thinning": 1}
    if name == "SGLD x P5":
        return _Method(lambda eps: sgld(eps, box=box), steps, step, _WIDE)
    if name == "cycSGLD x T5":
        cyclical = functools.partial(cycsgld, cycle_length=cycle, sampling_from=0.205, box=box)
        return _Method(cyclical, (0.01, 0.02, 0.04, 0.08), 0.01, {**long, "burn_in": 0})
    if name == "SVGD x P5":
        peaks = tuple(step * factor for factor in (8, 16, 32, 64, 128))
        return _Method(lambda eps: svgd(eps, box=box), peaks, step, {**particles, "init": uniform})
    if name == "reSGLD x P5":
        ladder = 1e-3 * np.arange(1, chains + 1)
        exchange = functools.partial(resgld, temperatures=tuple(1e3 * ladder), box=box)
        own = {"init": per_chain(_STARTS), "num_ladders": 1}
        return _Method(lambda factor: exchange(tuple(factor * ladder)), (1.0, 2.0, 4.0, 8.0, 16.0), 1.0, own)
    if name == "CSGLD x T5":
        return _Method(lambda eps: csgld(eps, **thesis.csgld(**contour, slopes="forward")), steps, step, long)
    return _Method(lambda eps: icsgld(eps, **thesis.icsgld(**contour)), steps, step, _WIDE)


def _others(config: Config, target: Target, theta: tuple[float, ...]) -> dict[str, AnySampler]:
    exact = thesis.icsgld(**_bins(config), initial_theta=theta, box=target.box, zeta=config.zeta, field="psi")
    samplers = {
        "CSGLD x T5, exact field": csgld(config.step_size, **exact),
        "ICSGLD x P5, exact field": icsgld(config.step_size, **exact),
        "ICSGLD x P5, defaults": icsgld(config.step_size, box=target.box),
    }
    return {name: samplers[name] for name in config.others}


def _bins(config: Config) -> dict[str, Any]:
    """The thesis' partition and gain."""
    partition = Partition(config.lowest, config.width, config.num_bins)
    return {"partition": partition, "gain": PolynomialGain(1.0, 0.6, 100.0, 3e-3)}


def pilot_theta(potential: Potential, target: Target, config: Config, seed: int) -> tuple[float, ...]:
    """Masses of the energy bins of a short run of SGLD."""
    sampler, bins = sgld(config.step_size, box=target.box), _bins(config)["partition"]
    pilot = sample(potential, sampler, num_steps=config.num_pilot_steps, seed=seed, init=jnp.zeros(2))
    found = np.asarray(bins.index(jnp.asarray(pilot.energies))).reshape(-1)
    return tuple(masses_of(found, bins.num_bins, False).tolist())


def settings_of(config: Config, seed: int) -> dict[str, Any]:
    """Length, burn-in, thinning and seed of all runs."""
    given = {"num_steps": config.num_steps, "burn_in": config.burn_in, "thinning": config.thinning}
    return {**given, "num_runs": config.num_runs, "seed": seed}


def true_points(target: Target, number: int) -> np.ndarray:
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


def course(run: Run, truth: np.ndarray, config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the run, and the divergence of all draws up to there, of every run: shape (runs, times)."""
    shares = np.geomspace(0.05, 1.0, config.num_times)
    values = []
    for one in run.split_runs():
        counts = np.maximum((shares * one.num_draws).astype(int), 1)
        parts = [one.select(slice(count)) for count in counts]
        values.append([divergence(truth, _drawn(part, config.num_points)) for part in parts])
    return shares, np.array(values)


def _drawn(run: Run, most: int) -> np.ndarray:
    """Draws by their weights, few enough that hardly any is there twice: neighbors at no distance would count as a divergence.

    They are moved by less than anything that matters.
    """
    number = max(min(most, np.size(run.log_weights) // 4), 10)
    points = run.resample(number)
    return points + 1e-3 * np.random.default_rng(0).standard_normal(points.shape)


@styled
def _draw_courses(runs: dict[str, Run], courses: dict[str, tuple[np.ndarray, np.ndarray]], target: Target) -> Any:
    """Total variation over modes, which a logarithm can show, and the divergence, whose estimate may be negative."""
    figure, ((masses, divergences),) = page(1, 2, 3.4)
    for name, found in runs.items():
        shares, values = courses[name]
        counts = np.maximum((shares * found.num_draws).astype(int), 1)
        variations = np.transpose([variations_of(found.select(slice(count)), target) for count in counts])
        for axis, seen in ((masses, variations), (divergences, values)):
            mean, error = seen.mean(axis=0), 2 * seen.std(axis=0, ddof=1) / np.sqrt(len(seen))
            axis.plot(100 * shares, mean, color=color_of(name), label=name)
            axis.fill_between(100 * shares, mean - error, mean + error, color=color_of(name), alpha=0.2, linewidth=0)
    divergences.axhline(0.0, color="black", linewidth=0.8)
    divergences.set(title="KL divergence from the truth, estimated", ylabel="nats", ylim=(-0.15, 1.15))
    masses.set(title="total variation over the 25 modes", ylabel="total variation", xscale="log", yscale="log")
    for axis in (masses, divergences):
        axis.set_xlabel("gradients, % of the run")
    legend_below(figure, masses)
    return figure
