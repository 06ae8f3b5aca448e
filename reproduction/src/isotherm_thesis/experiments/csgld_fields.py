"""The fields of theta as the thesis prints them: what theta converges to, flat histograms, large zeta, and a peak.

All runs are on the mixture of `mixture-csgld`, with its partition, step size and gain. The thesis' CSGLD has the field
theta^zeta(J), its ICSGLD the field theta(J), which one chain follows here.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from isotherm.api import sample
from isotherm.contour import Partition
from isotherm.demo.result import Row
from isotherm.potentials import with_noise
from isotherm.run import Run
from isotherm.samplers import csgld, sgld, thesis
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import Target
from isotherm_thesis.experiments.figures import color_of, legend_below, page, styled
from isotherm_thesis.experiments.flattening import bin_masses, energies_on_grid, log_psi
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.targets import csgld_mixture, mixture

TITLE = "Theta of the fields that the thesis prints"
# The bins that the thesis shows.
_SHOWN = 12


@dataclasses.dataclass(frozen=True)
class Config:
    """The thesis' settings of its mixture.

    Attributes:
        num_steps: iterations.
        num_runs: independent repeats; the thesis has 10.
        thinning: iterations between two draws.
        step_size: epsilon.
        zeta: how far to flatten.
        large_zeta: of the study of large zeta.
        num_large_steps: iterations of that study.
        lowest_edge: the first edge, which the thesis does not give.
        num_bins: of width 1.
        gradient_noise: its standard deviation.
        burn_in: share of the run before the first draw.
    """

    num_steps: int = 10_000_000
    num_runs: int = 10
    thinning: int = 1_000
    step_size: float = 0.1
    zeta: float = 0.75
    large_zeta: float = 10_000.0
    num_large_steps: int = 100_000
    lowest_edge: float = 2.0
    num_bins: int = 50
    gradient_noise: float = 0.1
    burn_in: float = 0.02

    @property
    def partition(self) -> Partition:
        """The bins."""
        return Partition(self.lowest_edge, 1.0, self.num_bins)


FULL = Config()
QUICK = Config(num_steps=300_000, num_runs=4, num_large_steps=10_000)

_FIELDS = ("theta^zeta", "theta")


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """Both fields at the thesis' zeta, flat histograms at zeta = 1, both fields at a large zeta, and the peak."""
    target = csgld_mixture()
    truth = bin_masses(target, config.partition)
    runs: dict[str, Run] = {}
    rows: list[Row] = []
    for field in _FIELDS:
        log(f"field {field}")
        name = f"field {field}, zeta = {config.zeta:g}"
        runs[name] = _sample(target, _csgld(config, field, config.zeta), config, seed)
        limit = truth if field == "theta^zeta" else _normalized(truth ** (1 / config.zeta))
        rows += _theta_rows(name, runs[name], limit)
    log("zeta = 1")
    runs["field theta^zeta, zeta = 1"] = _sample(target, _csgld(config, "theta^zeta", 1.0), config, seed)
    log("SGLD")
    runs["SGLD"] = _sample(target, sgld(step_size=config.step_size), config, seed)
    for name in (f"field theta^zeta, zeta = {config.zeta:g}", "field theta^zeta, zeta = 1", "SGLD"):
        rows.append(_flatness(name, runs[name], config))
    for field in _FIELDS:
        log(f"field {field}, large zeta")
        short = dataclasses.replace(config, num_steps=config.num_large_steps)
        found = _sample(target, _csgld(config, field, config.large_zeta), short, seed)
        rows.append(_movement(f"field {field}, zeta = {config.large_zeta:g}", found))
    rows += [_peak(config, width) for width in (0.25, 0.05)]
    return Outcome(rows, {"fields": _draw(runs, truth, config)})


def _csgld(config: Config, field: str, zeta: float) -> AnySampler:
    return csgld(config.step_size, **thesis.csgld(partition=config.partition, zeta=zeta, field=field))


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


def _normalized(values: np.ndarray) -> np.ndarray:
    return values / values.sum()


def _thetas(run: Run) -> np.ndarray:
    """Theta at the end of every run, shape (runs, bins), with sum 1."""
    theta = np.asarray(run.stats["theta"], np.float64)[:, 0]
    return theta / theta.sum(axis=1, keepdims=True)


