"""Windows on short ladders: round trips of two and three rungs, and the bias of one swap per window between two chains."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from isotherm.api import sweep
from isotherm.demo.result import Row
from isotherm.exchange import DeterministicEvenOdd, expected_round_trip
from isotherm.potentials import with_noise
from isotherm.run import Run
from isotherm.samplers import resgld
from isotherm.targets import Target
from isotherm_thesis.experiments import round_trips
from isotherm_thesis.experiments.figures import page, styled
from isotherm_thesis.experiments.mixture_resgld import histogram_errors
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.targets import resgld_mixtures

TITLE = "Windows on ladders of two and three rungs"


@dataclasses.dataclass(frozen=True)
class Config:
    """What is simulated.

    Attributes:
        num_iterations: in which trips are counted.
        burn_in: iterations before them.
        num_runs: independent repeats.
        rejection: r.
        rungs: P.
        windows: W of the ladders.
        num_steps: iterations of the two chains.
        step_size: of both.
        temperatures: of both.
        noises: standard deviations of the energies; a large one stands for many data.
        gate_windows: W of the two chains.
        thinning: iterations between two draws.
    """

    num_iterations: int = 200_000
    burn_in: int = 10_000
    num_runs: int = 10
    rejection: float = 0.6
    rungs: tuple[int, ...] = (2, 3)
    windows: tuple[int, ...] = (1, 2, 3)
    num_steps: int = 1_000_000
    step_size: float = 0.03
    temperatures: tuple[float, float] = (1.0, 10.0)
    noises: tuple[float, ...] = (0.0, 2.0, 5.0)
    gate_windows: tuple[int, ...] = (1, 3, 10, 30)
    thinning: int = 50


FULL = Config()
QUICK = Config(
    num_iterations=10_000, burn_in=1_000, num_runs=4, num_steps=20_000, noises=(0.0, 5.0), gate_windows=(1, 10)
)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """Round trips by P and W, then histogram errors by noise and W."""
    rows: list[Row] = []
    short = round_trips.Config(num_iterations=config.num_iterations, burn_in=config.burn_in, num_runs=config.num_runs)
    for num_rungs in config.rungs:
        log(f"P = {num_rungs}")
        for window in config.windows:
            times = round_trips.simulate_trips(DeterministicEvenOdd(window), num_rungs, config.rejection, short, seed)
            expected = expected_round_trip(num_rungs, config.rejection, window)
            metric = f"round trip, P = {num_rungs}, r = {config.rejection:g}"
            rows.append(Row.of_runs(f"DEO, W = {window}", metric, times, expected))
    target = resgld_mixtures()[1]
    for noise in config.noises:
        log(f"energy noise {noise:g}")
        for window, found in _gated(target, noise, config, seed).items():
            name = f"noise {noise:g}, W = {window}"
            draws = np.asarray(found.draws)[:, 0, :, 0]
            errors = [histogram_errors(one, target)[-1] for one in draws]
            rows.append(Row.of_runs(name, "swap rate", found.stats["swap_rate"][:, 0, 0]))
            rows.append(Row.of_runs(name, "mass below zero", np.mean(draws < 0, axis=1)))
            rows.append(Row.of_runs(name, "histogram error", errors))
    return Outcome(rows, {"gate-bias": _draw(rows, config)})


def _gated(target: Target, noise: float, config: Config, seed: int) -> dict[int, Run]:
    """Runs of two chains by window, with corrected swaps."""
    return sweep(
        with_noise(target.potential, energy_scale=noise) if noise else target.potential,
        {
            window: resgld(config.step_size, temperatures=config.temperatures, scheme=DeterministicEvenOdd(window))
            for window in config.gate_windows
        },
        num_steps=config.num_steps,
        num_runs=config.num_runs,
        num_ladders=1,
        thinning=config.thinning,
        seed=seed,
        init=target.init,
    )


@styled
def _draw(rows: list[Row], config: Config) -> Any:
    figure, ((axis,),) = page(1, 1, 3.0)
    for noise, color in zip(config.noises, ("#0072b2", "#e69f00", "#7b3fa0"), strict=False):
        names = [f"noise {noise:g}, W = {window}" for window in config.gate_windows]
        found = [next(row for row in rows if (row.method, row.metric) == (name, "histogram error")) for name in names]
        errors = [2 * (row.std_error or 0.0) for row in found]
        label = f"energy noise {noise:g}"
        axis.errorbar(config.gate_windows, [row.ours for row in found], errors, fmt="o-", color=color, label=label)
    axis.set(
        xlabel="window W",
        ylabel="histogram error",
        xscale="log",
        ylim=0,
        title="two chains, at most one swap in a window",
    )
    axis.set_xticks(config.gate_windows, [str(window) for window in config.gate_windows])
    axis.legend()
    return figure
