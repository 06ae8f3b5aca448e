"""Non-reversible exchange with SGD on the hot rungs, on 25 modes: target rates, windows, adaptation, and baselines.

Chains move in the whole plane, as in the thesis, where a fifth of the law lies outside of the box that it shows. Draws are judged
by the masses of modes given that they are in the box: exact draws would score zero. Every method is also run with its best step
size, chosen on other seeds from a grid of ratio two that goes on until the best is inside it, by the inner and outer halves of
modes: their masses alone forgive steps so long that no mode can be told from the next.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import matplotlib
import numpy as np

from isotherm.api import sample, sweep
from isotherm.demo.plots import draw_maps
from isotherm.demo.result import Row, masses_in_box
from isotherm.potentials import with_noise
from isotherm.run import Run
from isotherm.samplers import cycsgld, deo_sgd, sgld
from isotherm.samplers.sampler import AnySampler
from isotherm.targets import Target, modes25
from isotherm_thesis.experiments.figures import THESIS, color_of, page, styled
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.scoring import (
    SHAPE,
    TUNING_OFFSET,
    choose_setting,
    shape_variations_of,
    variation_rows,
)

TITLE = "DEO*-SGD on 25 modes"


@dataclasses.dataclass(frozen=True)
class Config:
    """The thesis' settings.

    Attributes:
        num_steps: iterations.
        num_runs: independent repeats.
        num_replicas: P.
        step_sizes: of the target and of the hottest rung.
        target: S.
        window: W of DEO*; the formula of the thesis gives 8 (the exact optimum, 7, is as good).
        buffer: C at the start.
        noise: standard deviation on energies and gradients.
        burn_in: iterations left out.
        thinning: iterations between two draws.
        targets: S of the study.
        windows: W of the study.
        tuned_steps: step sizes of the target among which DEO* and SGLD choose, and more where the best is at an edge.
        tuned_peaks: largest step sizes of a cycle among which cyclical SGLD chooses, likewise.
    """

    num_steps: int = 20_001
    num_runs: int = 10
    num_replicas: int = 16
    step_sizes: tuple[float, float] = (0.003, 0.6)
    target: float = 0.4
    window: int = 8
    buffer: float = 4.0
    noise: float = 2.0
    burn_in: int = 100
    thinning: int = 10
    targets: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6)
    windows: tuple[int, ...] = (1, 2, 4, 8, 12, 16)
    tuned_steps: tuple[float, ...] = (0.005, 0.01, 0.02, 0.04, 0.08)
    tuned_peaks: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4)


FULL = Config()
QUICK = Config(num_steps=6_001, num_runs=2, targets=(0.2, 0.4, 0.6), windows=(1, 8))

_CENTER = "mass of the nine modes in the center"
# Share of its true mass from which on a mode counts as found.
_FOUND = 0.1
_THESIS_TRIPS = {1: 18.0, 8: 45.0}


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """The studies of S and W, and the comparison with independent and cyclical chains at equal budgets."""
    target = modes25()
    potential = with_noise(target.potential, energy_scale=config.noise, gradient_scale=config.noise)
    studied: dict[str, Any] = {"num_runs": config.num_runs, "num_ladders": 1, "seed": seed, "init": target.init}
    studied |= {"num_steps": config.num_steps, "burn_in": config.burn_in, "thinning": config.thinning}
    log("target rates")
    by_target = sweep(potential, {rate: _deo(config, config.window, rate) for rate in config.targets}, **studied)
    log("windows")
    by_window = sweep(potential, {window: _deo(config, window, config.target) for window in config.windows}, **studied)
    runs, tuned, tried = {"DEO x P16": by_window[1], "DEO* x P16": by_window[config.window]}, {}, []
    for name, method in _methods(config).items():
        log(f"{name}, tuned")
        own = studied | method.options
        others: dict[str, Any] = own | {"seed": seed + TUNING_OFFSET}
        choice = choose_setting(
            method.settings,
            lambda settings: sweep(potential, {one: method.sampler(one) for one in settings}, **others),  # noqa: B023
            lambda found: shape_variations_of(found, target),
        )
        tried += choice.rows(name, SHAPE)
        tuned[f"{name}, tuned ({choice.best:g})"] = sample(potential, method.sampler(choice.best), **own)
        if name not in runs:
            log(name)
            runs[name] = sample(potential, method.sampler(method.published), **own)
    log("cycSGLD, 100 cycles")
    own = studied | _methods(config)["cycSGLD x T16"].options
    printed = config.num_replicas * config.num_steps // 100
    runs["cycSGLD x T16, 100 cycles"] = sample(potential, _cyclical(config.step_sizes[1], printed), **own)
    scores = {f"S = {rate:g}": found for rate, found in by_target.items()} | runs | tuned
    rows = [row for window, found in by_window.items() for row in _travel(f"W = {window}", found, window)]
    rows += variation_rows(scores, target, "DEO*", list(runs), list(tuned)) + tried
    rows += [row for name, found in runs.items() for row in _center_rows(name, found, target)]
    rows.append(Row("truth", _CENTER, None, float(target.mode_masses[_is_central(target)].sum()), None, 1))
    figures = {
        "target-rates": draw_maps({f"S = {rate:g}": found for rate, found in by_target.items()}, target),
        "adaptation": _draw_adaptation(by_window, config),
        "methods": draw_maps(runs, target),
    }
    return Outcome(rows, figures)


def _deo(config: Config, window: int, rate: float, lowest: float | None = None) -> AnySampler:
    steps = (lowest or config.step_sizes[0], config.step_sizes[1])
    return deo_sgd(steps, num_replicas=config.num_replicas, target=rate, buffer=config.buffer, window=window)


class _Method(NamedTuple):
    """A method: its sampler by the setting that is chosen, those to choose from, the thesis' own, and what differs in its runs."""

    sampler: Callable[[float], AnySampler]
    settings: tuple[float, ...]
    published: float
    options: dict[str, Any]