def _theta_rows(name: str, run: Run, limit: np.ndarray) -> list[Row]:
    """The first entries of theta, and its distance from the limit that the thesis derives."""
    theta = _thetas(run)
    rows = [Row.of_runs(name, f"theta({place + 1}), claimed {limit[place]:.4f}", theta[:, place]) for place in range(4)]
    distance = 0.5 * np.abs(theta - limit).sum(axis=1)
    return [*rows, Row.of_runs(name, "total variation of theta from its claimed limit", distance)]


def _visits(run: Run, config: Config) -> np.ndarray:
    """Shares of the visits to the bins that are shown, shape (runs, bins)."""
    bins = np.asarray(config.partition.index(jnp.asarray(run.energies)))[:, 0]
    counts = np.array([np.bincount(one, minlength=config.num_bins)[:_SHOWN] for one in bins], float)
    return counts / counts.sum(axis=1, keepdims=True)


def _flatness(name: str, run: Run, config: Config) -> Row:
    """Total variation between the visits to the bins that are shown and a flat histogram."""
    distance = 0.5 * np.abs(_visits(run, config) - 1 / _SHOWN).sum(axis=1)
    return Row.of_runs(name, f"total variation of visits to {_SHOWN} bins from flat", distance)


def _movement(name: str, run: Run) -> Row:
    """How far theta has moved from its start, where all bins are equal."""
    theta = _thetas(run)
    return Row.of_runs(name, "total variation of theta from its start", 0.5 * np.abs(theta - 1 / theta.shape[1]).sum(1))


def _peak(config: Config, width: float) -> Row:
    """On the asymmetric mixture: the energy at the peak of the flattened energy beside the right mode, over that of the left mode.

    Right of the right mode the energy itself has no peak.
    """
    target = mixture("asymmetric", (1 / 6, 5 / 6), (-6.0, 4.0), (1.0, 1.0))
    fine = Partition(1.2, width, round(config.num_bins / width))
    points, energies = np.asarray(target.truth.points)[:, 0], energies_on_grid(target)
    trial = energies + config.zeta * log_psi(energies, bin_masses(target, fine), fine)
    shown = np.flatnonzero((points > 4.0) & (points < 7.0))
    inner = shown[1:-1]
    peaks = inner[(trial[inner] > trial[inner - 1]) & (trial[inner] > trial[inner + 1])]
    bottom = float(target.energy(jnp.array([-6.0])))
    heights = [trial[peak] - trial[shown[0] : peak].min() for peak in peaks]
    found = energies[peaks[int(np.argmax(heights))]] - bottom if len(peaks) else np.inf
    name = f"1/6 N(-6, 1) + 5/6 N(4, 1), bins of {width:g}"
    return Row(name, "energy of the peak over that of the mode at -6", None, float(found), None, 1)


@styled
def _draw(runs: dict[str, Run], truth: np.ndarray, config: Config) -> Any:
    """Theta of the printed field beside the masses, and the histograms of visits."""
    figure, ((bars, visits),) = page(1, 2, 3.2)
    first = np.arange(1, _SHOWN + 1)
    printed = f"field theta^zeta, zeta = {config.zeta:g}"
    ratios = _thetas(runs[printed])[:, :_SHOWN] / truth[:_SHOWN]
    bars.bar(first, ratios.mean(axis=0), 0.7, yerr=ratios.std(axis=0), color="#e8c1d6", label="theta as printed")
    bars.axhline(1.0, color="black", linewidth=0.9, label="true masses of the bins")
    bars.set(
        title=f"theta over the mass of the bin, zeta = {config.zeta:g}", xlabel="bin of the energy", ylabel="ratio"
    )
    for name, color in (("SGLD", color_of("SGLD")), (printed, "#e8c1d6"), ("field theta^zeta, zeta = 1", "#7d3b60")):
        label = name.removeprefix("field theta^zeta, ")
        visits.plot(first, _visits(runs[name], config).mean(axis=0), "o-", color=color, label=f"visits, {label}")
    visits.axhline(1 / _SHOWN, color="black", linestyle=":", label="flat")
    visits.set(title="visits to these bins", xlabel="bin of the energy", ylabel="share", yscale="log", ylim=(1e-5, 2))
    legend_below(figure, bars, visits)
    return figure
