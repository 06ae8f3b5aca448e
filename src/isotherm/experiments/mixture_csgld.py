"""CSGLD on a Gaussian mixture with a high barrier: flattened energies, weights of the bins, errors, and paths."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.contour import Contour, Partition
from isotherm.experiments.flattening import bin_masses, energies_on_grid, log_psi, multiplier_on_bins
from isotherm.experiments.plots import panels
from isotherm.experiments.reproduce import Outcome
from isotherm.experiments.result import Row, differences
from isotherm.experiments.scoring import coupling_rows
from isotherm.potentials import with_noise
from isotherm.runs import Run
from isotherm.samplers import csgld, ksgld, sgld, thesis
from isotherm.sampling import Sampler, sample
from isotherm.targets import Target, csgld_mixture, mixture

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
    num_runs: int = 10
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


def _samplers(config: Config, truth: np.ndarray) -> dict[str, Sampler]:
    options: dict[str, Any] = {"partition": config.partition, "zeta": config.zeta}
    return {
        "SGLD": sgld(step_size=config.step_size),
        "KSGLD": ksgld(
            config.step_size, theta=tuple(np.maximum(truth, 1e-12)), bounds=thesis.csgld()["bounds"], **options
        ),
        "CSGLD": csgld(config.step_size, **thesis.csgld(field="psi", **options)),
        "CSGLD, theta^zeta field": csgld(config.step_size, **thesis.csgld(**options)),
    }


def _sample(target: Target, sampler: Sampler, config: Config, seed: int) -> Run:
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


def _draw_statistics(target: Target, truth: np.ndarray, runs: dict[str, Run], config: Config) -> Any:
    """The thesis' three panels: trial energies, theta with histograms, and errors against iterations."""
    figure, ((trial, bars, errors),) = panels(1, 3, (4.4, 3.4))
    points, energies = np.asarray(target.truth.points)[:, 0], energies_on_grid(target)
    shown = (points > -9) & (points < 7)
    trial.plot(points[shown], energies[shown], color="black", label="original")
    for zeta in (0.5, 0.75, 1.0):
        flat = energies + zeta * log_psi(energies, truth, config.partition)
        trial.plot(points[shown], (flat - flat[shown].min())[shown], label=f"trial, zeta = {zeta:g}")
    trial.set(title="original and trial energies", xlabel="x", ylabel="energy", ylim=(-0.5, 16))
    trial.legend(fontsize=7)
    first = np.arange(12)
    theta = np.asarray(runs["CSGLD"].stats["theta"])[:, 0, :12]
    bars.bar(first - 0.2, truth[:12], 0.4, color="0.7", label="true theta")
    bars.bar(first + 0.2, theta.mean(axis=0), 0.4, yerr=theta.std(axis=0), label="learned")
    for name in ("SGLD", "CSGLD"):
        bins = np.asarray(config.partition.index(jnp.asarray(runs[name].energies))).reshape(-1)
        bars.plot(first, np.bincount(bins, minlength=50)[:12] / len(bins), ".-", label=f"histogram of {name}")
    bars.set(title=f"theta and energy histograms, zeta = {config.zeta:g}", xlabel="bin", yscale="log", ylim=(1e-7, 2))
    bars.legend(fontsize=7)
    for name in ("SGLD", "KSGLD", "CSGLD"):
        iterations, values = _error_path(runs[name])
        errors.loglog(iterations, values, label=name)
    errors.set(title="error of the mean, average of runs", xlabel="iteration")
    errors.legend()
    return figure


def _error_path(run: Run, num_times: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Mean absolute error of the weighted mean so far, at times equally spaced in their logarithm."""
    log_weights = np.asarray(run.log_weights, np.float64)[:, 0]
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    draws = np.asarray(run.draws)[:, 0, :, 0]
    means = np.cumsum(weights * draws, axis=1) / np.cumsum(weights, axis=1)
    ends = np.unique(np.geomspace(10, draws.shape[1], num_times).astype(int)) - 1
    return run.iterations[ends] - run.iterations[0] + 1, np.abs(means[:, ends]).mean(axis=0)


def _draw_paths(target: Target, runs: dict[str, Run], early: Run, middle: Run, config: Config) -> Any:
    """Paths in the landscape. Red: moves from bins whose multiplier is negative, which bounce back up."""
    figure, (axes,) = panels(1, 4, (3.6, 3.4))
    late = slice(-config.num_path_steps // config.thinning, None)
    for axis, title, found, span in (
        (axes[0], "SGLD", runs["SGLD"], late),
        (axes[1], "CSGLD, early", early, slice(None)),
        (axes[2], "CSGLD, middle", middle, slice(None)),
        (axes[3], "CSGLD, late", runs["CSGLD"], late),
    ):
        points, energies = np.asarray(target.truth.points)[:, 0], energies_on_grid(target)
        shown = (points > -12) & (points < 10)
        axis.plot(points[shown], energies[shown], color="0.6", linewidth=1)
        path = np.asarray(found.draws).reshape(-1, found.num_draws)[0, span]
        heights = np.asarray(jax.vmap(target.energy)(jnp.asarray(path)[:, None]))
        axis.plot(path, heights, color="tab:blue", linewidth=0.4)
        if "theta" in found.stats:
            theta = np.asarray(found.stats["theta"]).reshape(-1, config.partition.num_bins)[0]
            psi = multiplier_on_bins(theta, Contour(config.partition, config.zeta))
            for number in np.flatnonzero(psi < 0):
                edge = config.partition.low + config.partition.width * (number - 1)
                axis.axhspan(edge, edge + config.partition.width, color="tab:red", alpha=0.15)
            bouncy = psi[np.asarray(config.partition.index(jnp.asarray(heights)))] < 0
            axis.plot(path[bouncy], heights[bouncy], ".", color="tab:red", markersize=2)
        axis.set(title=title, xlabel="x", ylim=(0, 16))
    axes[0].set_ylabel("energy")
    return figure


def _draw_peak(config: Config) -> Any:
    """An asymmetric mixture: where x has the energy of the other mode's bottom, the flattened energy has a peak."""
    target = mixture("asymmetric", (1 / 6, 5 / 6), (-6.0, 4.0), (1.0, 1.0))
    fine = Partition(1.2, 0.25, 4 * config.num_bins)
    truth = bin_masses(target, fine)
    points, energies = np.asarray(target.truth.points)[:, 0], energies_on_grid(target)
    shown = (points > -9) & (points < 7)
    figure, ((axis,),) = panels(1, 1, (5.0, 3.6))
    axis.plot(points[shown], energies[shown], color="black", label="original")
    trial = energies + config.zeta * log_psi(energies, truth, fine)
    axis.plot(points[shown], trial[shown] - trial[shown].min(), label=f"trial, zeta = {config.zeta:g}")
    bottom = float(target.energy(jnp.array([-6.0])))
    axis.axhline(bottom, color="tab:red", linestyle=":", label="energy of the mode at -6")
    axis.set(title="1/6 N(-6, 1) + 5/6 N(4, 1)", xlabel="x", ylabel="energy", ylim=(-0.5, 16))
    axis.legend(fontsize=8)
    return figure