def _cyclical(peak: float, cycle_length: int) -> AnySampler:
    """Cyclical SGLD that keeps the last twentieth of a cycle; the author's cycles are shorter than the thesis' 100 of a run."""
    return cycsgld(step_size=peak, cycle_length=cycle_length, sampling_from=0.95, hold_from=0.95)


def _methods(config: Config) -> dict[str, _Method]:
    """Methods with equal numbers of gradients."""
    lowest, highest = config.step_sizes
    many = {"num_chains": config.num_replicas, "num_ladders": None}
    long = {"num_steps": config.num_replicas * config.num_steps, "thinning": 1, "burn_in": 0, "num_ladders": None}
    return {
        "DEO* x P16": _Method(
            lambda step: _deo(config, config.window, config.target, step), config.tuned_steps, lowest, {}
        ),
        "SGLD x P16": _Method(lambda step: sgld(step_size=step), config.tuned_steps, lowest, many),
        "cycSGLD x T16": _Method(
            lambda peak: _cyclical(peak, 200),
            config.tuned_peaks,
            highest,
            long,
        ),
    }


def _travel(name: str, run: Run, window: int) -> list[Row]:
    """Round trips of all replicas in 1000 iterations, acceptance in the second half, and the buffer at the end."""
    per_thousand = 1000 / run.num_steps
    late = _late_acceptance(run)
    return [
        Row.of_runs(
            name,
            "round trips / 1000",
            run.stats["round_trips_thesis"].sum(axis=(1, 2)) * per_thousand,
            _THESIS_TRIPS.get(window),
        ),
        Row.of_runs(name, "strict round trips / 1000", run.stats["round_trips"].sum(axis=(1, 2)) * per_thousand),
        Row.of_runs(name, "mean acceptance", late.mean(axis=1), 0.4),
        Row.of_runs(name, "lowest acceptance of a pair", late.min(axis=1)),
        Row.of_runs(name, "highest acceptance of a pair", late.max(axis=1)),
        Row.of_runs(name, "buffer", np.asarray(run.observed["buffer"])[:, 0, -1, 0]),
    ]


def _is_central(target: Target) -> np.ndarray:
    return np.abs(target.modes).max(axis=1) < 1.5


