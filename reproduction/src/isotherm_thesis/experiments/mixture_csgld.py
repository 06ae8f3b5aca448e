"""CSGLD on a Gaussian mixture with a high barrier: flattened energies, weights of the bins, errors, and paths."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.api import sample
from isotherm.contour import Partition
from isotherm.demo.result import Row
from isotherm.potentials import with_noise
from isotherm.run import Run
from isotherm.samplers import csgld, ksgld, sgld, thesis
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import Target
from isotherm_thesis.experiments.figures import TRUTH, color_bar, color_of, legend_below, mosaic, page, styled
from isotherm_thesis.experiments.flattening import bin_masses, energies_on_grid, log_psi
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.scoring import coupling_rows, differences
from isotherm_thesis.targets import csgld_mixture, mixture

TITLE = "CSGLD on 0.4 N(-6, 1) + 0.6 N(4, 1), whose mean is 0"


@dataclasses.dataclass(frozen=True)
class Config:
    """The thesis' settings.

    Attributes:
        num_steps: iterations.
        num_runs: independent repeats.
        thinning: iterations between two draws.
        step_size: epsilon.
        zeta: how far to flatten.
        lowest_edge: the first edge, which the thesis does not give: above the lowest energy, 1.43.
        num_bins: of width 1.
        gradient_noise: its standard deviation.
        burn_in: share of the run before the first draw, while theta is poor.
        num_path_steps: iterations of the paths that are drawn.
    """

    num_steps: int = 10_000_000
    num_runs: int = 40
    thinning: int = 100
    step_size: float = 0.1
    zeta: float = 0.75
    lowest_edge: float = 2.0
    num_bins: int = 50
    gradient_noise: float = 0.1
    burn_in: float = 0.02
    num_path_steps: int = 100_000

    @property
    def partition(self) -> Partition:
        """The bins."""
        return Partition(self.lowest_edge, 1.0, self.num_bins)


FULL = Config()
QUICK = Config(num_steps=500_000, num_runs=4)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """SGLD, CSGLD with the exact field and with the thesis', and KSGLD; then short paths."""
    target = csgld_mixture()
    truth = bin_masses(target, config.partition)
    runs: dict[str, Run] = {}
    for name, sampler in _samplers(config, truth).items():
        log(name)
        runs[name] = _sample(target, sampler, config, seed)
    log("paths")
    early = _path(target, config, seed, config.num_path_steps // 10, 10)
    middle = _path(target, config, seed, config.num_path_steps, 100)
    rows = _barriers(target, truth, config)
    rows += [row for name, found in runs.items() for row in _rows(name, found)]
    others = ("SGLD", "KSGLD", "CSGLD, theta^zeta field")
    rows += differences(rows, "error of the mean", [("CSGLD", other) for other in others])
    rows += _theta_rows("CSGLD", runs["CSGLD"], truth)
    rows.append(_published_weights(runs["CSGLD, theta^zeta field"], config))
    figures = {
        "statistics": _draw_statistics(target, truth, runs, config),
        "paths": _draw_paths(target, runs, early, middle, config),
        "spurious-peak": _draw_peak(config),
    }
    return Outcome(rows, figures)


def _samplers(config: Config, truth: np.ndarray) -> dict[str, AnySampler]:
    options: dict[str, Any] = {"partition": config.partition, "zeta": config.zeta}
    return {
        "SGLD": sgld(step_size=config.step_size),
        "KSGLD": ksgld(
            config.step_size, theta=tuple(np.maximum(truth, 1e-12)), bounds=thesis.csgld()["bounds"], **options
        ),
        "CSGLD": csgld(config.step_size, **thesis.csgld(field="psi", **options)),
        "CSGLD, theta^zeta field": csgld(config.step_size, **thesis.csgld(**options)),
    }


def _sample(target: Target, sampler: AnySampler, config: Config, seed: int) -> Run:
    return sample(
        with_noise(target.potential, gradient_scale=config.gradient_noise),
        sampler,
        num_steps=config.num_steps,
        num_runs=config.num_runs,
        thinning=config.thinning,
        burn_in=int(config.burn_in * config.num_steps),
        seed=seed,
        init=target.init,
    )


def _path(target: Target, config: Config, seed: int, num_steps: int, thinning: int) -> Run:
    own = thesis.csgld(field="psi", partition=config.partition, zeta=config.zeta)
    sampler = csgld(config.step_size, **own)
    potential = with_noise(target.potential, gradient_scale=config.gradient_noise)
    return sample(potential, sampler, num_steps=num_steps, thinning=thinning, seed=seed, init=jnp.array([4.0]))


def _mean(run: Run) -> float:
    return float(run.expectation(lambda x: x[0]))


def _rows(name: str, run: Run) -> list[Row]:
    means = np.array([_mean(one) for one in run.split_runs()])
    rows = [Row.of_runs(name, "mean of x", means), Row.of_runs(name, "error of the mean", np.abs(means))]
    rows.append(Row(name, "largest error of a run", None, float(np.abs(means).max()), None, len(means)))
    rows.append(Row(name, "diverged runs", None, float(np.sum(run.stats["diverged_at"] >= 0)), None, len(means)))
    return rows + coupling_rows(name, run)


def _theta_rows(name: str, run: Run, truth: np.ndarray) -> list[Row]:
    theta = np.asarray(run.stats["theta"])[:, 0]
    return [
        Row.of_runs(name, f"theta({number + 1}), truth {truth[number]:.4f}", theta[:, number]) for number in range(4)
    ]


def _published_weights(run: Run, config: Config) -> Row:
    """The mean of x with the thesis' weight theta^zeta(J), which belongs to another density than the one sampled."""
    means = []
    for one in run.split_runs():
        theta = one.stats["theta"][0]
        bins = np.asarray(config.partition.index(jnp.asarray(one.energies[0])))
        means.append(np.average(one.draws[0, :, 0], weights=theta[bins] ** config.zeta))
    return Row.of_runs("CSGLD, theta^zeta field", "mean of x with weights theta^zeta(J)", means)


def _barriers(target: Target, truth: np.ndarray, config: Config) -> list[Row]:
    """Heights of the barrier from the right mode, before and after flattening."""
    points, energies = np.asarray(target.truth.points)[:, 0], energies_on_grid(target)
    between = (points > target.modes.min()) & (points < target.modes.max())
    rows = []
    for zeta, printed in ((0.0, 12.0), (config.zeta, 2.0)):
        trial = energies + zeta * log_psi(energies, truth, config.partition)
        height = trial[between].max() - trial[(points > 0) & (energies < config.partition.low + 1)].min()
        rows.append(Row(f"zeta = {zeta:g}", "energy barrier", printed, float(height), None, 1))
    return rows


@styled
def _draw_statistics(target: Target, truth: np.ndarray, runs: dict[str, Run], config: Config) -> Any:
    """Trial energies, errors against iterations, and theta with histograms of energies."""
    figure, axes = mosaic([["trial", "errors"], ["bars", "bars"]], 6.0)
    points, energies = np.asarray(target.truth.points)[:, 0], energies_on_grid(target)
    shown = (points > -9) & (points < 7)
    axes["trial"].plot(points[shown], energies[shown], color=TRUTH, label="zeta = 0")
    for zeta, color in ((0.5, "#e8c1d6"), (0.75, color_of("CSGLD")), (1.0, "#7d3b60")):
        flat = energies + zeta * log_psi(energies, truth, config.partition)
        axes["trial"].plot(points[shown], (flat - flat[shown].min())[shown], color=color, label=f"zeta = {zeta:g}")
    axes["trial"].set(title="energy that the sampler sees", xlabel="x", ylabel="energy", ylim=(-0.5, 20))
    axes["trial"].legend(ncols=2, loc="upper center")
    first = np.arange(12)
    theta = np.asarray(runs["CSGLD"].stats["theta"])[:, 0, :12]
    axes["bars"].bar(first - 0.2, truth[:12], 0.4, color="#bbbbbb", label="true masses of the bins")
    axes["bars"].bar(
        first + 0.2, theta.mean(axis=0), 0.4, yerr=theta.std(axis=0), color="#e8c1d6", label="theta of CSGLD"
    )
    for name in ("SGLD", "CSGLD"):
        bins = np.asarray(config.partition.index(jnp.asarray(runs[name].energies))).reshape(-1)
        share = np.bincount(bins, minlength=12)[:12] / len(bins)
        axes["bars"].plot(first, share, "o-", color=color_of(name), label=f"visits of {name}")
    axes["bars"].set(title=f"bins of the energy, zeta = {config.zeta:g}", xlabel="bin", ylabel="share", yscale="log")
    axes["bars"].set(ylim=(1e-6, 2), xticks=first)
    for name, color in (("SGLD", color_of("SGLD")), ("KSGLD", "#009e73"), ("CSGLD", color_of("CSGLD"))):
        iterations, values = _error_path(runs[name])
        axes["errors"].loglog(iterations, values, color=color, label=name)
    axes["errors"].set(title="error of the mean of x, average of runs", xlabel="iteration", ylabel="absolute error")
    axes["errors"].legend(loc="lower left")
    legend_below(figure, axes["bars"])
    return figure


def _error_path(run: Run, num_times: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Mean absolute error of the weighted mean so far, at times equally spaced in their logarithm."""
    log_weights = np.asarray(run.log_weights, np.float64)[:, 0]
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    draws = np.asarray(run.draws)[:, 0, :, 0]
    means = np.cumsum(weights * draws, axis=1) / np.cumsum(weights, axis=1)
    ends = np.unique(np.geomspace(10, draws.shape[1], num_times).astype(int)) - 1
    return run.iterations[ends] - run.iterations[0] + 1, np.abs(means[:, ends]).mean(axis=0)


@styled
def _draw_paths(target: Target, runs: dict[str, Run], early: Run, middle: Run, config: Config) -> Any:
    """Traces of x, colored by the energy, with the two modes as lines."""
    figure, axes = page(4, 1, 1.45)
    late = slice(-config.num_path_steps // config.thinning, None)
    drawn: Any = None
    for axis, title, found, span in (
        (axes[0, 0], "SGLD, end of the run", runs["SGLD"], late),
        (axes[1, 0], "CSGLD, start of the run", early, slice(None)),
        (axes[2, 0], "CSGLD, ten times as long", middle, slice(None)),
        (axes[3, 0], "CSGLD, end of the run", runs["CSGLD"], late),
    ):
        path = np.asarray(found.draws).reshape(-1, found.num_draws)[0, span]
        heights = np.asarray(jax.vmap(target.energy)(jnp.asarray(path)[:, None]))
        drawn = axis.scatter(found.iterations[span], path, c=heights, s=3, cmap="plasma", vmin=1, vmax=14)
        for mode in target.modes[:, 0]:
            axis.axhline(mode, color="black", linewidth=0.6)
        axis.set(title=title, ylabel="x", ylim=(-12.5, 10.5), yticks=target.modes[:, 0])
        axis.margins(x=0.01)
        axis.ticklabel_format(axis="x", style="plain", useOffset=False)
    axes[3, 0].set_xlabel("iteration")
    color_bar(figure, drawn, axes, "energy at x; the barrier is at 13.5")
    return figure


@styled
def _draw_peak(config: Config) -> Any:
    """An asymmetric mixture: where x has the energy of the other mode's bottom, the flattened energy has a peak."""
    target = mixture("asymmetric", (1 / 6, 5 / 6), (-6.0, 4.0), (1.0, 1.0))
    fine = Partition(1.2, 0.25, 4 * config.num_bins)
    truth = bin_masses(target, fine)
    points, energies = np.asarray(target.truth.points)[:, 0], energies_on_grid(target)
    shown = (points > -9) & (points < 7)
    figure, ((axis,),) = page(1, 1, 3.2)
    axis.plot(points[shown], energies[shown], color=TRUTH, label="energy")
    trial = energies + config.zeta * log_psi(energies, truth, fine)
    flat = trial[shown] - trial[shown].min()
    axis.plot(points[shown], flat, color=color_of("CSGLD"), label=f"flattened, zeta = {config.zeta:g}")
    bottom = float(target.energy(jnp.array([-6.0])))
    axis.axhline(bottom, color="#777777", linestyle=":", label="energy of the mode at -6")
    axis.set(title="1/6 N(-6, 1) + 5/6 N(4, 1)", xlabel="x", ylabel="energy", ylim=(-0.5, 16))
    legend_below(figure, axis)
    return figure
