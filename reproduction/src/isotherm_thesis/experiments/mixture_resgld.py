"""Corrected swaps on three Gaussian mixtures whose energies are noisy: swap rates, masses and convergence.

On U3 also with corrections that are larger by 1 / 0.9, F = 1.8 and 3.6 in the place of 2 and 4, with which the thesis' rates come
back: as if one of the two factors 1/tau_1 - 1/tau_2 = 0.9 of the correction had been left out.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter

from isotherm.api import sweep
from isotherm.demo.result import Row
from isotherm.potentials import Potential, with_noise
from isotherm.run import Run
from isotherm.samplers import naive_resgld, resgld, sgld
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import Target
from isotherm_thesis.experiments.figures import color_of, legend_below, page, styled
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.scoring import differences
from isotherm_thesis.targets import resgld_mixtures

TITLE = "Replica exchange on Gaussian mixtures with noisy energies; every true mass below zero is 0.4"
_CELLS = 60


@dataclasses.dataclass(frozen=True)
class Config:
    """The thesis' settings. Energies of U1 have Gaussian noise of sd 2, of U2 t_5, of U3 7 t_10.

    `early` are iterations after which errors are recorded, too.
    """

    num_steps: int = 100_000
    num_runs: int = 40
    thinning: int = 10
    step_size: float = 0.03
    temperatures: tuple[float, float] = (1.0, 10.0)
    gradient_noise: float = 0.1
    measure_every: int = 100
    num_measured: int = 10
    early: tuple[int, ...] = (1_000, 2_000, 5_000)
    methods: tuple[str, ...] = ("SGLD", "F = 1", "F = 1.8", "F = 2", "F = 3.6", "F = 4", "naive")


FULL = Config()
QUICK = Config(num_steps=20_000, num_runs=8)

# The correction factors of each mixture; None is SGLD. The thesis' swap rates are those of its text.
_FACTORS = {"U1": (None, 1.0, np.inf), "U2": (None, 1.0, np.inf), "U3": (1.0, 1.8, 2.0, 3.6, 4.0, np.inf)}
_THESIS = {("U3", 1.0): 0.0, ("U3", 2.0): 0.004, ("U3", 4.0): 0.071, ("U3", np.inf): 0.46}
# Of these only swap rates are looked at.
_FOR_RATES = ("F = 1.8", "F = 3.6")


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """All methods on all mixtures."""
    rows: list[Row] = []
    studies: dict[str, tuple[Target, dict[str, Run]]] = {}
    for target in resgld_mixtures():
        log(target.name)
        factors = [factor for factor in _FACTORS[target.name] if _label(factor) in config.methods]
        found = _sweep(target, {factor: _sampler(factor, config) for factor in factors}, config, seed)
        studies[target.name] = target, {_label(factor): run for factor, run in found.items()}
        for factor, run in found.items():
            name = f"{target.name}, {_label(factor)}"
            rows += _rows(name, run, target, _THESIS.get((target.name, factor)))
            rows += _early_rows(name, run, target, config)
        names = [f"{target.name}, {_label(factor)}" for factor in factors if _label(factor) not in _FOR_RATES]
        corrected = [name for name in names if ", F = " in name]
        pairs = [(name, other) for name in corrected for other in (names[0], names[-1]) if name != other]
        pairs += list(itertools.combinations(corrected[1:], 2))
        rows += differences(rows, "histogram error", pairs)
    return Outcome(rows, {"mixtures": _draw(studies)})


def _label(factor: float | None) -> str:
    if factor is None:
        return "SGLD"
    return "naive" if factor == np.inf else f"F = {factor:g}"


def _sampler(factor: float | None, config: Config) -> AnySampler:
    if factor is None:
        return sgld(step_size=config.step_size)
    if factor == np.inf:
        return naive_resgld(config.step_size, temperatures=config.temperatures)
    return resgld(
        config.step_size,
        temperatures=config.temperatures,
        correction_factor=factor,
        measure_every=config.measure_every,
        num_measured=config.num_measured,
    )


def _noisy(target: Target, config: Config) -> Potential:
    law: dict[str, dict[str, Any]] = {
        "U1": {"energy_scale": 2.0},
        "U2": {"energy_scale": 1.0, "degrees": 5},
        "U3": {"energy_scale": 7.0, "degrees": 10},
    }
    return with_noise(target.potential, gradient_scale=config.gradient_noise, **law[target.name])


def _sweep(target: Target, samplers: dict[Any, AnySampler], config: Config, seed: int) -> dict[Any, Run]:
    return sweep(
        _noisy(target, config),
        samplers,
        num_steps=config.num_steps,
        num_runs=config.num_runs,
        num_ladders=1,
        thinning=config.thinning,
        seed=seed,
        init=target.init,
    )


def _rows(name: str, run: Run, target: Target, thesis: float | None) -> list[Row]:
    draws = np.asarray(run.draws)[:, 0, :, 0]
    rows = [Row.of_runs(name, "mass below zero", np.mean(draws < 0, axis=1))]
    rows.append(Row.of_runs(name, "histogram error", [histogram_errors(one, target)[-1] for one in draws]))
    if "swap_rate" in run.stats:
        rows.insert(0, Row.of_runs(name, "swap rate", run.stats["swap_rate"][:, 0, 0], thesis))
        rows.insert(1, Row.of_runs(name, "swaps", run.stats["num_swaps"][:, 0, 0]))
    return rows


def _early_rows(name: str, run: Run, target: Target, config: Config) -> list[Row]:
    """Errors of the draws up to a few early iterations."""
    draws = np.asarray(run.draws)[:, 0, :, 0]
    return [
        Row.of_runs(
            name,
            f"histogram error after {steps:,} iterations",
            [histogram_errors(one[: steps // config.thinning], target)[-1] for one in draws],
        )
        for steps in config.early
        if steps <= config.num_steps
    ]


def _edges(target: Target) -> np.ndarray:
    return np.linspace(*target.span, _CELLS + 1)


def histogram_errors(draws: np.ndarray, target: Target, num_times: int = 1) -> np.ndarray:
    """Total variation between the truth and the draws so far, over cells, at equally spaced times."""
    cells = np.clip(np.digitize(draws, _edges(target)) - 1, 0, _CELLS - 1)
    points = np.asarray(target.truth.points).reshape(-1)
    truth, _ = np.histogram(points, _edges(target), weights=target.truth.probabilities)
    times = np.linspace(0, len(draws), num_times + 1).astype(int)[1:]
    counts = [np.bincount(cells[:time], minlength=_CELLS) / time for time in times]
    return 0.5 * np.abs(np.array(counts) - truth).sum(axis=1)


@styled
def _draw(studies: dict[str, tuple[Target, dict[str, Run]]]) -> Any:
    """Densities of U1, its convergence, densities of U2 and U3. Draws of all runs are pooled."""
    figure, ((first, convergence), (second, third)) = page(2, 2, 2.9)
    for axis, name in ((first, "U1"), (second, "U2"), (third, "U3")):
        target, runs = studies[name]
        points = np.asarray(target.truth.points).reshape(-1)
        spacing = points[1] - points[0]
        axis.fill_between(points[::100], target.truth.probabilities[::100] / spacing, color="0.85", label="truth")
        edges = np.linspace(*target.span, 161)
        for label, found in runs.items():
            if label in _FOR_RATES:
                continue
            density, _ = np.histogram(np.asarray(found.draws).reshape(-1), edges, density=True)
            axis.plot(0.5 * (edges[1:] + edges[:-1]), density, label=label, color=color_of(label))
        axis.set(title=f"density of {name}", xlabel="x", ylabel="density")
        axis.set_xlim(target.modes.min() - 3, target.modes.max() + 3)
    target, runs = studies["U1"]
    for label, found in runs.items():
        errors = np.mean([histogram_errors(one, target, 40) for one in np.asarray(found.draws)[:, 0, :, 0]], axis=0)
        convergence.loglog(np.linspace(0, found.num_steps, 41)[1:], errors, color=color_of(label))
    convergence.yaxis.set_minor_formatter(NullFormatter())
    convergence.set_yticks([0.03, 0.1, 0.3], ["0.03", "0.1", "0.3"])
    convergence.set(title="convergence on U1", xlabel="iteration", ylabel="total variation over cells")
    legend_below(figure, first, second, third)
    return figure