def _center_rows(name: str, run: Run, target: Target) -> list[Row]:
    """The mass of the nine modes in the center, and the total variation among these and among the others."""
    is_central = _is_central(target)
    masses = np.array(
        [masses_in_box(np.asarray(one.draws), np.asarray(one.log_weights), target) for one in run.split_runs()]
    )
    found = np.sum(masses >= _FOUND * target.mode_masses, axis=1)
    rows = [Row.of_runs(name, "modes with a tenth of their mass or more", found)]
    rows.append(Row.of_runs(name, _CENTER, masses[:, is_central].sum(axis=1)))
    for metric, part in (("in the center", is_central), ("outside", ~is_central)):
        truth = target.mode_masses[part] / target.mode_masses[part].sum()
        shares = masses[:, part] / np.maximum(masses[:, part].sum(axis=1, keepdims=True), 1e-12)
        distance = 0.5 * np.abs(shares - truth).sum(axis=1)
        rows.append(Row.of_runs(name, f"total variation among the modes {metric}", distance))
    return rows


def _late_acceptance(run: Run) -> np.ndarray:
    """Acceptance of each pair over the second half, shape (runs, pairs)."""
    accepted = np.asarray(run.observed["num_accepted"])[:, 0]
    half = len(run.iterations) // 2
    return (accepted[:, -1] - accepted[:, half]) / (run.iterations[-1] - run.iterations[half])


@styled
def _draw_adaptation(by_window: dict[int, Run], config: Config) -> Any:
    """Round trips against W; step sizes, acceptance, buffer and the index process of the first run of DEO*."""
    figure, axes = page(3, 2, 2.5)
    trips, steps, acceptance, buffer, vanilla, best = axes.reshape(-1)
    rows = {window: _travel("", found, window)[0] for window, found in by_window.items()}
    errors = [row.std_error or 0 for row in rows.values()]
    trips.errorbar(
        list(rows), [row.ours for row in rows.values()], errors, fmt="o-", color=color_of("DEO*"), label="ours"
    )
    published = [window for window in by_window if window in _THESIS_TRIPS]
    trips.plot(published, [_THESIS_TRIPS[window] for window in published], "D", color=THESIS, label="thesis")
    trips.set(title="round trips in 1000 iterations", xlabel="window W", ylabel="round trips", ylim=0)
    trips.legend(loc="lower right")
    found = by_window[config.window]
    ladder = np.asarray(found.observed["ladder"])[0, 0]
    accepted = np.asarray(found.observed["num_accepted"])[0, 0]
    shades = matplotlib.colormaps["plasma"](np.linspace(0.0, 0.9, ladder.shape[1]))
    for rung, shade in enumerate(shades):
        steps.semilogy(found.iterations, config.step_sizes[0] * ladder[:, rung], linewidth=0.9, color=shade)
    steps.set(title="step sizes of the rungs, cold to hot", xlabel="iteration", ylabel="step size", xscale="log")
    # Blocks that grow: pairs are unequal in the first hundred iterations only.
    blocks = np.unique(np.geomspace(1, len(accepted), 31).astype(int)) - 1
    rates = np.diff(accepted[blocks], axis=0) / np.diff(found.iterations[blocks])[:, None]
    for pair, shade in zip(rates.T, shades, strict=False):
        acceptance.plot(found.iterations[blocks[1:]], pair, linewidth=0.8, color=shade)
    acceptance.axhline(config.target, color="black", linestyle=":")
    acceptance.set(
        title="acceptance of the pairs; dotted: target", xlabel="iteration", ylabel="rate", ylim=(0, 1), xscale="log"
    )
    buffer.plot(found.iterations, np.asarray(found.observed["buffer"])[0, 0, :, 0], color=color_of("DEO*"))
    buffer.set(title="buffer of the deterministic swaps", xlabel="iteration", ylabel="buffer C", ylim=0)
    for axis, window, name in ((vanilla, min(by_window), "DEO"), (best, config.window, "DEO*")):
        shown = by_window[window]
        late = slice(-150, None)
        rung = np.asarray(shown.observed["rung"])[0, 0]
        axis.plot(shown.iterations[late], rung[late, config.num_replicas // 2], linewidth=0.9, color="#bbbbbb")
        axis.plot(shown.iterations[late], rung[late, 0], linewidth=1.2, color=color_of(name))
        axis.set(title=f"{name}, W = {window}: two replicas", xlabel="iteration", ylabel="rung")
    return figure
