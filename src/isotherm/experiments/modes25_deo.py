"""Non-reversible exchange with SGD on the hot rungs, on 25 modes: target rates, windows, adaptation, and baselines."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from isotherm.experiments.plots import draw_maps, panels
from isotherm.experiments.reproduce import Outcome
from isotherm.experiments.result import Row
from isotherm.potentials import with_noise
from isotherm.runs import Run
from isotherm.samplers import cycsgld, deo_sgd, sgld
from isotherm.sampling import Sampler, sample, sweep
from isotherm.targets import Target, modes25

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


FULL = Config()
QUICK = Config(num_steps=6_001, num_runs=2, targets=(0.2, 0.4, 0.6), windows=(1, 8))

_THESIS_TRIPS = {1: 18.0, 8: 45.0}


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """The studies of S and W, and the comparison with independent and cyclical chains at equal budgets."""
    target = modes25()
    potential = with_noise(target.potential, energy_scale=config.noise, gradient_scale=config.noise)
    studied = {"num_runs": config.num_runs, "num_ladders": 1, "seed": seed, "init": target.init}
    studied |= {"num_steps": config.num_steps, "burn_in": config.burn_in, "thinning": config.thinning}
    log("target rates")
    by_target = sweep(potential, {rate: _deo(config, config.window, rate) for rate in config.targets}, **studied)
    log("windows")
    by_window = sweep(potential, {window: _deo(config, window, config.target) for window in config.windows}, **studied)
    runs = {}
    for name, (sampler, options) in _baselines(config).items():
        log(name)
        runs[name] = sample(potential, sampler, **studied | options)
    runs |= {"DEO x P16": by_window[1], "DEO* x P16": by_window[config.window]}
    rows = [row for rate, found in by_target.items() for row in _quality(f"S = {rate:g}", found, target)]
    rows += [row for window, found in by_window.items() for row in _travel(f"W = {window}", found, window)]
    rows += [row for name, found in runs.items() for row in _quality(name, found, target)]
    figures = {
        "target-rates": draw_maps({f"S = {rate:g}": found for rate, found in by_target.items()}, target),
        "adaptation": _draw_adaptation(by_window, config),
        "methods": draw_maps(runs, target),
    }
    return Outcome(rows, figures)


def _deo(config: Config, window: int, rate: float) -> Sampler:
    return deo_sgd(
        config.step_sizes, num_replicas=config.num_replicas, target=rate, buffer=config.buffer, window=window
    )


def _baselines(config: Config) -> dict[str, tuple[Sampler, dict[str, Any]]]:
    """Samplers of the same number of gradients, and what differs in their runs."""
    total = config.num_replicas * config.num_steps
    cyclical = cycsgld(step_size=config.step_sizes[1], cycle_length=200, sampling_from=0.95)
    return {
        "SGLD x P16": (sgld(step_size=config.step_sizes[0]), {"num_chains": config.num_replicas}),
        "cycSGLD x T16": (cyclical, {"num_steps": total, "thinning": 1, "burn_in": 0}),
    }


def _quality(name: str, run: Run, target: Target) -> list[Row]:
    variations = [target.total_variation(one.mode_masses(target.modes)) for one in run.split_runs()]
    return [Row.of_runs(name, "total variation", variations)]


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


def _late_acceptance(run: Run) -> np.ndarray:
    """Acceptance of each pair over the second half, shape (runs, pairs)."""
    accepted = np.asarray(run.observed["num_accepted"])[:, 0]
    half = len(run.iterations) // 2
    return (accepted[:, -1] - accepted[:, half]) / (run.iterations[-1] - run.iterations[half])


def _draw_adaptation(by_window: dict[int, Run], config: Config) -> Any:
    """Round trips against W; step sizes, acceptance, buffer and the index process of the first run of DEO*."""
    figure, axes = panels(2, 3, (4.2, 3.1))
    trips, steps, acceptance, buffer, vanilla, best = axes.reshape(-1)
    rows = {window: _travel("", found, window)[0] for window, found in by_window.items()}
    trips.errorbar(
        list(rows),
        [row.ours for row in rows.values()],
        [row.std_error or 0 for row in rows.values()],
        fmt="o-",
        label="ours",
    )
    published = [window for window in by_window if window in _THESIS_TRIPS]
    trips.plot(published, [_THESIS_TRIPS[window] for window in published], "kx", label="thesis")
    trips.set(title="round trips / 1000 iterations", xlabel="W")
    trips.legend()
    found = by_window[config.window]
    ladder = np.asarray(found.observed["ladder"])[0, 0]
    steps.semilogy(found.iterations, config.step_sizes[0] * ladder, linewidth=1)
    steps.set(title="step sizes of the rungs", xlabel="iteration")
    accepted = np.asarray(found.observed["num_accepted"])[0, 0]
    blocks = np.linspace(0, len(accepted) - 1, 41).astype(int)
    rates = np.diff(accepted[blocks], axis=0) / np.diff(found.iterations[blocks])[:, None]
    acceptance.plot(found.iterations[blocks[1:]], rates, linewidth=0.8)
    acceptance.axhline(config.target, color="black", linestyle=":")
    acceptance.set(title="acceptance of the pairs", xlabel="iteration", ylim=(0, 1))
    buffer.plot(found.iterations, np.asarray(found.observed["buffer"])[0, 0, :, 0])
    buffer.set(title="buffer C", xlabel="iteration")
    for axis, window in ((vanilla, min(by_window)), (best, config.window)):
        shown = by_window[window]
        late = slice(-150, None)
        rung = np.asarray(shown.observed["rung"])[0, 0][:, [0, config.num_replicas // 2]]
        axis.plot(shown.iterations[late], rung[late], linewidth=1)
        axis.set(title=f"index process, W = {window}", xlabel="iteration", ylabel="rung")
    return figure
