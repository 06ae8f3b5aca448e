"""What AWSGLD sees: a surface with many shallow wells, the same at a high temperature, and after weighting."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from isotherm.api import sample
from isotherm.contour import Partition
from isotherm.demo.result import Row
from isotherm.potentials import from_energy
from isotherm.samplers import awsgld, sgld
from isotherm_thesis.experiments.figures import TRUTH, color_bar, color_of, legend_below, mosaic, styled
from isotherm_thesis.experiments.flattening import log_psi
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.targets import shallow_energy

TITLE = "Three surfaces: the share of the mass within distance 1.5 of the minimum, and the deepest well beside it"


@dataclasses.dataclass(frozen=True)
class Config:
    """The thesis' temperature; the domain, the bins and the runs of the samplers are not given there.

    Attributes:
        temperature: tau.
        zeta: of the weighted surface.
        reach: the domain is [-reach, reach]^2.
        num_bins: of the energy axis.
        num_points: of the grid, a side.
        num_steps: iterations of the samplers that are to confirm the surfaces.
        num_runs: independent repeats.
        step_size: of the samplers.
    """

    temperature: float = 9.0
    zeta: float = 1.0
    reach: float = 10.0
    num_bins: int = 200
    num_points: int = 401
    num_steps: int = 1_000_000
    num_runs: int = 10
    step_size: float = 0.05


FULL = Config()
QUICK = Config(num_steps=100_000, num_runs=3)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """The surfaces by quadrature, and the mass near the minimum from the samplers."""
    side = np.linspace(-config.reach, config.reach, config.num_points)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    energies = np.asarray(jax.vmap(jax.vmap(shallow_energy))(jnp.asarray(grid, jnp.float32)), np.float64)
    partition = _partition(energies, config)
    weighted = energies / config.temperature + config.zeta * _log_cdf(energies, partition, config)
    surfaces = {"U": energies, f"U / {config.temperature:g}": energies / config.temperature, "weighted": weighted}
    near = np.sum(grid**2, axis=-1) < 1.5**2
    rows = []
    for name, surface in surfaces.items():
        density = np.exp(-(surface - surface.min()))
        rows.append(Row(name, "mass near the minimum", None, float(density[near].sum() / density.sum()), None, 1))
        rows.append(Row(name, "highest barrier of a side well", None, _deepest(surface), None, 1))
    for name, sampler in {
        f"SGLD, tau = {config.temperature:g}": sgld(
            config.step_size, temperature=config.temperature, box=(-config.reach, config.reach)
        ),
        f"AWSGLD, tau = {config.temperature:g}": awsgld(
            config.step_size,
            partition=partition,
            temperature=config.temperature,
            zeta=config.zeta,
            gain=0.001,
            initial_theta=tuple(np.linspace(0.01, 1.0, config.num_bins)),
            max_displacement=1.0,
            box=(-config.reach, config.reach),
        ),
    }.items():
        log(name)
        found = sample(
            from_energy(shallow_energy),
            sampler,
            num_steps=config.num_steps,
            num_runs=config.num_runs,
            thinning=20,
            burn_in=config.num_steps // 10,
            seed=seed,
            init=np.array([6.0, 6.0], np.float32),
        )
        share = np.mean(np.sum(np.asarray(found.draws)[:, 0] ** 2, axis=-1) < 1.5**2, axis=1)
        rows.append(Row.of_runs(name, "visits near the minimum", share))
    return Outcome(rows, {"surfaces": _draw(grid, surfaces, config.temperature)})


def _partition(energies: np.ndarray, config: Config) -> Partition:
    width = float(energies.max() - energies.min()) / config.num_bins
    return Partition(float(energies.min()) + width, width, config.num_bins)


def _log_cdf(energies: np.ndarray, partition: Partition, config: Config) -> np.ndarray:
    """The log of Psi at AWSGLD's limit: theta^zeta is the distribution function of the energy at the temperature."""
    bins = np.asarray(partition.index(jnp.asarray(energies)))
    mass = np.exp(-(energies - energies.min()) / config.temperature)
    masses = np.bincount(bins.reshape(-1), mass.reshape(-1), minlength=partition.num_bins)
    theta = (np.cumsum(masses) / masses.sum()) ** (1.0 / config.zeta)
    return log_psi(energies, theta, partition)


def _deepest(surface: np.ndarray) -> float:
    """The largest difference between the saddle and the bottom of a well on the diagonal, the central well left out."""
    line = np.diagonal(surface)
    center = len(line) // 2
    right = line[center:]
    turning = np.flatnonzero(np.diff(np.sign(np.diff(right)))) + 1
    steps = -np.diff(right[turning])
    return float(max(steps.max(initial=0.0), 0.0))


@styled
def _draw(grid: np.ndarray, surfaces: dict[str, np.ndarray], temperature: float) -> Figure:
    """The surfaces from above on one scale, and their heights along the diagonal."""
    names = {"U": "U", "weighted": "AWSGLD: U / tau + zeta log Psi"}
    colors = dict(zip(surfaces, (TRUTH, color_of("SGLD"), color_of("AWSGLD")), strict=True))
    figure, axes = mosaic([list(surfaces), ["line"] * 3], 6.0)
    side = grid[:, 0, 0]
    heights = {name: surface - surface.min() for name, surface in surfaces.items()}
    highest = max(height.max() for height in heights.values())
    drawn: Any = None
    for name, height in heights.items():
        title = names.get(name, f"SGLD: U / tau, tau = {temperature:g}")
        extent = (side[0], side[-1]) * 2
        drawn = axes[name].imshow(height.T, origin="lower", extent=extent, cmap="viridis", vmin=0, vmax=highest)
        axes[name].grid(visible=False)
        axes[name].set(title=title, xlabel="x")
        axes["line"].plot(side, np.diagonal(height), color=colors[name], label=title)
    axes["U"].set_ylabel("y")
    color_bar(figure, drawn, [axes[name] for name in surfaces], "height above the minimum")
    axes["line"].set(xlabel="x = y", ylabel="height above the minimum", title="along the diagonal", xlim=side[[0, -1]])
    legend_below(figure, axes["line"])
    return figure
