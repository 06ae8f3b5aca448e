"""Paths of five samplers on two rugged surfaces: who traverses, who exploits, and who does both."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.api import sample
from isotherm.contour import uniform_partition
from isotherm.demo.result import Row
from isotherm.foundation.gains import PolynomialGain
from isotherm.potentials import from_energy
from isotherm.run import Run
from isotherm.samplers import awsgld, cycsgld, psgld, sghmc, sgld
from isotherm.samplers.sampler import AnySampler
from isotherm_thesis.experiments.figures import color_of, page, styled
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.scoring import coupling_rows, differences
from isotherm_thesis.functions import griewank
from isotherm_thesis.targets import rugged_energy

_LOW = "share of energies below {:g}"
TITLE = "Rugged surfaces: cells of a 10 x 10 grid that were visited, and the share of draws at low energies"


@dataclasses.dataclass(frozen=True)
class Surface:
    """A surface with its box, and the thesis' settings for it.

    Attributes:
        name: of the surface.
        energy: of a point in the plane, at least 0.
        reach: the box is [-reach, reach]^2.
        num_steps: iterations.
        step_size: of all but the cyclical sampler.
        cycle: the largest and the smallest step size of a cycle.
        temperatures: of the cold and of the hot samplers.
        zeta: of AWSGLD.
        highest: the partition goes from 0 to here, in 30 bins.
        low: energies that count as low.
        start: of every chain.
    """

    name: str
    energy: Callable[[Any], Any]
    reach: float
    num_steps: int
    step_size: float
    cycle: tuple[float, float]
    temperatures: tuple[float, float]
    zeta: float
    highest: float
    low: float
    start: tuple[float, float]


_RUGGED = Surface("rugged", rugged_energy, 1.1, 100_000, 5e-5, (1e-4, 3e-5), (2.0, 20.0), 5.0, 20.0, 3.0, (-0.1, 0.1))
_GRIEWANK = Surface("Griewank", griewank, 10.0, 200_000, 0.005, (0.02, 0.005), (0.2, 2.0), 3.0, 2.0, 0.3, (8.0, 8.0))


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings that both surfaces share.

    Attributes:
        num_runs: independent repeats.
        share: of the thesis' iterations.
        num_cycles: of the cyclical sampler.
        thinning: iterations between two draws.
        num_bins: of AWSGLD's partition.
    """

    num_runs: int = 40
    share: float = 1.0
    num_cycles: int = 10
    thinning: int = 10
    num_bins: int = 30


FULL = Config()
QUICK = Config(num_runs=2, share=0.3)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """All samplers on both surfaces."""
    rows: list[Row] = []
    figures = {}
    for surface in (_RUGGED, _GRIEWANK):
        runs = {}
        for name, sampler in _samplers(surface, config).items():
            log(f"{surface.name}, {name}")
            runs[name] = _sample(surface, sampler, config, seed)
            rows += _rows(f"{surface.name}, {name}", runs[name], surface)
        own, *others = (f"{surface.name}, {name}" for name in reversed(runs))
        for metric in ("cells visited of 100", _LOW.format(surface.low)):
            rows += differences(rows, metric, [(own, other) for other in others])
        figures[f"paths-{surface.name.lower()}"] = _draw(surface, runs, rows)
    return Outcome(rows, figures)


def _num_steps(surface: Surface, config: Config) -> int:
    return int(surface.num_steps * config.share)


def _samplers(surface: Surface, config: Config) -> dict[str, AnySampler]:
    """The five methods, with the thesis' settings."""
    box, (cold, hot) = (-surface.reach, surface.reach), surface.temperatures
    cycle = _num_steps(surface, config) // config.num_cycles
    return {
        "pSGLD": psgld(surface.step_size, temperature=cold, decay=0.999, regularizer=0.1, box=box),
        "SGHMC": sghmc(surface.step_size, temperature=cold, resample_every=1_000, box=box),
        "cycSGLD": cycsgld(
            surface.cycle[0], cycle_length=cycle, temperature=cold, sampling_from=0.0, floor=surface.cycle[1], box=box
        ),
        "SGLD, hot": sgld(surface.step_size, temperature=hot, box=box),
        "AWSGLD, hot": awsgld(
            surface.step_size,
            partition=uniform_partition(0.0, surface.highest, config.num_bins),
            temperature=hot,
            zeta=surface.zeta,
            gain=PolynomialGain(0.1, 0.6, 1000.0),
            initial_theta=tuple(np.linspace(1 / config.num_bins, 1.0, config.num_bins)),
            max_displacement=0.2 * surface.reach,
            box=box,
        ),
    }


def _sample(surface: Surface, sampler: AnySampler, config: Config, seed: int) -> Run:
    return sample(
        from_energy(surface.energy),
        sampler,
        num_steps=_num_steps(surface, config),
        num_runs=config.num_runs,
        thinning=config.thinning,
        seed=seed,
        init=jnp.asarray(surface.start),
    )


def _rows(name: str, run: Run, surface: Surface) -> list[Row]:
    draws, energies = np.asarray(run.draws)[:, 0], np.asarray(run.energies)[:, 0]
    cells = np.clip(((draws / surface.reach + 1) * 5).astype(int), 0, 9)
    visited = [len(np.unique(one[:, 0] * 10 + one[:, 1])) for one in cells]
    return [
        Row.of_runs(name, "cells visited of 100", visited),
        Row.of_runs(name, _LOW.format(surface.low), np.mean(energies < surface.low, axis=1)),
        Row.of_runs(name, "lowest energy", energies.min(axis=1)),
        *coupling_rows(name, run),
    ]


@styled
def _draw(surface: Surface, runs: dict[str, Run], rows: list[Row]) -> Any:
    """The surface, and on it the draws of the first run of every method; titles have means over runs."""
    figure, axes = page(2, 3, 3.0, sharex=True, sharey=True)
    side = np.linspace(-surface.reach, surface.reach, 161)
    first, second = np.meshgrid(side, side, indexing="ij")
    heights = np.asarray(jax.vmap(jax.vmap(lambda x, y: surface.energy(jnp.stack([x, y]))))(first, second))
    shown = {(row.method, row.metric): row.ours for row in rows}
    for axis, name in zip(axes.flat, (None, *runs), strict=True):
        # The upper half of the gray scale stays free, for draws to stand out.
        axis.contourf(first, second, heights, levels=15, cmap="Greys", vmax=2 * heights.max())
        axis.grid(visible=False)
        axis.set_aspect("equal")
        if name is None:
            axis.contour(first, second, heights, levels=[surface.low], colors="black", linewidths=0.7)
            axis.set_title(f"energy, white is low;\nlines: {surface.low:g}")
            continue
        path, method = np.asarray(runs[name].draws)[0, 0], f"{surface.name}, {name}"
        cells, low = shown[method, "cells visited of 100"], shown[method, _LOW.format(surface.low)]
        axis.plot(path[:, 0], path[:, 1], ".", color=color_of(name), markersize=1.2, alpha=0.5)
        axis.set_title(f"{name}\n{cells:.0f} of 100 cells, {100 * low:.0f} % below {surface.low:g}")
    for axis in axes[-1]:
        axis.set_xlabel("x")
    for axis in axes[:, 0]:
        axis.set_ylabel("y")
    return figure
