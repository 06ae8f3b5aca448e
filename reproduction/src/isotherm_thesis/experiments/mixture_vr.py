"""Variance-reduced replica exchange on the posterior of a Gaussian mixture with a mirrored twin."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.ticker import NullFormatter

from isotherm.api import sweep
from isotherm.demo.result import Row
from isotherm.potentials.start import per_chain
from isotherm.run import Run
from isotherm.samplers import resgld, sgld, vr_resgld
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import Target
from isotherm_thesis.experiments.figures import color_bar, color_of, mosaic, styled
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.targets import mixture_posterior

TITLE = "Posterior of a mixture, N = 100,000: swaps with and without control variates; each mode has mass 0.5"
# Variances are measured on batches of each replica's own. On common batches those of mirrored replicas cancel by symmetry,
# which would flatter the plain energies of this one problem.
_SHARES_BATCHES = False


@dataclasses.dataclass(frozen=True)
class Config:
    """The thesis' settings, where it gives them; batch size, smoothing and measurements are those of the author's code.

    Attributes:
        num_data: N.
        batch_size: n.
        num_steps: iterations.
        num_runs: independent repeats.
        step_size: eta of both replicas.
        temperatures: of the replicas, which start in different basins: the barrier is 381 times the higher one.
        refresh_every: m of the traces.
        periods: further m to study.
        plain_factor: F of plain reSGLD. Also half of it, which is the correction that the thesis' algorithm prints, twice too
            large, for the number of swaps.
        smaller_batch_size: n of one more run with half of F; the thesis does not give n.
        step_sizes: eta of the sensitivity study.
        batch_sizes: n of the sensitivity study.
        num_study_steps: iterations of the sensitivity study.
    """

    num_data: int = 100_000
    batch_size: int = 1_000
    num_steps: int = 12_000
    num_runs: int = 10
    step_size: float = 1e-7
    temperatures: tuple[float, float] = (10.0, 1000.0)
    refresh_every: int = 40
    periods: tuple[int, ...] = (10, 100, 400)
    plain_factor: float = 100.0
    smaller_batch_size: int = 600
    step_sizes: tuple[float, ...] = (1e-8, 3e-8, 1e-7, 3e-7, 1e-6)
    batch_sizes: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000)
    num_study_steps: int = 800


FULL = Config()
QUICK = Config(
    num_steps=3_000,
    num_runs=2,
    periods=(10, 400),
    step_sizes=(1e-8, 1e-6),
    batch_sizes=(100, 3_000),
    num_study_steps=400,
)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """Traces, variances against m, and the sensitivity to eta and n."""
    target = _target(config, config.batch_size)
    starts = per_chain(jnp.asarray(target.modes, jnp.float32))
    periods = sorted({config.refresh_every, *config.periods})
    samplers = {f"VR m = {period}": _vr(config, period) for period in periods}
    for factor in (config.plain_factor, config.plain_factor / 2, 1.0):
        samplers[f"plain F = {factor:g}"] = _plain(config, factor)
    log("exchange")
    runs = _sweep(target, samplers, config, seed, starts)
    cold = sgld(step_size=config.step_size, temperature=config.temperatures[0])
    log("SGLD")
    runs |= _sweep(target, {"SGLD": cold}, config, seed, jnp.array([30.0]))
    half, size = f"plain F = {config.plain_factor / 2:g}", config.smaller_batch_size
    fewer = {f"{half}, n = {size}": _plain(config, config.plain_factor / 2)}
    fewer = _sweep(_target(config, size), fewer, config, seed, starts)
    rows = [row for name, found in {**runs, **fewer}.items() for row in _rows(name, found, target)]
    del runs[half]  # Its swaps are counted; it is not drawn.
    rows.append(_reduction(runs, config))
    study = _sensitivity(config, seed, log)
    rows += [
        Row.of_runs(f"VR eta = {step:g}, n = {size}", "variance", study[i, j])
        for i, step in enumerate(config.step_sizes)
        for j, size in enumerate(config.batch_sizes)
    ]
    return Outcome(rows, {"variance-reduction": _draw(runs, study, target, config)})


def _target(config: Config, batch_size: int) -> Target:
    return mixture_posterior(config.num_data, batch_size, is_batch_shared=_SHARES_BATCHES)


def _plain(config: Config, factor: float) -> AnySampler:
    return resgld(config.step_size, temperatures=config.temperatures, correction_factor=factor, variance="tracked")


def _vr(config: Config, period: int, step_size: float | None = None) -> AnySampler:
    return vr_resgld(
        step_size or config.step_size,
        temperatures=config.temperatures,
        refresh_every=period,
        smoothing=0.2,
        variance="tracked",
    )


def _sweep(target: Target, samplers: dict[Any, AnySampler], config: Config, seed: int, init: Any) -> dict[Any, Run]:
    return sweep(
        target.potential,
        samplers,
        num_steps=config.num_steps,
        num_runs=config.num_runs,
        num_ladders=1,
        thinning=10,
        seed=seed,
        init=init,
    )


def _rows(name: str, run: Run, target: Target) -> list[Row]:
    draws = np.asarray(run.draws)[:, 0, :, 0]
    is_first = draws < target.modes.mean()
    rows = [
        Row.of_runs(name, "mass of the mode at -5", is_first.mean(axis=1)),
        Row.of_runs(name, "visits both modes", (is_first.any(axis=1) & ~is_first.all(axis=1)).astype(float)),
        Row.of_runs(name, "sd within modes", [_spread(one, target) for one in draws]),
    ]
    if "num_swaps" in run.stats:
        rows.append(Row.of_runs(name, "swaps", run.stats["num_swaps"][:, 0, 0]))
        rows.append(Row.of_runs(name, "variance", _variances(run)))
    return rows


def _spread(draws: np.ndarray, target: Target) -> float:
    """Root mean square distance from the mode, of the second half of the draws."""
    late = draws[len(draws) // 2 :]
    return float(np.sqrt(np.mean(np.min((late[:, None] - target.modes.T) ** 2, axis=1))))


def _variances(run: Run) -> np.ndarray:
    """Median over time of the tracked variance of an energy, (Var U_1 + Var U_2) / 2, for each run."""
    seen = np.asarray(run.observed["variance_of_difference"]).reshape(run.log_weights.shape[0], -1)
    return np.nanmedian(np.where(np.isfinite(seen), seen, np.nan), axis=1) / 2


def _reduction(runs: dict[str, Run], config: Config) -> Row:
    reduced, plain = _variances(runs[f"VR m = {config.refresh_every}"]), _variances(runs["plain F = 1"])
    return Row.of_runs(f"plain over VR m = {config.refresh_every}", "ratio of variances", plain / reduced)


def _sensitivity(config: Config, seed: int, log: Callable[[str], None]) -> np.ndarray:
    """Variances against eta and n, shape (step sizes, batch sizes, runs)."""
    found = []
    for size in config.batch_sizes:
        target = _target(config, size)
        short = dataclasses.replace(config, num_steps=config.num_study_steps)
        starts = per_chain(jnp.asarray(target.modes, jnp.float32))
        log(f"sensitivity, n = {size}")
        each = {step: _vr(config, config.refresh_every, step) for step in config.step_sizes}
        found.append([_variances(run) for run in _sweep(target, each, short, seed, starts).values()])
    return np.moveaxis(np.array(found), 0, 1)


@styled
def _draw(runs: dict[str, Run], study: np.ndarray, target: Target, config: Config) -> Any:
    """Traces, widths of the modes, paths of the variance, and the variance against n / N and eta."""
    vr, plain = f"VR m = {config.refresh_every}", f"plain F = {config.plain_factor:g}"
    names = [vr, plain, "SGLD"]
    rows = [[name, "width"] for name in names] + [["paths", "study"]] * 3
    figure, axes = mosaic(rows, 5.8)
    for name in names:
        axes[name].plot(
            runs[name].iterations, np.asarray(runs[name].draws)[0, 0, :, 0], linewidth=0.7, color=color_of(name)
        )
        axes[name].set(ylim=(-9.0, 33.0), yticks=target.modes[:, 0])
        axes[name].set_ylabel(name.replace(" ", "\n", 1), rotation=0, ha="right", va="center")
        if name != names[-1]:
            axes[name].tick_params(labelbottom=False)
    axes[vr].set_title("trace of beta, first run")
    axes["SGLD"].set_xlabel("iteration")
    for name in (vr, plain):
        _draw_width(axes["width"], runs[name], target, name)
    axes["width"].set(title="draws around their mode, all runs", xlabel="beta - mode", ylabel="density")
    axes["width"].legend(loc="upper right")
    _draw_variances(axes["paths"], runs)
    ratios = np.array(config.batch_sizes) / config.num_data
    drawn = axes["study"].contourf(ratios, config.step_sizes, np.log10(study.mean(axis=2)), 8, cmap="viridis")
    axes["study"].set(xscale="log", yscale="log", xlabel="batch / data, n / N", ylabel="step size")
    axes["study"].set_title(f"variance with control variates, m = {config.refresh_every}")
    axes["study"].xaxis.set_minor_formatter(NullFormatter())
    color_bar(figure, drawn, axes["study"], "log10 of the variance")
    return figure


def _draw_width(axis: Any, run: Run, target: Target, name: str) -> None:
    """The density of draws of the second half around the mode that is nearest."""
    draws = np.asarray(run.draws)[:, 0, :, 0]
    gaps = draws[:, draws.shape[1] // 2 :].reshape(-1, 1) - target.modes.T
    nearest = gaps[np.arange(len(gaps)), np.argmin(np.abs(gaps), axis=1)]
    cells = np.linspace(-1.5, 1.5, 61)
    axis.hist(nearest, cells, density=True, histtype="stepfilled", color=color_of(name), alpha=0.6, label=name)


def _draw_variances(axis: Any, runs: dict[str, Run]) -> None:
    tracked = {name: run for name, run in runs.items() if "variance_of_difference" in run.observed}
    reduced = [name for name in tracked if name.startswith("VR")]
    colors = [matplotlib.colormaps["Purples"](shade) for shade in np.linspace(0.4, 1.0, len(reduced))]
    for name, color in zip((*reduced, "plain F = 1"), (*colors, color_of("plain F")), strict=True):
        seen = np.asarray(tracked[name].observed["variance_of_difference"])[0].reshape(-1)
        label = "plain" if name.startswith("plain") else name
        axis.semilogy(tracked[name].iterations, seen / 2, linewidth=1.0, color=color, label=label)
    # The curves leave the middle free.
    axis.legend(loc=(0.1, 0.58), ncols=2)
    axis.set(title="variance of a swap energy, first run", xlabel="iteration", ylabel="variance")
