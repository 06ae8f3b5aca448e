"""AWSGLD learns the distribution function of the energy, and draws from low energies."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import root_scalar

from isotherm.api import sweep
from isotherm.contour import Partition
from isotherm.demo.result import Row
from isotherm.foundation.gains import PolynomialGain
from isotherm.potentials import with_noise
from isotherm.run import Run
from isotherm.samplers import awsgld, sgld
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import Target
from isotherm_thesis.experiments.figures import TRUTH, color_of, legend_below, page, styled
from isotherm_thesis.experiments.flattening import bin_masses, energies_on_grid
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.targets import awsgld_mixture, mixture

TITLE = "AWSGLD: theta^zeta against the distribution function of the energy"


@dataclasses.dataclass(frozen=True)
class Config:
    """The thesis' settings; it does not give the step size.

    Attributes:
        num_steps: iterations.
        num_runs: independent repeats.
        step_size: epsilon.
        width: of the bins.
        num_bins: m.
        gain_scale: of the gain gain_scale / (k^0.6 + 100).
        gradient_noise: its standard deviation.
        burn_in: share of the run before the first draw.
        thinning: iterations between two draws.
    """

    num_steps: int = 10_000_000
    num_runs: int = 10
    step_size: float = 0.003
    width: float = 0.01
    num_bins: int = 1_000
    gain_scale: float = 0.02
    gradient_noise: float = 0.1
    burn_in: float = 0.2
    thinning: int = 100


FULL = Config()
QUICK = Config(num_steps=1_000_000, num_runs=3)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """The standard normal, and the mixture with two powers."""
    rows: list[Row] = []
    shown = []
    normal = mixture("normal", (1.0,), (0.0,), (1.0,))
    for kind, target, zetas in (("normal", normal, (1.0,)), ("mixture", awsgld_mixture(), (1.0, 2.0))):
        log(kind)
        lowest = float(energies_on_grid(target).min())
        partition = Partition(lowest + config.width, config.width, config.num_bins)
        samplers: dict[Any, AnySampler] = {zeta: _sampler(config, partition, zeta) for zeta in zetas}
        found = _sweep(target, samplers | {"plain": sgld(step_size=config.step_size)}, config, seed)
        truth = np.cumsum(bin_masses(target, partition))
        for zeta in zetas:
            shown.append((f"{kind}, zeta = {zeta:g}", found[zeta], found["plain"], truth, partition, zeta))
            rows += _rows(*shown[-1])
    return Outcome(rows, {"energy-cdf": _picture(shown)})


def _sampler(config: Config, partition: Partition, zeta: float) -> AnySampler:
    gain = PolynomialGain(config.gain_scale, 0.6, 100.0)
    start = tuple(np.arange(1, config.num_bins + 1) / config.num_bins)
    return awsgld(
        config.step_size, partition=partition, zeta=zeta, gain=gain, initial_theta=start, max_displacement=0.5
    )


def _sweep(target: Target, samplers: dict[Any, AnySampler], config: Config, seed: int) -> dict[Any, Run]:
    return sweep(
        with_noise(target.potential, gradient_scale=config.gradient_noise),
        samplers,
        num_steps=config.num_steps,
        num_runs=config.num_runs,
        thinning=config.thinning,
        burn_in=int(config.burn_in * config.num_steps),
        seed=seed,
        init=target.init,
    )


def _empirical(run: Run, partition: Partition) -> np.ndarray:
    """The distribution function of the energies that were visited, at the edges of the bins."""
    bins = np.asarray(partition.index(jnp.asarray(run.energies))).reshape(-1)
    return np.cumsum(np.bincount(bins, minlength=partition.num_bins)) / len(bins)


def _rows(name: str, weighted: Run, plain: Run, truth: np.ndarray, partition: Partition, zeta: float) -> list[Row]:
    theta = np.asarray(weighted.stats["theta"])[:, 0]
    errors = np.max(np.abs(theta**zeta - truth), axis=1)
    gaps = [_empirical(run, partition) - truth for run in (weighted, plain)]
    return [
        Row.of_runs(name, "sup error of theta^zeta", errors),
        Row(
            name,
            "sup error of the mean of theta^zeta",
            None,
            float(np.max(np.abs((theta**zeta).mean(axis=0) - truth))),
            None,
            len(theta),
        ),
        Row(name, "sup error of the fixed point's theta^zeta", None, _distance(truth, zeta), None, len(theta)),
        Row(name, "AWSGLD's energies: largest excess over the CDF", None, float(gaps[0].max()), None, len(theta)),
        Row(name, "AWSGLD's energies: largest deficit", None, float(max(-gaps[0].min(), 0.0)), None, len(theta)),
        Row(name, "SGLD's energies: sup error", None, float(np.abs(gaps[1]).max()), None, len(theta)),
        Row(name, "diverged runs", None, float(np.sum(weighted.stats["diverged_at"] >= 0)), None, len(theta)),
    ]


def _distance(truth: np.ndarray, zeta: float) -> float:
    """How far the power of the recursion's fixed point is from the distribution function: not at all for zeta = 1.

    Finer bins bring it closer. The fixed point has theta_i^(zeta - 1) (theta_i - theta_(i - 1)) proportional to the mass of bin i,
    theta_0 = 0 and theta_m = 1.
    """
    theta = [0.0]
    for mass in np.diff(truth, prepend=0.0):
        last = theta[-1]
        # Any factor on the masses only scales theta, so that one is enough.
        bracket = (last, last + mass ** (1 / zeta) + 1e-12)
        theta.append(root_scalar(_excess, args=(last, mass, zeta), bracket=bracket).root)
    return float(np.max(np.abs((np.array(theta[1:]) / theta[-1]) ** zeta - truth)))


def _excess(theta: float, last: float, mass: float, zeta: float) -> float:
    return theta ** (zeta - 1) * (theta - last) - mass


@styled
def _picture(shown: list[Any]) -> Figure:
    figure, (axes,) = page(1, len(shown), 3.1, sharey=True)
    for axis, one in zip(axes, shown, strict=True):
        _draw(axis, *one)
    axes[0].set_ylabel("distribution function")
    legend_below(figure, axes[0])
    return figure


def _draw(
    axis: Any, name: str, weighted: Run, plain: Run, truth: np.ndarray, partition: Partition, zeta: float
) -> None:
    edges = np.append(partition.edges, partition.edges[-1] + partition.width)
    theta = np.asarray(weighted.stats["theta"])[:, 0] ** zeta
    axis.plot(edges, truth, color=TRUTH, linewidth=3.5, alpha=0.35, label="truth")
    axis.fill_between(edges, theta.min(axis=0), theta.max(axis=0), color=color_of("AWSGLD"), alpha=0.2)
    axis.plot(edges, theta.mean(axis=0), color=color_of("AWSGLD"), linestyle="--", label="theta^zeta of AWSGLD")
    axis.plot(edges, _empirical(weighted, partition), color=color_of("AWSGLD"), label="energies that AWSGLD visits")
    visited = _empirical(plain, partition)
    axis.plot(edges, visited, color=color_of("SGLD"), linestyle=":", label="energies that SGLD visits")
    axis.set(title=name, xlabel="energy", xlim=(edges[0], edges[0] + 4), ylim=(0, 1.02))
